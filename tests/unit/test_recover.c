/* test_recover.c - tests of recover_bytes(): it returns the text as if no probe were
 * armed.
 */
#include "probes/core/recover.h"

#include "kernel/base/err.h"
#include "probes/kprobe.h"
#include "tests/unit/port_fake.h"

static uintptr_t fn;
static struct kprobe probes[4];

/* start - make a function of four one-byte instructions, and behind them an int3 that is
 * not the engine's.
 */
static void start(void)
{
    fake_start();
    fn = fake_function("fn", "50 51 52 53 cc 90 c3");
    for (size_t i = 0; i < 4; i++)
        probes[i] = (struct kprobe){ .addr = fn + i };
}

static void text_without_probes_is_read_as_it_is(void)
{
    uint8_t bytes[7];

    start();
    CHECK_EQ(recover_bytes(bytes, fn, 7), 0);
    CHECK_BYTES(bytes, "50 51 52 53 cc 90 c3");
    fake_end();
}

static void armed_bytes_come_back_and_a_foreign_int3_stays(void)
{
    uint8_t bytes[7];

    start();
    for (size_t i = 0; i < 4; i++)
        CHECK_EQ(register_kprobe(&probes[i]), 0);
    CHECK_BYTES((const uint8_t *)fn, "cc cc cc cc cc 90 c3");
    CHECK_EQ(recover_bytes(bytes, fn, 7), 0);
    CHECK_BYTES(bytes, "50 51 52 53 cc 90 c3");
    for (size_t i = 0; i < 4; i++)
        CHECK_EQ(unregister_kprobe(&probes[i]), 0);
    fake_end();
}

static void a_part_is_the_same_as_the_part_of_the_whole(void)
{
    uint8_t bytes[2] = { 0 };

    start();
    CHECK_EQ(register_kprobe(&probes[2]), 0);
    CHECK_EQ(recover_bytes(bytes, fn + 2, 1), 0);
    CHECK_EQ(bytes[0], 0x52);
    CHECK_EQ(bytes[1], 0);
    CHECK_EQ(recover_bytes(bytes, fn + 1, 2), 0);
    CHECK_BYTES(bytes, "51 52");
    CHECK_EQ(unregister_kprobe(&probes[2]), 0);
    fake_end();
}

static void a_disabled_probe_changes_nothing(void)
{
    uint8_t bytes[7];

    start();
    probes[0].flags = KPROBE_FLAG_DISABLED;
    CHECK_EQ(register_kprobe(&probes[0]), 0);
    CHECK_EQ(recover_bytes(bytes, fn, 7), 0);
    CHECK_BYTES(bytes, "50 51 52 53 cc 90 c3");
    CHECK_EQ(unregister_kprobe(&probes[0]), 0);
    fake_end();
}

static void unreadable_text_is_an_error(void)
{
    uint8_t bytes[7];

    start();
    fake_bad(fn + 6, 1);
    CHECK_EQ(recover_bytes(bytes, fn, 7), -EFAULT);
    CHECK_EQ(recover_bytes(bytes, fn, 6), 0);
    fake_end();
}

UNIT_TESTS(text_without_probes_is_read_as_it_is,
           armed_bytes_come_back_and_a_foreign_int3_stays,
           a_part_is_the_same_as_the_part_of_the_whole, a_disabled_probe_changes_nothing,
           unreadable_text_is_an_error)
