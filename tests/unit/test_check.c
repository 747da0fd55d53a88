/* test_check.c - tests of kprobe_check(): for every rule that can refuse a probe, bytes
 * that break it.
 */
#include "tests/unit/port_fake.h"

static struct probe_reject why;
static struct insn insn;

/* check_bytes - check the first instruction of a function with the bytes @hex. */
static enum probe_reason check_bytes(const char *hex)
{
    why = (struct probe_reject){ 0 };
    kprobe_check(fake_function("fn", hex), &insn, &why);
    return why.reason;
}

static enum probe_reason check_addr(uintptr_t addr)
{
    why = (struct probe_reject){ 0 };
    kprobe_check(addr, &insn, &why);
    return why.reason;
}

/* expect - check that each of @rows is refused for @reason. NULL ends the rows. */
static void expect(enum probe_reason reason, const char *const *rows)
{
    fake_start();
    for (; *rows; rows++) {
        enum probe_reason got = check_bytes(*rows);

        if (got != reason)
            unit_note("%s: %s, want %s", *rows, probe_reason_name(got),
                      probe_reason_name(reason));
        CHECK_EQ(got, reason);
    }
    boundary_forget();
    fake_end();
}

#define EXPECT(reason, ...) expect(reason, (const char *const[]){ __VA_ARGS__, NULL })

UNIT_TEST(what_is_run_as_a_copy_is_accepted)
{
    EXPECT(PROBE_OK, "90", "55", "48 89 e5", "f3 0f 1e fa", "0f a2", "0f 31", "f0 ff 00",
           "f3 48 a5", "0f 01 f9", "ec", "ef", "0f 20 c0", "48 8b 05 00 00 00 00",
           "62 f1 7c 48 10 00", "c5 f8 77", "f3 90", "6a 01", "0f ae f0");
}

UNIT_TEST(what_changes_the_processor_is_a_copy_too)
{
    EXPECT(PROBE_OK, "0f 22 c0", "0f 22 d8", "44 0f 22 c0", "0f 06", "0f 01 f0",
           "0f 23 c0", "0f 23 f8", "0f 01 10", "0f 01 18", "0f 00 d0", "0f 00 d8",
           "8e d8", "8e 03", "0f 0b", "0f b9 c0", "0f ff c0");
}

UNIT_TEST(hlt_is_accepted)
{
    EXPECT(PROBE_OK, "f4", "fa f4");
}

UNIT_TEST(what_is_emulated_is_accepted)
{
    EXPECT(PROBE_OK, "e8 00 00 00 00", "ff d0", "ff 54 24 08", "ff 15 00 00 00 00",
           "eb fe", "e9 00 00 00 00", "ff e0", "ff 24 c5 00 00 00 00", "74 00",
           "0f 84 00 00 00 00", "e0 fe", "e1 fe", "e2 fe", "e3 fe", "67 e3 fe", "c3",
           "c2 08 00", "f3 c3", "9c", "66 9c", "9d", "66 9d", "fa");
}

UNIT_TEST(sti_is_accepted)
{
    EXPECT(PROBE_OK, "fb 90 c3", "fb c3", "fb");
}

UNIT_TEST(sti_before_hlt_is_not)
{
    EXPECT(PROBE_STI_HLT, "fb f4 c3", "fb 0f 01 c9");
}

UNIT_TEST(nor_is_hlt_behind_sti)
{
    uintptr_t fn = fake_function("fn", "90 fb f4 f4 b0 fb f4");

    CHECK_EQ(check_addr(fn + 1), PROBE_STI_HLT);
    CHECK_EQ(why.at, fn + 2);
    CHECK_EQ(check_addr(fn + 2), PROBE_STI_HLT);
    CHECK_EQ(why.at, fn + 1);
    CHECK_EQ(check_addr(fn + 3), PROBE_OK);
    CHECK_EQ(check_addr(fn + 6), PROBE_OK); /* the fb in front is the operand of a mov */
}

UNIT_TEST(traps_are_refused)
{
    EXPECT(PROBE_TRAP_INSN, "cc", "cd 80", "cd 03", "f1");
}

UNIT_TEST(a_foreign_int3_is_refused_as_such)
{
    uintptr_t fn = fake_function("f", "48 89 e5 90 c3");

    fake_text_poke(fn, 0xcc);
    CHECK_EQ(kprobe_check(fn, &insn, &why), -EBUSY);
    CHECK_EQ(why.reason, PROBE_FOREIGN_INT3);
    CHECK_EQ(why.at, fn);
    boundary_forget();
    fake_text_poke(fn, 0x48);
    CHECK_EQ(kprobe_check(fn, &insn, &why), 0);
}

UNIT_TEST(the_engines_own_int3s_are_not_foreign)
{
    uintptr_t fn = fake_function("f", "48 89 e5 90 cc c3");
    struct kprobe p = { .addr = fn };

    CHECK_EQ(register_kprobe(&p), 0);
    CHECK_EQ(kprobe_check(fn + 4, &insn, &why), -EILSEQ);
    CHECK_EQ(why.reason, PROBE_TRAP_INSN);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

UNIT_TEST(far_branches_are_refused)
{
    EXPECT(PROBE_FAR_BRANCH, "cf", "48 cf", "cb", "ca 08 00", "ff 18", "48 ff 28",
           "0f 05", "0f 07", "0f 34", "0f 35", "0f aa");
}

UNIT_TEST(loading_the_stack_segment_is_refused)
{
    EXPECT(PROBE_MASKS_TRAPS, "8e d0", "8e 10", "66 8e d0");
}

UNIT_TEST(changes_of_what_a_trap_depends_on_are_refused)
{
    EXPECT(PROBE_STATE_CHANGE, "8e e0", "8e e8", "0f a1", "0f b2 03", "0f 01 f8",
           "f3 0f ae d0", "f3 48 0f ae d8", "f3 48 0f ae e8");
}

UNIT_TEST(what_waits_for_a_store_is_refused)
{
    EXPECT(PROBE_HALTS, "0f 01 c9", "66 0f ae f0");
}

UNIT_TEST(transactions_are_refused)
{
    EXPECT(PROBE_TRANSACTION, "c7 f8 00 00 00 00", "c6 f8 00", "0f 01 d5");
}

UNIT_TEST(virtualization_is_refused)
{
    EXPECT(PROBE_VIRTUALIZATION, "0f 01 c1", "0f 01 d8", "0f 01 d9", "0f 01 c2",
           "0f 01 cf", "0f 01 d7");
}

UNIT_TEST(near_branches_with_a_66_prefix_are_refused)
{
    EXPECT(PROBE_SHORT_OPERAND, "66 e8 00 00 00 00", "66 eb 00", "66 74 00", "66 c3",
           "66 ff e0", "66 ff d0", "66 48 ff d0", "66 e2 fe");
}

UNIT_TEST(a_rex_in_front_of_another_prefix_is_refused)
{
    EXPECT(PROBE_SHORT_OPERAND, "41 3e ff d0", "48 f3 c3", "48 66 9c", "48 66 9d",
           "48 66 01 c8");
    EXPECT(PROBE_OK, "66 48 01 c8", "48 4c 01 c8");
}

UNIT_TEST(bytes_that_do_not_decode_are_refused)
{
    EXPECT(PROBE_UNDECODABLE, "06", "ea", "f0 90", "0f", "48");
}

UNIT_TEST(an_errno_belongs_to_each_rule)
{
    CHECK_EQ(kprobe_check(fake_function("f", "cc"), &insn, &why), -EILSEQ);
    CHECK_EQ(kprobe_check(fake_function("f", "0f 01 c9"), &insn, &why), -EOPNOTSUPP);
    CHECK_EQ(why.err, -EOPNOTSUPP);
    CHECK(why.why != NULL);
}

/* ---- places ---- */

UNIT_TEST(the_middle_of_an_instruction_is_refused)
{
    uintptr_t fn = fake_function("fn", "48 89 e5 c3");

    CHECK_EQ(check_addr(fn + 1), PROBE_NOT_BOUNDARY);
    CHECK_EQ(why.at, fn);
}

UNIT_TEST(what_is_no_text_is_refused)
{
    uintptr_t data;

    CHECK_EQ(check_addr((uintptr_t)&data), PROBE_NOT_TEXT);
    CHECK_EQ(check_addr(8), PROBE_NOT_TEXT);
    CHECK_EQ(check_addr(UINTPTR_MAX), PROBE_NOT_TEXT);
    CHECK_EQ(check_addr(fake_text_end()), PROBE_NOT_TEXT);
}

UNIT_TEST(text_without_a_function_is_refused)
{
    CHECK_EQ(check_addr(fake_bytes_at("90 90")), PROBE_NO_FUNCTION);
}

UNIT_TEST(entry_code_is_refused)
{
    uintptr_t fn = fake_function("entry", "90 90 90");

    fake_entry(fn, fn + 2);
    CHECK_EQ(check_addr(fn), PROBE_ENTRY_CODE);
    CHECK_EQ(check_addr(fn + 1), PROBE_ENTRY_CODE);
    CHECK_EQ(check_addr(fn + 2), PROBE_OK);
}

UNIT_TEST(the_copies_are_refused)
{
    struct kprobe p = { .addr = fake_function("fn", "90 c3") };
    const struct site *site;

    CHECK_EQ(register_kprobe(&p), 0);
    site = p.site;
    CHECK_EQ(check_addr((uintptr_t)site->boost_slot), PROBE_OWN_CODE);
    unregister_kprobe(&p);
}

UNIT_TEST(the_re_entry_core_is_refused_byte_by_byte)
{
    uintptr_t before, core, behind;

    before = fake_function("before", "90 90 90 90 90 90 90 90 90 90 90 90 90 90 90 90");
    core = fake_function("core", "90 90 90 90 90 90 90 90 90 90 90 90 90 90 90 90");
    behind = fake_function("behind", "90");
    fake_nokprobe(core);
    fake_nokprobe(core); /* marked twice */
    fake_take_marks();
    for (uintptr_t a = core; a < core + 16; a++)
        CHECK_EQ(check_addr(a), PROBE_BLACKLISTED);
    CHECK_EQ(core, before + 16);
    CHECK_EQ(check_addr(core - 1), PROBE_OK);
    CHECK_EQ(behind, core + 16);
    CHECK_EQ(check_addr(behind), PROBE_OK);
}

/* For example, functions of .kprobes.text that are also marked one by one. */
UNIT_TEST(a_range_takes_in_what_is_marked_inside_of_it)
{
    uintptr_t fns[] = { fake_function("first", "90 90 90"), fake_function("middle", "90"),
                        fake_function("last", "90 90") };
    uintptr_t before = fns[0] - 1, behind = fake_function("behind", "90");
    struct nokprobe_range range;

    fake_nokprobe(behind);
    fake_nokprobe(fns[1]);
    fake_nokprobe(fns[0]);
    fake_nokprobe_range(fns[0], behind, NULL);
    fake_take_marks();
    for (size_t i = 0; i < ARRAY_LEN(fns); i++)
        fake_nokprobe(fns[i]);
    fake_take_marks();
    for (uintptr_t a = fns[0]; a <= behind; a++)
        CHECK_EQ(check_addr(a), PROBE_BLACKLISTED);
    CHECK(!blacklist_next(before, &range) && range.start == fns[0] &&
          range.end == behind);
    CHECK(!blacklist_next(behind, &range) && range.start == behind);
}

static void expect_own_words(uintptr_t addr, enum probe_reason reason, uintptr_t at)
{
    CHECK_EQ(check_addr(addr), reason);
    CHECK_EQ(why.at, at);
    CHECK_STR(why.why, "its own words");
}

UNIT_TEST(a_range_is_refused_in_its_own_words)
{
    uintptr_t fn = fake_function("fn", "90 fb 90 90 f4 c3");

    fake_nokprobe_range(fn + 2, fn + 4, "its own words");
    fake_take_marks();
    CHECK_EQ(check_addr(fn), PROBE_OK);
    expect_own_words(fn + 2, PROBE_BLACKLISTED, fn + 2);
    expect_own_words(fn + 3, PROBE_BLACKLISTED, fn + 3);
    CHECK_EQ(check_addr(fn + 4), PROBE_OK);
    /* A copy of sti would execute the instruction behind it, too. */
    expect_own_words(fn + 1, PROBE_STI_HLT, fn + 2);
}

UNIT_TESTS_BETWEEN(fake_start, fake_end)
