/* test_recover.c - tests of recover_bytes(): it returns the text as if no probe were
 * armed.
 */
#include "probes/core/recover.h"

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

UNIT_TEST(a_part_is_the_same_as_the_part_of_the_whole)
{
    uint8_t bytes[2] = { 0 };

    CHECK_EQ(register_kprobe(&probes[2]), 0);
    CHECK_EQ(recover_bytes(bytes, fn + 2, 1), 0);
    CHECK_EQ(bytes[0], 0x52);
    CHECK_EQ(bytes[1], 0);
    CHECK_EQ(recover_bytes(bytes, fn + 1, 2), 0);
    CHECK_BYTES(bytes, "51 52");
    CHECK_EQ(unregister_kprobe(&probes[2]), 0);
}

UNIT_TESTS_BETWEEN(start, fake_end)
