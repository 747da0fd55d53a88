/* test_region.c - tests of the rules for regions, one by one: which instructions a jump
 * may displace.
 */
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/region/region.h"
#include "probes/region/targets.h"
#include "tests/unit/region_text.h"

#include <string.h>

static struct region region;
static struct probe_reject why;

static enum probe_reason plan_at(uintptr_t addr)
{
    why = (struct probe_reject){ 0 };
    region_plan(addr, &region, &why);
    return why.reason;
}

/* plan - plan a region at the first instruction of a function with the bytes @hex. */
static enum probe_reason plan(const char *hex)
{
    fn = fake_function("fn", hex);
    return plan_at(fn);
}

static void expect(const char *hex, enum probe_reason reason, size_t off)
{
    enum probe_reason got;

    got = plan(hex);
    if (got != reason)
        unit_note("%s: %s, want %s", hex, probe_reason_name(got),
                  probe_reason_name(reason));
    CHECK_EQ(got, reason);
    if (reason != PROBE_OK)
        CHECK_EQ(why.at, fn + off);
}

/* ---- which instructions ---- */

UNIT_TEST(the_longest_region_has_19_bytes)
{
    CHECK_EQ(plan("90 90 90 90 2e 2e 2e 2e 2e 2e 2e 0f 1f 84 00 00 00 00 00 c3"),
             PROBE_OK);
    CHECK_EQ(region.count, 5);
    CHECK_EQ(region.len, REGION_MAX_LEN);
}

UNIT_TEST(what_depends_on_its_place_is_not)
{
    expect("31 c0 9d 31 c9 c3", PROBE_REGION_MOVE, 2);  /* popf */
    expect("31 c0 fb 31 c9 c3", PROBE_REGION_MOVE, 2);  /* sti */
    expect("fb 31 c0 31 c9 c3", PROBE_REGION_MOVE, 0);  /* sti, and others behind */
    expect("31 c0 90 ff d0 c3", PROBE_REGION_MOVE, 3);  /* call *%rax */
    expect("31 c0 0f 01 f8 c3", PROBE_STATE_CHANGE, 2); /* swapgs */
    expect("31 c0 0f 01 c9 c3", PROBE_HALTS, 2);        /* mwait */
    expect("31 c0 cd 20 90 c3", PROBE_TRAP_INSN, 2);    /* int $0x20 */
    expect("31 c0 cc 90 90 c3", PROBE_TRAP_INSN, 2);    /* the program's own int3 */
}

UNIT_TEST(a_call_comes_last_or_not_at_all)
{
    expect("ff d0 31 c0 31 c9 c3", PROBE_REGION_CALL, 0);
    expect("31 c0 e8 00 00 00 00 c3", PROBE_OK, 0);
    expect("e8 00 00 00 00 c3", PROBE_OK, 0);
    expect("ff 15 00 00 00 00 c3", PROBE_OK, 0);
}

/* ---- branches from elsewhere ---- */

UNIT_TEST(no_code_may_jump_behind_the_first_byte)
{
    for (size_t off = 0; off < 8; off++) {
        fn = fake_function("fn", "31 c0 48 8b 47 08 31 c9 c3");
        fake_target(fn + off);
        if (off >= 1 && off <= 4) {
            CHECK_EQ(plan_at(fn), PROBE_REGION_TARGET);
            CHECK_EQ(why.at, fn + off);
        } else {
            CHECK_EQ(plan_at(fn), PROBE_OK);
        }
    }
}

UNIT_TEST(where_anything_may_jump_is_said_so)
{
    fn = fake_function("fn", "31 c0 48 8b 47 08 31 c9 c3");
    fake_opaque(fn + 3, fn + 40);
    CHECK_EQ(plan_at(fn), PROBE_REGION_OPAQUE);
    CHECK_EQ(why.at, fn + 3);
}

UNIT_TEST(a_branch_written_at_run_time_counts)
{
    CHECK_EQ(plan("31 c0 31 c9 31 d2 c3"), PROBE_OK);
    CHECK_EQ(targets_add(fn + 20, fn + 2), 0);
    CHECK_EQ(plan_at(fn), PROBE_REGION_TARGET);
    CHECK_EQ(why.at, fn + 2);
    CHECK(targets_remove(fn + 20, fn + 2));
    CHECK_EQ(plan_at(fn), PROBE_OK);
}

UNIT_TEST(without_a_table_there_are_no_regions)
{
    fake_no_targets();
    CHECK_EQ(plan("31 c0 31 c9 31 d2 c3"), PROBE_NO_TARGETS);
}

UNIT_TEST(code_that_was_changed_is_left_alone)
{
    CHECK_EQ(plan("31 c0 31 c9 31 d2 c3"), PROBE_OK);
    fake_text_poke(fn + 5, 0xc9);
    boundary_forget();
    CHECK_EQ(plan_at(fn), PROBE_REGION_CHANGED);
    fake_text_poke(fn + 5, 0xd2);
    boundary_forget();
    CHECK_EQ(plan_at(fn), PROBE_OK);
}

UNIT_TEST(code_is_compared_by_lines)
{
    static char hex[3 * PLAT_LINE_LEN * 3 + 4];
    uintptr_t end;

    for (size_t i = 0; i < PLAT_LINE_LEN * 3; i++)
        memcpy(hex + 3 * i, "90 ", 3);
    memcpy(hex + 3 * PLAT_LINE_LEN * 3, "c3", 3);
    fn = fake_function("fn", hex);
    end = (fn + 2 * PLAT_LINE_LEN) & ~(uintptr_t)(PLAT_LINE_LEN - 1);
    fake_text_poke(end, 0xc3);
    boundary_forget();
    CHECK_EQ(plan_at(end - REGION_JUMP_LEN), PROBE_OK);
    CHECK_EQ(plan_at(end - REGION_JUMP_LEN + 1), PROBE_REGION_CHANGED);
    fake_text_poke(end, 0x90);
}

/* ---- ends of functions ---- */

UNIT_TEST(padding_behind_a_function_may_be_overwritten)
{
    twins("31 c0 c3 90 90 90 31 c0 c3", 3, 3);
    CHECK_EQ(plan_at(fn), PROBE_OK);
    CHECK_EQ(region.len, 5);
    CHECK_EQ(region.count, 2);
    CHECK_EQ(region.padding, 2);
    twins("c3 0f 1f 40 00 90 31 c0 c3", 1, 5);
    CHECK_EQ(plan_at(fn), PROBE_OK);
    CHECK_EQ(region.padding, 4);
    twins("31 c0 eb fc cc cc cc 31 c0 c3", 4, 3);
    CHECK_EQ(plan_at(fn), PROBE_OK);
    CHECK_EQ(region.padding, 1);
}

UNIT_TEST(functions_of_one_to_six_bytes)
{
    static const char *const bodies[] = {
        "c3", "90 c3", "31 c0 c3", "90 31 c0 c3", "31 c0 31 c9 c3", "90 31 c0 31 c9 c3"
    };
    static const char *const fillers[] = { "90", "cc" };

    for (size_t size = 1; size <= 6; size++) {
        for (size_t gap = 0; gap <= 5; gap++) {
            for (size_t filler = 0; filler < 2; filler++) {
                char hex[64];

                strcpy(hex, bodies[size - 1]);
                for (size_t i = 0; i < gap; i++)
                    strcat(strcat(hex, " "), fillers[filler]);
                twins(strcat(hex, " 31 c0 c3"), size, gap);
                if (size + gap >= REGION_JUMP_LEN) {
                    CHECK_EQ(plan_at(fn), PROBE_OK);
                    CHECK_EQ(region.len, 5);
                } else {
                    CHECK_EQ(plan_at(fn), PROBE_REGION_END);
                    CHECK_EQ(why.at, fn + size + gap);
                }
            }
        }
    }
}

UNIT_TEST(other_bytes_there_are_not_padding)
{
    twins("31 c0 c3 00 00 00 31 c0 c3", 3, 3);
    CHECK_EQ(plan_at(fn), PROBE_REGION_END);
    CHECK_EQ(why.at, fn + 3);
    twins("31 c0 c3 90 48 90 31 c0 c3", 3, 3); /* the gap may be data, such as a table */
    fake_target(fn + 4);
    CHECK_EQ(plan_at(fn), PROBE_REGION_TARGET);
}

UNIT_TEST(code_that_runs_into_the_end_is_refused)
{
    twins("31 c0 31 c9 90 90 90 31 c0 c3", 4, 3);
    CHECK_EQ(plan_at(fn), PROBE_REGION_END);
    CHECK_EQ(why.at, fn + 4);
}

UNIT_TEST(a_call_that_never_returns_may_be_the_end)
{
    twins("31 ff e8 00 00 00 00 31 c0 c3", 7, 0);
    CHECK_EQ(plan_at(fn), PROBE_OK);
    CHECK_EQ(region.len, 7);
    CHECK_EQ(plan_at(fn + 2), PROBE_OK);
    CHECK_EQ(region.len, 5);
    twins("31 ff ff d0 90 90 31 c0 c3", 4, 2);
    CHECK_EQ(plan_at(fn), PROBE_REGION_END);
    CHECK_EQ(plan_at(fn + 2), PROBE_REGION_END);
    CHECK_EQ(why.at, fn + 4);
}

UNIT_TEST(data_between_functions_end_a_region)
{
    twins("31 c0 c3 90 55 89 31 c0 c3", 3, 0);
    CHECK_EQ(plan_at(fn), PROBE_REGION_END);
    CHECK_EQ(why.at, fn + 3);
}

UNIT_TEST(what_must_never_be_changed_is_not)
{
    fn = fake_function("fn", "31 c0 31 c9 31 d2 c3");
    fake_entry(fn + 2, fn + 4);
    CHECK_EQ(plan_at(fn), PROBE_ENTRY_CODE);
    CHECK_EQ(why.at, fn + 2);
}

/* ---- probes ---- */

UNIT_TEST(another_probe_inside_forbids_it)
{
    struct kprobe own = { 0 }, inner = { 0 }, behind = { 0 };

    fn = fake_function("fn", "31 c0 31 c9 31 d2 c3");
    own.addr = fn;
    inner.addr = fn + 2;
    behind.addr = fn + 6;
    CHECK_EQ(register_kprobe(&own), 0);
    CHECK_EQ(register_kprobe(&behind), 0);
    CHECK_EQ(plan_at(fn), PROBE_OK);
    CHECK_BYTES(region.bytes, "31 c0 31 c9 31 d2");
    CHECK_EQ(register_kprobe(&inner), 0);
    CHECK_EQ(plan_at(fn), PROBE_REGION_PROBED);
    CHECK_EQ(why.at, fn + 2);
    CHECK_EQ(why.err, -EEXIST);
    CHECK_EQ(plan_at(fn + 2), PROBE_REGION_PROBED);
    CHECK_EQ(why.at, fn + 6);
    CHECK_BYTES(region.bytes, "31 c9 31 d2 c3");
    CHECK_EQ(unregister_kprobe(&inner), 0);
    CHECK_EQ(plan_at(fn), PROBE_OK);
    CHECK_EQ(unregister_kprobe(&own), 0);
    CHECK_EQ(unregister_kprobe(&behind), 0);
}

static unsigned rules_told, rules_broken;
static enum probe_reason last_told;

static void note_rule(enum probe_reason rule, const struct probe_reject *reject,
                      void *arg)
{
    CHECK(arg == &rules_told);
    rules_told++;
    rules_broken += reject->err != 0;
    last_told = rule;
}

/* ---- all rules ---- */

UNIT_TEST(each_rule_is_told_of)
{
    fn = fake_function("fn", "ff d0 31 c0 31 c9 c3");
    fake_target(fn + 2);
    rules_told = rules_broken = 0;
    region_each_rule(fn, &region, note_rule, &rules_told);
    CHECK_EQ(rules_broken, 2);
    CHECK_EQ(last_told, PROBE_REGION_CHANGED);
    CHECK_EQ(region.len, 6);
    fake_no_targets();
    rules_told = rules_broken = 0;
    region_each_rule(fn, &region, note_rule, &rules_told);
    CHECK_EQ(rules_told, 1);
    CHECK_EQ(rules_broken, 1);
}

UNIT_TESTS_BETWEEN(fake_start, fake_end)
