/* targets.c - calls the functions of targets.asm, counts the calls, and knows how often
 * each instruction was executed.
 *
 * This knowledge does not come from the engine: callers count a call before they make it,
 * and what a call executes was seen by single steps while there was no probe.
 */
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/thread/thread.h"
#include "probes/core/life.h"
#include "probes/returns/shadow.h"
#include "tests/kernel/own_steps.h"
#include "tests/stress/stress.h"

#include <string.h>

typedef uint64_t (*target_fn)(uint64_t x, uint64_t arg);

uint64_t stress_plain(uint64_t x, uint64_t arg), stress_flags(uint64_t x, uint64_t arg),
    stress_sti(uint64_t x, uint64_t arg), stress_strings(uint64_t x, uint64_t arg),
    stress_load(uint64_t x, uint64_t arg), stress_divide(uint64_t x, uint64_t arg),
    stress_outer(uint64_t x, uint64_t arg), stress_branches(uint64_t x, uint64_t arg),
    stress_recurse(uint64_t x, uint64_t arg), stress_tail(uint64_t x, uint64_t arg),
    stress_circle(uint64_t x, uint64_t arg), stress_redirect(uint64_t x, uint64_t arg),
    stress_circle_back(uint64_t x, uint64_t arg),
    stress_image_call(uint64_t x, uint64_t arg), stress_image(uint64_t x, uint64_t arg);
extern const uint8_t stress_load_fault[], stress_divide_fault[], stress_strings_fault[];
uint64_t stress_stepped(target_fn fn, uint64_t x, uint64_t arg);

/* ---- the values that targets return ---- */

static const uint8_t bytes[16] = "0123456789abcdef";
static const uint64_t word = 1000;

static uint64_t plain(uint64_t x)
{
    return 3 * x + 2;
}

static uint64_t flags(uint64_t x)
{
    return 6 + x - (x < 3 ? 1 : 0) + (x == 3 ? 8 : 0);
}

static uint64_t strings(uint64_t x)
{
    return x + bytes[7];
}

static uint64_t branches(uint64_t x)
{
    uint64_t r = plain(x) + 3;

    return r % 2 ? r + 2 : r;
}

static uint64_t same(uint64_t x)
{
    return x;
}

static uint64_t tail(uint64_t x)
{
    return plain(x + 1);
}

static uint64_t circle(uint64_t x UNUSED)
{
    return 42;
}

static uint64_t redirect(uint64_t x)
{
    return 3 * x;
}

static uint64_t image(uint64_t x)
{
    return 5 * x;
}

static uint64_t load(uint64_t x)
{
    return x + word;
}

static uint64_t divide(uint64_t x)
{
    return (x + 100) / 7;
}

static uint64_t outer(uint64_t x)
{
    return load(x) + plain(x);
}

static uint64_t sti_pairs(uint64_t x)
{
    return x + 9;
}

#define NOWHERE 16                     /* #PF */
#define NO_ADDRESS (UINT64_C(1) << 63) /* #GP */

static const struct row {
    const char *name;
    target_fn fn;
    uint64_t (*wanted)(uint64_t x);
    uintptr_t good, bad[2];
    const uint8_t *fault;
} rows[TARGETS] = {
#define ROW(name, wanted)                                                                \
    {                                                                                    \
#name, stress_##name, wanted, 0, { 0 }, NULL                                     \
    }
#define ROW_LOAD(name, wanted, from, fault)                                              \
    {                                                                                    \
#name, stress_##name, wanted, (uintptr_t)(from), { NOWHERE, NO_ADDRESS }, fault  \
    }
    [TARGET_PLAIN] = ROW(plain, plain),
    [TARGET_FLAGS] = ROW(flags, flags),
    [TARGET_BRANCHES] = ROW(branches, branches),
    [TARGET_RECURSE] = ROW(recurse, same),
    [TARGET_TAIL] = ROW(tail, tail),
    [TARGET_CIRCLE] = ROW(circle, circle),
    [TARGET_REDIRECT] = ROW(redirect, redirect),
    [TARGET_IMAGE] = ROW(image_call, image),
    [TARGET_STI] = ROW(sti, sti_pairs),
    [TARGET_STRINGS] = ROW_LOAD(strings, strings, bytes, NULL),
    [TARGET_STRINGS_BAD] = ROW_LOAD(strings, strings, bytes, stress_strings_fault),
    [TARGET_LOAD] = ROW_LOAD(load, load, &word, stress_load_fault),
    [TARGET_OUTER] = ROW_LOAD(outer, outer, &word, stress_load_fault),
    [TARGET_DIVIDE] = { "divide",
                        stress_divide,
                        divide,
                        7,
                        { 0, 0 },
                        stress_divide_fault },
#undef ROW
#undef ROW_LOAD
};

/* ---- steps ---- */

static uint64_t steps_asked, steps_seen;

#define DR6_BS BIT(14)

static bool take_step(struct pt_regs *regs)
{
    if (!(regs->dr6 & DR6_BS))
        return false;
    regs->flags &= ~FLAGS_TF;
    stress_count(&steps_seen);
    return true;
}

bool stress_step(struct pt_regs *regs)
{
    if (cpu_context() != CTX_THREAD || regs->flags & FLAGS_TF)
        return false;
    regs->flags |= FLAGS_TF;
    stress_count(&steps_asked);
    return true;
}

void stress_steps_check(void)
{
    if (steps_seen != steps_asked)
        stress_differs("steps of programs", "", steps_seen, steps_asked);
}

/* ---- calls ---- */

static uint64_t calls[TARGETS][STRESS_INPUTS][STRESS_MODES];
static uint64_t diverted;

void stress_calls_reset(void)
{
    memset(calls, 0, sizeof(calls));
    diverted = steps_asked = steps_seen = 0;
}

uint64_t stress_diverted(void)
{
    return diverted;
}

uint64_t stress_calls(void)
{
    const uint64_t *all = &calls[0][0][0];
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof(calls) / sizeof(*all); i++)
        sum += all[i];
    return sum;
}

#define CPU_FLAGS (FLAGS_IF | FLAGS_DF | FLAGS_AC | FLAGS_TF | FLAGS_NT | FLAGS_IOPL)

struct cpu_state {
    int preempt;
    uintptr_t pinned;
    enum cpu_context context;
    uint64_t flags;
    const struct shadow_entry *last; /* NULL: no shadow was made yet */
};

/* last_entry - return the last entry in the shadow of the present stack. */
static const struct shadow_entry *last_entry(enum cpu_context context)
{
    const struct shadow *s =
        context == CTX_NMI ? plat_this_cpu()->plat.nmi_shadow : thread_current()->probe;

    return s ? READ_ONCE(s->last) : NULL;
}

static struct cpu_state cpu_state(void)
{
    enum cpu_context context = cpu_context();

    return (struct cpu_state){ preempt_count(), preempt_is_off() && !preempt_count(),
                               context, read_flags() & CPU_FLAGS, last_entry(context) };
}

static void compare_states(const char *where, const struct cpu_state *before)
{
    struct cpu_state after = cpu_state();

    if (after.preempt != before->preempt)
        stress_differs("the preemption count behind a call of", where,
                       (uint64_t)after.preempt, (uint64_t)before->preempt);
    while (preempt_count() > before->preempt) /* repaired, so that the round can end */
        preempt_enable_no_resched();
    if (after.pinned != before->pinned)
        stress_differs("the light handler behind a call of", where, after.pinned,
                       before->pinned);
    if (after.context != before->context)
        stress_differs("the context behind a call of", where, after.context,
                       before->context);
    if (after.flags != before->flags)
        stress_differs("the flags behind a call of", where, after.flags, before->flags);
    if (before->last && after.last != before->last)
        stress_differs("the latest entry of the shadow behind a call of", where,
                       (uintptr_t)after.last, (uintptr_t)before->last);
}

static bool was_diverted(enum stress_target target, uint64_t x, uint64_t result)
{
    return target == TARGET_REDIRECT && result == redirect(x) + 1;
}

void stress_call(enum stress_target target, uint64_t x)
{
    const struct row *row = &rows[target];
    struct cpu_state before = cpu_state();
    uint64_t result;

    stress_count(&calls[target][x][STRESS_GOOD]);
    result = row->fn(x, row->good);
    compare_states(row->name, &before);
    if (was_diverted(target, x, result))
        stress_count(&diverted);
    else if (result != row->wanted(x))
        stress_differs("the result of", row->name, result, row->wanted(x));
}

void stress_call_bad(uint64_t chance)
{
    enum stress_target target = TARGET_LOAD + chance % (TARGET_STI - TARGET_LOAD);
    const struct row *row = &rows[target];
    uint64_t x = chance / 16 % STRESS_INPUTS;

    stress_count(&calls[target][x][STRESS_BAD]);
    row->fn(x, row->bad[chance / 64 % 2]);
    stress_differs("a call that faults comes back:", row->name, x, 0);
}

/* ---- instructions ---- */

struct stress_insn stress_insns[STRESS_INSNS_MAX];
size_t stress_insn_count, stress_entry_count;

static bool is_fault(uintptr_t addr)
{
    for (size_t t = 0; t < TARGETS; t++)
        if (rows[t].fault && addr == (uintptr_t)rows[t].fault)
            return true;
    return false;
}

static void note_insn(const struct insn *insn, void *arg)
{
    struct stress_insn *next = &stress_insns[stress_insn_count];
    const struct plat_symbol *function = arg;
    bool is_entry = insn->addr == function->start;
    struct insn decoded;

    if (stress_insn_count == STRESS_INSNS_MAX || kprobe_check(insn->addr, &decoded, NULL))
        return;
    if (function->start == (uintptr_t)stress_redirect && !is_entry)
        return; /* not known: a handler at the entry decides whether they run */
    *next = (struct stress_insn){ .addr = insn->addr };
    next->is_entry = is_entry;
    next->is_fault = is_fault(insn->addr);
    next->is_image = insn->addr == (uintptr_t)stress_image;
    next->is_redirect = insn->addr == (uintptr_t)stress_redirect;
    stress_insn_count++;
    stress_entry_count += next->is_entry;
}

static void note_function(target_fn fn)
{
    struct plat_symbol function;

    plat_lock(PLAT_PROBES);
    if (!plat_symbol_at((uintptr_t)fn, &function))
        boundary_for_each(&function, note_insn, &function);
    plat_unlock(PLAT_PROBES);
}

static struct stress_insn *insn_at(uintptr_t addr)
{
    for (size_t i = 0; i < stress_insn_count; i++)
        if (stress_insns[i].addr == addr)
            return &stress_insns[i];
    return NULL;
}

/* note_run - count that the program has come to @addr. A call with a bad argument would
 * have ended at the instruction that faults.
 */
static void note_run(enum stress_target t, uint64_t x, uintptr_t addr, bool *has_faulted)
{
    struct stress_insn *insn = insn_at(addr);

    if (!insn)
        return;
    insn->runs[t][x][STRESS_GOOD]++;
    if (!*has_faulted)
        insn->runs[t][x][STRESS_BAD]++;
    *has_faulted |= addr == (uintptr_t)rows[t].fault;
}

static bool is_sti(uintptr_t addr)
{
    return *(const uint8_t *)addr == 0xfb;
}

/* note_runs - count each instruction that @steps has come to. A string instruction with a
 * repeat prefix makes a step for each iteration, which counts once. After sti, QEMU and
 * some processors make no step: the next step is that after the next instruction.
 */
static void note_runs(enum stress_target t, uint64_t x, const struct own_steps *steps)
{
    bool has_faulted = !rows[t].fault;
    uintptr_t last = 0;

    for (size_t i = 0; i < steps->count; i++) {
        uintptr_t at = steps->at[i];

        if (last && is_sti(last) && at != last + 1)
            note_run(t, x, last + 1, &has_faulted);
        if (at != last)
            note_run(t, x, at, &has_faulted);
        last = at;
    }
}

static void step_through(enum stress_target t, uint64_t x)
{
    static struct own_steps steps;
    uint64_t result;

    own_steps_begin(&steps);
    result = stress_stepped(rows[t].fn, x, rows[t].good);
    own_steps_end();
    if (result != rows[t].wanted(x) || steps.count == OWN_STEPS_MAX)
        stress_differs("the result by single steps of", rows[t].name, result,
                       rows[t].wanted(x));
    note_runs(t, x, &steps);
}

void stress_targets_init(void)
{
    static target_fn more[] = { stress_image, stress_circle_back };

    stress_insn_count = stress_entry_count = 0;
    for (size_t t = 0; t < TARGETS; t++)
        if (t != TARGET_IMAGE && t != TARGET_STRINGS_BAD)
            note_function(rows[t].fn);
    for (size_t i = 0; i < ARRAY_LEN(more); i++)
        note_function(more[i]);
    for (size_t t = 0; t < TARGETS; t++)
        for (uint64_t x = 0; x < STRESS_INPUTS; x++)
            step_through((enum stress_target)t, x);
    trap_set_handler(TRAP_DB, take_step);
}

const struct stress_insn *stress_entry(size_t n)
{
    const struct stress_insn *insn = stress_insns;

    while (!insn->is_entry || n--)
        insn++;
    return insn;
}

uint64_t stress_executed(const struct stress_insn *insn)
{
    const uint16_t *runs = &insn->runs[0][0][0];
    const uint64_t *times = &calls[0][0][0];
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof(calls) / sizeof(*times); i++)
        sum += runs[i] * times[i];
    return sum;
}
