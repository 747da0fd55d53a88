/* test_table.c - prints what the other tests of this folder have found: the table of
 * classes and tiers, and the kinds of instructions that were not tried. This file is
 * linked behind the others, so its tests run last.
 */
#include "kernel/debug/ksyms.h"
#include "probes/insn/opcode_ops.h"
#include "tests/conformance/refusal.h"
#include "tests/conformance/tier.h"
#include "tests/kernel/ktest.h"

/* ---- the classes of the samples of refused.asm ---- */

static struct {
    bool classes[INSN_CLASS_COUNT], kinds[INSN_KIND_COUNT], ops[256], forms[256];
} offered;

static void note_sample(const struct sample *sample)
{
    struct insn insn;

    if (insn_decode(&insn, sample->bytes, sample->len, (uintptr_t)sample->bytes))
        return;
    offered.classes[insn.class] = true;
    offered.kinds[insn.kind] = true;
    offered.ops[insn.op] = true;
    offered.forms[insn.form] = true;
}

static void note_samples(void)
{
    for (const struct sample *s = samples_refused; s < samples_refused_end; s++)
        note_sample(s);
    for (const struct sample *s = samples_copied; s < samples_copied_end; s++)
        note_sample(s);
}

static bool anything_ran(void)
{
    for (unsigned c = 0; c < INSN_CLASS_COUNT; c++)
        if (tier_ran_class((enum insn_class)c))
            return true;
    ktest_skip("run with the other tests of this folder");
    return false;
}

/* ---- the table ----
 *
 *   conformance CLASS TIER same
 *   conformance CLASS copy same              never executed, but the copies are right
 *   conformance CLASS/KIND all refused: RULE
 *   conformance CLASS/KIND some refused: RULE      only in some forms
 */

static unsigned print_cells(enum insn_class class)
{
    static const char *const words[] = { "", "same", "DIFFERENT" };
    unsigned different = 0;

    for (unsigned t = 0; t < TIERS; t++) {
        enum cell cell = tier_cell(class, (enum tier)t);

        different += cell == CELL_DIFFERENT;
        if (cell != CELL_NONE && tier_ran_class(class))
            ktest_note("conformance %s %s %s", insn_class_name(class),
                       tier_name((enum tier)t), words[cell]);
    }
    if (!tier_ran_class(class) && offered.classes[class])
        ktest_note("conformance %s copy same", insn_class_name(class));
    return different;
}

static void print_refusal(const struct insn *insn, enum probe_reason rule)
{
    static bool printed[INSN_KIND_COUNT][PROBE_REASON_COUNT];

    if (printed[insn->kind][rule])
        return;
    printed[insn->kind][rule] = true;
    ktest_note("conformance %s/%s %s refused: %s", insn_class_name(insn->class),
               insn_kind_name(insn->kind), tier_ran_kind(insn->kind) ? "some" : "all",
               probe_reason_name(rule));
}

static void print_refusals(void)
{
    for (const struct sample *s = samples_refused; s < samples_refused_end; s++) {
        struct insn insn;

        if (insn_decode(&insn, s->bytes, s->len, (uintptr_t)s->bytes))
            continue;
        for (unsigned rule = 0; rule < PROBE_REASON_COUNT; rule++)
            if (refusal_is_met(insn.kind, (enum probe_reason)rule))
                print_refusal(&insn, (enum probe_reason)rule);
    }
}

static void print_refused_jumps(void)
{
    for (unsigned why = 0; why < PROBE_REASON_COUNT; why++)
        if (tier_refused((enum probe_reason)why))
            ktest_note("conformance jump refused: %s, %u times",
                       probe_reason_name((enum probe_reason)why),
                       tier_refused((enum probe_reason)why));
}

KTEST(conformance, table_of_classes_and_tiers)
{
    unsigned different = 0;

    if (!anything_ran())
        return;
    note_samples();
    for (unsigned c = 0; c < INSN_CLASS_COUNT; c++)
        different += print_cells((enum insn_class)c);
    print_refusals();
    print_refused_jumps();
    ktest_report(!different, "no cell differs");
}

/* ---- what the table lacks ---- */

#define NAME_OF(name, ...) #name,
static const char *const op_names[] = { OPCODE_OPS(NAME_OF) };
static const char *const form_names[] = { OPCODE_FORMS(NAME_OF) };

static void report_untried(unsigned untried, const char *what)
{
    ktest_report(!untried, "every %s is executed, or refused, or its copy compared",
                 what);
}

static void find_untried_kinds(void)
{
    unsigned untried = 0;

    for (unsigned k = 0; k < INSN_KIND_COUNT; k++) {
        if (tier_ran_kind((enum insn_kind)k) || offered.kinds[k])
            continue;
        ktest_note("kind %s is not tried", insn_kind_name((enum insn_kind)k));
        untried++;
    }
    report_untried(untried, "kind");
}

static void find_untried_classes(void)
{
    unsigned untried = 0;

    for (unsigned c = 0; c < INSN_CLASS_COUNT; c++) {
        if (tier_ran_class((enum insn_class)c) || offered.classes[c])
            continue;
        ktest_note("class %s is not tried", insn_class_name((enum insn_class)c));
        untried++;
    }
    report_untried(untried, "class");
}

static void find_untried_ops(void)
{
    unsigned untried = 0;

    for (unsigned op = OP_BAD + 1; op < OP_COUNT; op++) {
        if (tier_ran_op(op) || offered.ops[op])
            continue;
        ktest_note("op %s is not tried", op_names[op]);
        untried++;
    }
    report_untried(untried, "row of opcode_ops.h");
}

static void find_untried_forms(void)
{
    unsigned untried = 0;

    for (unsigned form = 0; form < FM_COUNT; form++) {
        if (tier_ran_form(form) || offered.forms[form])
            continue;
        ktest_note("form %s is not tried", form_names[form]);
        untried++;
    }
    report_untried(untried, "form of operands");
}

KTEST(conformance, table_is_complete)
{
    if (!anything_ran())
        return;
    note_samples();
    find_untried_classes();
    find_untried_kinds();
    find_untried_ops();
    find_untried_forms();
}

KTEST(conformance, table_of_refusals_is_complete)
{
    unsigned unmet = 0;
    char text[48];
    bool met;

    if (!anything_ran())
        return;
    for (size_t i = 0; refusal_row(i, text, sizeof(text), &met); i++) {
        if (!met)
            ktest_note("%s was not met", text);
        unmet += !met;
    }
    ktest_report(!unmet, "every row of refused.tsv is met");
}
