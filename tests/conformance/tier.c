/* tier.c - the oracle of tier.h.
 *
 * Everything runs on one CPU: some registers and some memory differ from CPU to CPU.
 */
#include "tests/conformance/tier.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"
#include "tests/conformance/copy.h"
#include "tests/conformance/vectors.h"
#include "tests/kernel/ktest.h"

#include <string.h>

#define COMPLAINTS_MAX 12 /* lines */

static struct {
    enum cell cells[INSN_CLASS_COUNT][TIERS];
    bool classes[INSN_CLASS_COUNT], kinds[INSN_KIND_COUNT], ops[256], forms[256];
} tried;

/* A group while it is being tried. */
struct trial {
    const struct group *group;
    size_t rows, members;
    struct insn *insns;    /* of each row */
    struct kprobe *probes; /* of each row */
    struct kprobe **pointers;
    struct outcome *unprobed;         /* members of the first row, of the second, ... */
    const struct fixture *complained; /* the last one that was complained of */
    unsigned complaints, lines;
    uint64_t runs;
};

/* ---- one run ---- */

static bool member_make(const struct group *group, struct setup *setup, unsigned i)
{
    memset(setup, 0, sizeof(*setup));
    return group->vary(setup, i);
}

static size_t members_count(const struct group *group)
{
    struct setup setup;
    unsigned i = 0;

    while (member_make(group, &setup, i))
        i++;
    return i;
}

static struct outcome *unprobed_of(struct trial *t, size_t row, unsigned member)
{
    return &t->unprobed[row * t->members + member];
}

/* ---- is it the same? ---- */

static enum tier tier_of(const struct site *site, const struct pass *pass)
{
    return site->way == WAY_EMULATE ? TIER_EMULATE : pass->tier;
}

/* ran_as - has the engine run it @before + 1 times in the way that the site has? */
static bool ran_as(const struct site *site, const uint64_t before[WAYS])
{
    const struct probe_cpu *cpu = this_cpu()->probe;

    return cpu->ran[site->way] == before[site->way] + 1;
}

static const char *compare(struct trial *t, size_t row, unsigned member,
                           const struct pass *pass)
{
    const struct probe_cpu *cpu = this_cpu()->probe;
    uint64_t before[WAYS];
    struct outcome probed;
    struct setup setup;
    struct attempt attempt = {
        .fixture = &t->group->rows[row],
        .insn = &t->insns[row],
        .setup = &setup,
        .unprobed = unprobed_of(t, row, member),
        .probed = &probed,
        .ignored = t->group->ignored,
    };

    member_make(t->group, &setup, member);
    if (pass->alone && (setup.interrupt || setup.steps))
        return NULL;
    setup.scrambled = pass->scrambled;
    memcpy(before, cpu->ran, sizeof(before));
    pass_begin(&setup);
    fixture_run(attempt.fixture, &setup, &probed);
    t->runs++;
    if (pass->tier != TIERS && !ran_as(t->probes[row].site, before))
        return "the engine has not run it in its way";
    return pass->check(&attempt);
}

static void complain(struct trial *t, size_t row, unsigned member,
                     const struct pass *pass, const char *what)
{
    const struct fixture *f = &t->group->rows[row];

    t->complaints++;
    if (t->complained == f || t->lines++ >= COMPLAINTS_MAX)
        return;
    t->complained = f;
    ktest_note("%s, member %u, %s: %s", f->text, member, pass->name, what);
}

static void row_compare(struct trial *t, size_t row, const struct pass *pass)
{
    enum tier tier = tier_of(t->probes[row].site, pass);
    unsigned complaints = t->complaints;

    if (tier == TIER_EMULATE && pass->engine == STEP_TF)
        return; /* nothing is stepped: it is the pass before again */
    if (!copy_is_same(t->probes[row].site, &t->insns[row]))
        complain(t, row, 0, pass, "its copy is another instruction");
    for (unsigned member = 0; member < t->members; member++) {
        const char *what = compare(t, row, member, pass);

        if (what)
            complain(t, row, member, pass, what);
    }
    if (pass->tier == TIERS)
        return;
    if (t->complaints != complaints)
        tried.cells[t->insns[row].class][tier] = CELL_DIFFERENT;
    else if (tried.cells[t->insns[row].class][tier] == CELL_NONE)
        tried.cells[t->insns[row].class][tier] = CELL_SAME;
}

/* ---- the passes ---- */

static bool pass_arm(struct trial *t, const struct pass *pass)
{
    struct probe_reject why;

    step_set_engine(pass->engine);
    for (size_t row = 0; row < t->rows; row++) {
        t->probes[row] = (struct kprobe){
            .addr = t->insns[row].addr,
            .pre_handler = pass->pre,
            .post_handler = pass->post,
        };
        t->pointers[row] = &t->probes[row];
    }
    if (!register_kprobes_why(t->pointers, t->rows, &why))
        return true;
    ktest_report(false, "%s: refused, %s", t->group->rows[why.index].text, why.why);
    return false;
}

static void pass_run(struct trial *t, const struct pass *pass)
{
    unsigned complaints = t->complaints;
    uint64_t runs = t->runs, missed = 0;

    t->complained = NULL;
    t->lines = 0;
    if (!pass_arm(t, pass))
        return;
    for (size_t row = 0; row < t->rows; row++)
        row_compare(t, row, pass);
    for (size_t row = 0; row < t->rows; row++)
        missed += t->probes[row].nmissed;
    unregister_kprobes(t->pointers, t->rows);
    step_set_engine(STEP_INT3);
    ktest_report(t->complaints == complaints && !missed,
                 "%s, %s: %lu runs of %lu instructions, %u differ", t->group->name,
                 pass->name, (unsigned long)(t->runs - runs), (unsigned long)t->rows,
                 t->complaints - complaints);
}

static void note_what_ran(const struct insn *insn, const struct outcome *out)
{
    if (out->fault.count && out->fault.ip == insn->addr && out->fault.vector == TRAP_UD &&
        insn->kind != INSN_UD)
        return;
    tried.classes[insn->class] = true;
    tried.kinds[insn->kind] = true;
    tried.ops[insn->op] = true;
    tried.forms[insn->form] = true;
}

static bool insns_decode(struct trial *t)
{
    for (size_t row = 0; row < t->rows; row++) {
        const struct fixture *f = &t->group->rows[row];

        if (insn_decode(&t->insns[row], (const uint8_t *)f->insn, INSN_MAX_LEN,
                        f->insn)) {
            ktest_report(false, "%s does not decode", f->text);
            return false;
        }
    }
    return true;
}

static void run_unprobed(struct trial *t)
{
    for (size_t row = 0; row < t->rows; row++)
        for (unsigned member = 0; member < t->members; member++) {
            struct setup setup;

            member_make(t->group, &setup, member);
            fixture_run(&t->group->rows[row], &setup, unprobed_of(t, row, member));
            note_what_ran(&t->insns[row], unprobed_of(t, row, member));
        }
}

static bool trial_begin(struct trial *t, const struct group *group)
{
    *t = (struct trial){
        .group = group,
        .rows = (size_t)(group->rows_end - group->rows),
        .members = members_count(group),
    };
    t->insns = kzalloc(t->rows * sizeof(*t->insns));
    t->probes = kzalloc(t->rows * sizeof(*t->probes));
    t->pointers = kzalloc(t->rows * sizeof(*t->pointers));
    t->unprobed = kzalloc(t->rows * t->members * sizeof(*t->unprobed));
    return t->insns && t->probes && t->pointers && t->unprobed;
}

static void trial_end(struct trial *t)
{
    kfree(t->insns);
    kfree(t->probes);
    kfree(t->pointers);
    kfree(t->unprobed);
}

static bool wants_vectors(const struct group *group)
{
    struct setup setup;

    member_make(group, &setup, 0);
    return setup.vectors;
}

static void passes_run(struct trial *t)
{
    run_unprobed(t);
    for (size_t i = 0; i < pass_count; i++)
        if (!passes[i].post || !t->group->no_post)
            pass_run(t, &passes[i]);
}

static void group_try(const struct group *group)
{
    struct trial t;

    if (!trial_begin(&t, group))
        ktest_report(false, "there is memory for %s", group->name);
    else if (insns_decode(&t))
        passes_run(&t);
    trial_end(&t);
}

void tier_test(const struct group *group)
{
    uint64_t cpus = thread_current()->cpus;

    vary_seed(ktest_random());
    thread_set_affinity(BIT(cpu_id()));
    if (!wants_vectors(group)) {
        group_try(group);
    } else if (vectors_on()) {
        group_try(group);
        vectors_off();
    } else {
        ktest_skip("this CPU has no XSAVE");
    }
    thread_set_affinity(cpus);
}

/* ---- what came of it ---- */

enum cell tier_cell(enum insn_class class, enum tier tier)
{
    return tried.cells[class][tier];
}

bool tier_ran_class(enum insn_class class)
{
    return tried.classes[class];
}

bool tier_ran_kind(enum insn_kind kind)
{
    return tried.kinds[kind];
}

bool tier_ran_op(unsigned op)
{
    return tried.ops[op];
}

bool tier_ran_form(unsigned form)
{
    return tried.forms[form];
}

const char *tier_name(enum tier tier)
{
    static const char *const names[TIERS] = { "boost", "step-int3", "step-tf",
                                              "emulate" };

    return names[tier];
}
