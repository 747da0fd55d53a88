/* tier.c - the oracle of tier.h.
 *
 * All runs of a group are on one CPU, because registers and memory of the processor
 * differ from CPU to CPU.
 */
#include "tests/conformance/tier.h"

#include "kernel/cpu/trap.h"
#include "probes/insn/opcode_ops.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "tests/conformance/copy.h"
#include "tests/conformance/programs.h"
#include "tests/conformance/refusal.h"
#include "tests/conformance/vectors.h"
#include "tests/kernel/ktest.h"

#define COMPLAINTS_MAX 12 /* lines */

static struct {
    enum cell cells[INSN_CLASS_COUNT][TIERS];
    unsigned refused[PROBE_REASON_COUNT]; /* probes that alone were no jump, either */
    bool classes[INSN_CLASS_COUNT], kinds[INSN_KIND_COUNT], ops[256], forms[256];
} tried;

/* A group while it is being tried. */
struct trial {
    const struct group *group;
    enum optimize_method method; /* how probes become jumps at present */
    size_t rows, members;
    struct insn *insns;              /* of each row */
    struct kprobe *probes;           /* of each row */
    struct kprobe_program *programs; /* of each row */
    struct kprobe **pointers;
    bool *left;               /* of each row: among probes on all rows it is no jump */
    struct outcome *unprobed; /* of the members of the first row, of the second, ... */
    const struct fixture *complained; /* the last one with a complaint */
    unsigned complaints, lines, refused, untried;
    uint64_t runs, missed;
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

/* ---- comparing ---- */

static bool is_by_jump(const struct trial *t)
{
    return t->method != OPTIMIZE_OFF;
}

static enum tier tier_of(const struct trial *t, size_t row, const struct pass *pass)
{
    if (pass->tier == TIERS)
        return TIERS;
    if (is_by_jump(t))
        return t->method == OPTIMIZE_PUN ? TIER_PUN : TIER_REGION;
    return t->probes[row].site->way == WAY_EMULATE ? TIER_EMULATE : pass->tier;
}

/* ran_as_it_should - has the engine run the instruction once since @before, in the way of
 * @site? If the probe is a jump, no way of a trap may be counted, unless the program
 * steps itself: then a jump ends in a trap, too.
 */
static bool ran_as_it_should(const struct trial *t, const struct site *site,
                             const struct setup *setup, const uint64_t before[WAYS])
{
    const struct probe_cpu *cpu = this_cpu()->probe;
    bool jumped = is_by_jump(t) && !(setup->image.flags & FLAGS_TF);

    for (unsigned way = 0; way < WAYS; way++)
        if (way != WAY_JUMP &&
            cpu->ran[way] - before[way] != (way == site->way && !jumped))
            return false;
    return true;
}

static const char *compare(struct trial *t, size_t row, unsigned member,
                           const struct pass *pass)
{
    const struct probe_cpu *cpu = this_cpu()->probe;
    const struct kprobe *p = &t->probes[row];
    uint64_t before[WAYS], hits = kprobe_hits(p);
    struct outcome probed;
    struct setup setup;
    struct attempt attempt = {
        .fixture = &t->group->rows[row],
        .insn = &t->insns[row],
        .setup = &setup,
        .unprobed = unprobed_of(t, row, member),
        .probed = &probed,
        .ignored = t->group->ignored,
        .program = p->program,
    };

    member_make(t->group, &setup, member);
    if (pass->alone && (setup.interrupt || setup.steps))
        return NULL;
    setup.scrambled = pass->scrambled;
    memcpy(before, cpu->ran, sizeof(before));
    pass_begin(&setup);
    if (pass->program)
        programs_before(&attempt);
    fixture_run(attempt.fixture, &setup, &probed);
    t->runs++;
    attempt.hits = kprobe_hits(p) - hits;
    if (pass->tier != TIERS && !ran_as_it_should(t, p->site, &setup, before))
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

/* is_beyond_qemu - is it a case that QEMU 7.2 emulates wrongly? CMPXCHG8B leaves most
 * flags as they are, but QEMU takes them from the start of its block of translated code.
 * A counter in front of the copy changes the flags there and restores them.
 */
static bool is_beyond_qemu(const struct trial *t, size_t row, const struct pass *pass)
{
    return is_by_jump(t) && !pass->pre && !pass->light && !pass->post &&
           t->insns[row].op == OP_CMPX8B;
}

static void row_compare(struct trial *t, size_t row, const struct pass *pass)
{
    enum tier tier = tier_of(t, row, pass);
    unsigned complaints = t->complaints;

    if (is_beyond_qemu(t, row, pass)) {
        ktest_note("%s, %s: not tried", t->group->rows[row].text, pass->name);
        t->untried++;
        return;
    }
    if (tier == TIER_EMULATE && pass->engine == STEP_TF)
        return; /* nothing is stepped, so this is the same as the pass before */
    if (!copy_is_same(t->probes[row].site, &t->insns[row]))
        complain(t, row, 0, pass, "its copy is another instruction");
    for (unsigned member = 0; member < t->members; member++) {
        const char *what = compare(t, row, member, pass);

        if (what)
            complain(t, row, member, pass, what);
    }
    if (tier == TIERS)
        return;
    if (t->complaints != complaints)
        tried.cells[t->insns[row].class][tier] = CELL_DIFFERENT;
    else if (tried.cells[t->insns[row].class][tier] == CELL_NONE)
        tried.cells[t->insns[row].class][tier] = CELL_SAME;
}

/* ---- the passes ---- */

/* arm - register probes on @count rows from @first on, and let them become
 * jumps if they can.
 */
static bool arm(struct trial *t, const struct pass *pass, size_t first, size_t count)
{
    struct probe_reject why;

    for (size_t row = first; row < first + count; row++) {
        if (pass->program)
            t->programs[row] = *pass->program;
        t->probes[row] = (struct kprobe){
            .addr = t->insns[row].addr,
            .pre_handler = pass->pre,
            .light_handler = pass->light,
            .post_handler = pass->post,
            .program = pass->program ? &t->programs[row] : NULL,
        };
        t->pointers[row] = &t->probes[row];
    }
    if (register_kprobes_why(t->pointers + first, count, &why)) {
        ktest_report(false, "%s: refused, %s", t->group->rows[first + why.index].text,
                     why.why);
        return false;
    }
    optimize_run();
    return true;
}

static void disarm(struct trial *t, size_t first, size_t count)
{
    for (size_t row = first; row < first + count; row++)
        t->missed += t->probes[row].nmissed;
    unregister_kprobes(t->pointers + first, count);
}

static bool is_jump(const struct trial *t, size_t row)
{
    return t->probes[row].flags & KPROBE_FLAG_OPTIMIZED;
}

static void run_together(struct trial *t, const struct pass *pass)
{
    if (!arm(t, pass, 0, t->rows))
        return;
    for (size_t row = 0; row < t->rows; row++) {
        t->left[row] = is_jump(t, row) != is_by_jump(t);
        if (!t->left[row])
            row_compare(t, row, pass);
    }
    disarm(t, 0, t->rows);
}

/* refuse - count a row that is no jump, and complain unless refused.tsv has the reason.
 */
static void refuse(struct trial *t, size_t row, const struct pass *pass)
{
    enum probe_reason why = (enum probe_reason)jump_site(t->probes[row].site)->jump_why;

    t->refused++;
    tried.refused[why]++;
    if (!refusal_meet(t->insns[row].kind, why))
        complain(t, row, 0, pass, probe_reason_name(why));
}

/* run_alone - run a row with a probe on this row only. Among probes on all rows it was no
 * jump, but the reason may have been a jump of a neighbour.
 */
static void run_alone(struct trial *t, size_t row, const struct pass *pass)
{
    if (!arm(t, pass, row, 1))
        return;
    if (is_jump(t, row))
        row_compare(t, row, pass);
    else
        refuse(t, row, pass);
    disarm(t, row, 1);
}

static void pass_run(struct trial *t, const struct pass *pass)
{
    static const char *const by[OPTIMIZE_METHODS] = { "by pun, ", "by region, ", "" };
    unsigned complaints = t->complaints;
    uint64_t runs = t->runs;

    t->complained = NULL;
    t->lines = 0;
    t->missed = 0;
    t->refused = 0;
    t->untried = 0;
    step_set_engine(pass->engine);
    run_together(t, pass);
    for (size_t row = 0; row < t->rows; row++)
        if (t->left[row])
            run_alone(t, row, pass);
    step_set_engine(STEP_INT3);
    ktest_report(t->complaints == complaints && !t->missed,
                 "%s, %s%s: %lu runs of %lu instructions, %u differ", t->group->name,
                 by[t->method], pass->name, (t->runs - runs),
                 (t->rows - t->refused - t->untried), t->complaints - complaints);
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
    t->programs = kzalloc(t->rows * sizeof(*t->programs));
    t->pointers = kzalloc(t->rows * sizeof(*t->pointers));
    t->left = kzalloc(t->rows * sizeof(*t->left));
    t->unprobed = kzalloc(t->rows * t->members * sizeof(*t->unprobed));
    return t->insns && t->probes && t->programs && t->pointers && t->left && t->unprobed;
}

static void trial_end(struct trial *t)
{
    kfree(t->insns);
    kfree(t->probes);
    kfree(t->programs);
    kfree(t->pointers);
    kfree(t->left);
    kfree(t->unprobed);
}

static bool wants_vectors(const struct group *group)
{
    struct setup setup;

    member_make(group, &setup, 0);
    return setup.vectors;
}

/* is_for - shall @pass be run? Regions with handlers that change the program are left out
 * of a usual run: they take long, and their code is that of puns.
 */
static bool is_for(const struct trial *t, const struct pass *pass)
{
    if (pass->post && t->group->no_post)
        return false;
    if (t->method == OPTIMIZE_REGION && pass->tier == TIERS && !ktest_count(0, 1))
        return false;
    return !is_by_jump(t) || pass->engine == STEP_INT3;
}

static void passes_run(struct trial *t, enum optimize_method method)
{
    t->method = method;
    optimize_set_method(method);
    for (size_t i = 0; i < pass_count; i++)
        if (is_for(t, &passes[i]))
            pass_run(t, &passes[i]);
}

static void methods_run(struct trial *t)
{
    enum optimize_method before = optimize_get_method();

    optimize_set_method(OPTIMIZE_OFF);
    run_unprobed(t);
    passes_run(t, OPTIMIZE_OFF);
    passes_run(t, OPTIMIZE_PUN);
    passes_run(t, OPTIMIZE_REGION);
    optimize_set_method(before);
}

static void group_try(const struct group *group)
{
    struct trial t;

    if (!trial_begin(&t, group))
        ktest_report(false, "there is memory for %s", group->name);
    else if (insns_decode(&t))
        methods_run(&t);
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

/* ---- results ---- */

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

unsigned tier_refused(enum probe_reason why)
{
    return tried.refused[why];
}

const char *tier_name(enum tier tier)
{
    static const char *const names[TIERS] = { "boost",   "step-int3", "step-tf",
                                              "emulate", "pun",       "region" };

    return names[tier];
}
