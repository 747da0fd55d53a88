/* test_enable.c - tests that switch probes off and on: one, many and all. */
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "tests/unit/probes.h"

#include <stdio.h>

#define TEXT "55 48 89 e5 90 c3"
#define COUNT 4

static const unsigned offsets[COUNT] = { 0, 1, 4, 5 };
static struct kprobe probes[COUNT], *pointers[COUNT];
static uintptr_t text;

static void start(void)
{
    fake_start();
    text = fake_function("fn", TEXT);
    for (unsigned i = 0; i < COUNT; i++) {
        probes[i] = (struct kprobe){ .addr = text + offsets[i] };
        pointers[i] = &probes[i];
    }
    CHECK_EQ(register_kprobes(pointers, COUNT), 0);
}

static void end(void)
{
    CHECK_EQ(unregister_kprobes(pointers, COUNT), 0);
    CHECK(fake_text_is_original());
    fake_end();
}

UNIT_TEST(of_two_at_one_address_both_must_be_disabled)
{
    struct kprobe second = { .addr = 0 };

    second.addr = text;
    CHECK_EQ(register_kprobe(&second), 0);
    CHECK_EQ(disable_kprobe(&second), 0);
    CHECK_BYTES((const uint8_t *)text, "cc");
    CHECK_EQ(disable_kprobe(&probes[0]), 0);
    CHECK_BYTES((const uint8_t *)text, "55");
    CHECK_EQ(enable_kprobe(&second), 0);
    CHECK_BYTES((const uint8_t *)text, "cc");
    CHECK_EQ(unregister_kprobe(&second), 0);
    CHECK_BYTES((const uint8_t *)text, "55");
}

UNIT_TEST(many_pay_for_one_round)
{
    unsigned one = fake.syncs, all;

    disable_kprobe(&probes[0]);
    one = fake.syncs - one;
    all = fake.syncs;
    CHECK_EQ(disable_kprobes(pointers, COUNT), 0);
    CHECK_EQ(fake.syncs - all, one);
    CHECK(fake_text_is_original());
    all = fake.syncs;
    CHECK_EQ(enable_kprobes(pointers, COUNT), 0);
    CHECK_BYTES((const uint8_t *)text, "cc cc 89 e5 cc cc");
    CHECK_EQ(fake.syncs - all, 2);
}

UNIT_TEST(that_leave_together_do_so_too)
{
    struct kprobe more = { .addr = text, .pre_handler = NULL };
    struct kprobe *leaving[] = { &probes[0], &more, &probes[1] };

    CHECK_EQ(register_kprobe(&more), 0);
    fake_log_start(text);
    CHECK_EQ(unregister_kprobes(leaving, 3), 0);
    CHECK_STR(fake_log(), "original original sync quiesce lost sync clear free clear");
    CHECK_EQ(register_kprobes(leaving, 1), 0);
    CHECK_EQ(register_kprobes(leaving + 2, 1), 0);
}

UNIT_TEST(one_that_is_not_registered_keeps_all_as_they_are)
{
    struct kprobe stranger = { .addr = 0 };
    struct kprobe *some[] = { &probes[0], &stranger };

    stranger.addr = text;
    CHECK_EQ(disable_kprobes(some, 2), -EINVAL);
    CHECK_EQ(probes[0].flags, 0);
    CHECK_BYTES((const uint8_t *)text, "cc");
    fake_fail_at(1);
    CHECK_EQ(disable_kprobes(pointers, COUNT), -ENOMEM);
    CHECK_EQ(probes[0].flags, 0);
}

UNIT_TEST(switched_off_the_text_is_original_everywhere)
{
    disable_kprobe(&probes[2]);
    CHECK(kprobes_are_on());
    CHECK_EQ(kprobes_switch(false), 0);
    CHECK(!kprobes_are_on());
    CHECK(fake_text_is_original());
    CHECK_EQ(kprobes_switch(false), 0);
    CHECK_EQ(kprobes_switch(true), 0);
    CHECK_BYTES((const uint8_t *)text, "cc cc 89 e5 90 cc");
    CHECK_EQ(kprobes_switch(true), 0);
}

UNIT_TEST(what_comes_and_changes_meanwhile_waits)
{
    struct kprobe late = { .addr = 0 };

    kprobes_switch(false);
    late.addr = fake_function("late", "90 c3");
    CHECK_EQ(register_kprobe(&late), 0);
    CHECK_EQ(disable_kprobe(&probes[0]), 0);
    CHECK_EQ(disable_kprobe(&probes[1]), 0);
    CHECK_EQ(enable_kprobe(&probes[1]), 0);
    CHECK(fake_text_is_original());
    CHECK_EQ(kprobes_switch(true), 0);
    CHECK_BYTES((const uint8_t *)late.addr, "cc c3");
    CHECK_BYTES((const uint8_t *)text, "55 cc 89 e5 cc cc");
    CHECK_EQ(unregister_kprobe(&late), 0);
}

UNIT_TEST(without_memory_the_switch_stays_where_it_is)
{
    fake_fail_at(1);
    CHECK_EQ(kprobes_switch(false), -ENOMEM);
    CHECK(kprobes_are_on());
    CHECK_BYTES((const uint8_t *)text, "cc cc 89 e5 cc cc");
}

/* Otherwise the engine would run into its own breakpoints while it disarms the other
 * probes.
 */
UNIT_TEST(the_engines_own_probes_go_first)
{
    struct kprobe own = { .addr = 0 };

    own.addr = fake_function("own", "90 c3");
    fake_engine(own.addr, own.addr + 2);
    CHECK_EQ(register_kprobe(&own), 0);
    fake_log_start(own.addr);
    kprobes_switch(false);
    CHECK_STR(fake_log(), "original sync original original original original sync");
    kprobes_switch(true);
    CHECK_EQ(unregister_kprobe(&own), 0);
}

UNIT_TEST(no_handler_or_interrupt_may_switch)
{
    fake.context = PLAT_IRQ;
    CHECK_EQ(kprobes_switch(false), -EDEADLK);
    CHECK_EQ(disable_kprobe(&probes[0]), -EDEADLK);
    CHECK_EQ(enable_kprobes(pointers, COUNT), -EDEADLK);
    fake.context = PLAT_THREAD;
    CHECK(kprobes_are_on());
}

/* ---- one probe ---- */

UNIT_TEST(disabled_at_birth_it_is_not_armed)
{
    struct kprobe p = { .addr = fake_function("disabled", "55 c3"),
                        .pre_handler = no_pre,
                        .flags = KPROBE_FLAG_DISABLED };

    CHECK_EQ(add(&p), 0);
    CHECK_EQ(byte_at(p.addr), 0x55);
    fake_log_start(p.addr);
    CHECK_EQ(enable_kprobe(&p), 0);
    CHECK_STR(fake_log(), "sync int3 sync");
    fake_log_start(p.addr);
    CHECK_EQ(disable_kprobe(&p), 0);
    CHECK_STR(fake_log(), "original sync");
    CHECK_EQ(enable_kprobe(&p), 0);
    CHECK_EQ(byte_at(p.addr), 0xcc);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

UNIT_TEST(only_what_is_registered_can_be_switched)
{
    struct kprobe p = { .addr = fake_function("new", "55 c3"), .pre_handler = no_pre };

    CHECK_EQ(enable_kprobe(&p), -EINVAL);
    CHECK_EQ(disable_kprobe(&p), -EINVAL);
    CHECK_EQ(add(&p), 0);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_EQ(enable_kprobe(&p), -EINVAL);
}

/* ---- more than one batch ---- */

#define MANY 1025 /* one more than a batch holds */

static uintptr_t many_start, first_write, last_write;

static void note_write(uintptr_t addr, size_t len UNUSED)
{
    if (addr - many_start >= MANY)
        return;
    first_write = first_write ? first_write : addr;
    last_write = addr;
}

/* The engine's own code has the lowest addresses, and patches the text. */
UNIT_TEST(the_lowest_are_armed_last_and_disarmed_first)
{
    static char hex[3 * MANY + 1];
    static struct kprobe many[MANY], *all[MANY];

    for (size_t i = 0; i < MANY; i++)
        sprintf(hex + 3 * i, "90 ");
    many_start = fake_function("many", hex);
    for (size_t i = 0; i < MANY; i++) {
        many[i] = (struct kprobe){ .addr = many_start + i };
        all[i] = &many[i];
    }
    fake.on_write = note_write;
    CHECK_EQ(register_kprobes(all, MANY), 0);
    CHECK(first_write == many_start + 1 && last_write == many_start);
    first_write = 0;
    CHECK_EQ(unregister_kprobes(all, MANY), 0);
    CHECK(first_write == many_start && last_write == many_start + MANY - 1);
    fake.on_write = NULL;
}

UNIT_TESTS_BETWEEN(start, end)
