/* test_refused.c - instructions and places that cannot carry a probe, each refused by its
 * rule; and instructions that can, although the test machine cannot execute them.
 */
#include "kernel/memmap.h"
#include "kernel/mm/extable.h"
#include "tests/conformance/copy.h"
#include "tests/conformance/refusal.h"
#include "tests/conformance/tier.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nothing.h"

extern const char entry_text_start[];

FIXTURES(alu);
FIXTURES(loaded_table);

static bool offer_is_refused(const struct sample *sample)
{
    struct probe_reject why = { 0 };
    struct insn insn;
    struct kprobe p;

    if (!refusal_offer(sample, &p, &insn, &why)) {
        unregister_kprobe(&p);
        ktest_note("%s was accepted", sample->text);
        return false;
    }
    if (insn.len
            ? refusal_meet(insn.kind, why.reason)
            : why.reason == PROBE_UNDECODABLE && refusal_meet(INSN_OTHER, why.reason))
        return true;
    ktest_note("%s, of kind %s, was refused by %s: no such row in refused.tsv",
               sample->text, insn_kind_name(insn.kind), probe_reason_name(why.reason));
    return false;
}

KTEST(conformance, h05_h10_h11_h13_h20_h22_refused)
{
    size_t tried = 0, refused = 0;

    for (const struct sample *s = samples_refused; s < samples_refused_end; s++) {
        tried++;
        refused += offer_is_refused(s);
    }
    refusal_withdraw();
    ktest_report(refused == tried, "%lu instructions, each refused by a rule of the list",
                 refused);
}

/* A sample has its probe on the first instruction only. So here is one for
 * the hlt behind sti.
 */
KTEST(conformance, h10_h12_hlt_behind_sti)
{
    static const uint8_t sti_hlt[] = { 0xfb, 0xf4 };
    const struct sample sample = { "sti, hlt", sti_hlt, sizeof(sti_hlt) };
    struct probe_reject why = { 0 };
    struct insn insn;
    struct kprobe p;

    ktest_report(refusal_offer(&sample, &p, &insn, &why) == -EOPNOTSUPP, "sti: %s",
                 probe_reason_name(why.reason));
    p = (struct kprobe){ .addr = insn_next(&insn) };
    ktest_report(register_kprobe_why(&p, &why) == -EOPNOTSUPP &&
                     refusal_meet(INSN_HLT, why.reason),
                 "hlt: %s", probe_reason_name(why.reason));
    refusal_withdraw();
}

/* This int3 was compiled into the text. That of the sample is written to the text later.
 */
long built_int3(void);
__asm__(".pushsection .text\n"
        ".globl built_int3\n"
        ".type built_int3, @function\n"
        "built_int3:\n"
        "    int3\n"
        "    ret\n"
        ".size built_int3, . - built_int3\n"
        ".popsection\n");

KTEST(conformance, h13_an_int3_of_the_program)
{
    struct kprobe p = { .addr = (uintptr_t)built_int3 };
    struct probe_reject why = { 0 };
    int err = register_kprobe_why(&p, &why);

    ktest_report(err == -EILSEQ && refusal_meet(INSN_INT3, why.reason),
                 "is refused by %s", probe_reason_name(why.reason));
}

/* This ud2 stands for those of BUG() and others: the instruction behind it
 * may carry a probe.
 */
long behind_a_trap(long a);
__asm__(".pushsection .text\n"
        ".globl behind_a_trap\n"
        ".type behind_a_trap, @function\n"
        "behind_a_trap:\n"
        "1:  ud2\n"
        "2:  lea 1(%rdi), %rax\n"
        "    ret\n" EXTABLE("1b", "2b") ".size behind_a_trap, . - behind_a_trap\n"
                                        ".popsection\n");

KTEST(conformance, h20_no_trap_behind_loaded_tables)
{
    size_t rows = (size_t)(fixtures_loaded_table_end - fixtures_loaded_table);
    struct insn insn;

    for (size_t i = 0; i < rows; i++) {
        const struct fixture *f = &fixtures_loaded_table[i];
        struct kprobe p = { .addr = f->insn, .post_handler = no_post };
        struct probe_reject why = { 0 };
        int err = register_kprobe_why(&p, &why);

        if (insn_decode(&insn, (const uint8_t *)f->insn, INSN_MAX_LEN, f->insn))
            insn.kind = INSN_OTHER;
        ktest_report(err == -EOPNOTSUPP && refusal_meet(insn.kind, why.reason),
                     "%s with a post-handler: %s", f->text,
                     probe_reason_name(why.reason));
    }
}

KTEST(conformance, h13_behind_a_trap)
{
    struct kprobe boosted = { .addr = (uintptr_t)behind_a_trap + 2 };
    struct kprobe stepped = { .addr = (uintptr_t)behind_a_trap + 2,
                              .post_handler = no_post };

    register_kprobe(&boosted);
    ktest_report(behind_a_trap(4) == 5 && boosted.hits == 1, "boosted: it is hit");
    register_kprobe(&stepped);
    ktest_report(behind_a_trap(4) == 5 && stepped.hits == 1, "stepped: it is hit");
    unregister_kprobe(&boosted);
    unregister_kprobe(&stepped);
}

static void place_is_refused(const char *what, uintptr_t addr, enum probe_reason rule)
{
    struct kprobe p = { .addr = addr };
    struct probe_reject why = { 0 };

    if (!register_kprobe_why(&p, &why))
        unregister_kprobe(&p);
    ktest_report(why.reason == rule && refusal_meet(INSN_OTHER, rule), "%s: %s", what,
                 probe_reason_name(why.reason));
}

KTEST(conformance, places_refused)
{
    struct kprobe p = { .addr = (uintptr_t)insn_can_boost };

    place_is_refused("data", (uintptr_t)samples_refused, PROBE_NOT_TEXT);
    place_is_refused("entry code", (uintptr_t)entry_text_start, PROBE_ENTRY_CODE);
    place_is_refused("the #BP handler", (uintptr_t)kprobe_int3_handler,
                     PROBE_BLACKLISTED);
    place_is_refused("between two boundaries", (uintptr_t)fixtures_alu[0].insn + 1,
                     PROBE_NOT_BOUNDARY);
    place_is_refused("padding", (uintptr_t)_etext - 8, PROBE_NO_FUNCTION);
    if (register_kprobe(&p)) {
        ktest_report(false, "insn_can_boost cannot be probed");
        return;
    }
    place_is_refused("a copy", (uintptr_t)p.site->boost_slot, PROBE_OWN_CODE);
    unregister_kprobe(&p);
}

static bool offer_is_copied(const struct sample *sample)
{
    struct probe_reject why = { 0 };
    struct insn insn;
    struct kprobe p;
    bool is_same;

    if (refusal_offer(sample, &p, &insn, &why)) {
        ktest_note("%s was refused by %s", sample->text, probe_reason_name(why.reason));
        return false;
    }
    is_same = copy_is_same(p.site, &insn);
    unregister_kprobe(&p);
    if (!is_same)
        ktest_note("the copy of %s is another instruction", sample->text);
    return is_same;
}

KTEST(conformance, h19_copied_but_not_executed)
{
    size_t tried = 0, same = 0;

    for (const struct sample *s = samples_copied; s < samples_copied_end; s++) {
        tried++;
        same += offer_is_copied(s);
    }
    refusal_withdraw();
    ktest_report(same == tried, "%lu of %lu instructions are copied as they are", same,
                 tried);
}
