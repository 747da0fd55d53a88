/* stress.c - runs rounds of a second each. In a round, probes are made at random, and a
 * crowd runs into them. Then all probes are unregistered, and the test checks that
 * memory, text and counters are as they were before the round.
 *
 *     tests=stress.rounds seed=N seconds=N round=N classes=LIST
 *
 * A round depends only on the seed and on its number, as far as QEMU repeats itself. A
 * line is printed for each round; after the first round that differs, the test ends.
 * tests/stress/stress.py reads these lines.
 */
#include "tests/stress/stress.h"
#include "probes/core/insn_slot.h"
#include "probes/core/registry.h"
#include "probes/explain/totals.h"
#include "probes/gdb/gdb_monitor.h"
#include "probes/jump/optimize.h"
#include "probes/jump/pad.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/shadow.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/text_sum.h"

#include <stdlib.h>

#define ROUND_NS UINT64_C(1000000000)
#define MS UINT64_C(1000000)
#define GDB_MS 60000 /* the stub frees what the debugger has left */

/* ---- differences ---- */

#define SHOWN_MAX 40

static struct difference {
    const char *what, *where;
    uint64_t got, wanted;
} differences[SHOWN_MAX];
static unsigned difference_count;

void stress_differs(const char *what, const char *where, uint64_t got, uint64_t wanted)
{
    unsigned i = __atomic_fetch_add(&difference_count, 1, __ATOMIC_RELAXED);

    if (i < SHOWN_MAX)
        differences[i] = (struct difference){ what, where, got, wanted };
}

static void print_differences(void)
{
    for (unsigned i = 0; i < difference_count && i < SHOWN_MAX; i++)
        ktest_note("differs: %s %s %lu (0x%lx), not %lu (0x%lx)", differences[i].what,
                   differences[i].where, differences[i].got, differences[i].got,
                   differences[i].wanted, differences[i].wanted);
    if (difference_count > SHOWN_MAX)
        ktest_note("differs: %u more", difference_count - SHOWN_MAX);
}

/* ---- what must be as before a round ---- */

static struct {
    uint64_t text;
    size_t heap;
} before;

static int nothing(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

/* sweep - register and unregister a return probe with data. Before the first round this
 * allocates shadows for all threads, which stay. After a round it frees what other return
 * probes have left.
 */
static void sweep(void)
{
    struct kretprobe rp = { .kp.addr = (uintptr_t)stress_elsewhere,
                            .handler = nothing,
                            .data_size = 8 };

    if (register_kretprobe(&rp) || unregister_kretprobe(&rp))
        stress_differs("no return probe at", "stress_elsewhere", 1, 0);
}

struct owner {
    const struct shadow *s;
    char name[THREAD_NAME_LEN];
};

static void find_owner(struct thread *t, void *arg)
{
    struct owner *owner = arg;

    if (t->probe == owner->s)
        memcpy(owner->name, t->name, sizeof(owner->name));
}

/* print_entries - say which calls are left in @s. */
static void print_entries(const struct shadow *s)
{
    struct owner owner = { s, "an NMI" };

    thread_for_each(find_owner, &owner);
    for (const struct shadow_entry *e = s->last; e > s->entries; e--)
        ktest_note(
            "left in the shadow of %s: the call that returns to %lx, %u bytes below the "
            "top, for a probe at %lx",
            owner.name, shadow_ret(e), e->below,
            e->holder->rp ? e->holder->rp->kp.addr : 0);
}

static void expect_empty(struct shadow *s, void *arg UNUSED)
{
    if (!shadow_is_empty(s)) {
        print_entries(s);
        stress_differs("entries left in a shadow", "", (uint64_t)(s->last - s->entries),
                       0);
    }
    if (s->data_used)
        stress_differs("data left in a shadow", "", s->data_used, 0);
}

static void expect_same(const char *what, uint64_t got, uint64_t wanted)
{
    if (got != wanted)
        stress_differs(what, "", got, wanted);
}

/* look_at_cpu - check the state of this CPU. A thread on each CPU runs it. */
static int look_at_cpu(void *arg UNUSED)
{
    const struct probe_cpu *cpu = plat_this_cpu();
    uint64_t flags = read_flags();

    expect_same("preemption count", (uint64_t)preempt_count(), 0);
    expect_same("context", cpu_context(), CTX_THREAD);
    expect_same("IF, DF, AC", flags & (FLAGS_IF | FLAGS_DF | FLAGS_AC), FLAGS_IF);
    expect_same("active hits", cpu->depth, 0);
    expect_same("light handlers", (uintptr_t)light_frame(cpu), 0);
    for (size_t i = 0; i < PROBE_NEST_MAX; i++)
        if (cpu->hits[i].site || cpu->hits[i].running)
            stress_differs("a hit that is over names its site", "", i, 0);
    return 0;
}

/* compare_when_quiet - compare after the crowd has ended, while the
 * probes are registered.
 */
static void compare_when_quiet(void)
{
    plat_shadow_for_each(expect_empty, NULL);
    each_cpu_run(look_at_cpu, NULL);
    stress_locks_check();
    stress_steps_check();
    if (plat_lock_held(PLAT_PROBES) || plat_lock_held(PLAT_TEXT))
        stress_differs("a lock of the engine is held", "", 1, 0);
}

/* compare_when_empty - compare after all probes were unregistered. */
static void compare_when_empty(void)
{
    optimize_set_method(OPTIMIZE_OFF);
    sweep();
    while (gdb_monitor_has_work()) /* on a slow host a command may take long */
        thread_sleep_ns(MS);
    for (unsigned ms = 0; heap_in_use() != before.heap && ms < GDB_MS; ms++)
        thread_sleep_ns(MS);
    expect_same("the sum of the text", text_sum(), before.text);
    expect_same("sites", registry_count(), 0);
    expect_same("pages of pads", pad_pages(), 0);
    expect_same("pages of cells", insn_slot_pages(), 0);
    expect_same("bytes of the heap", heap_in_use(), before.heap);
}

/* ---- a round ---- */

static uint64_t handler_faults(void)
{
    struct probe_totals totals;

    account_totals(&totals);
    return totals.handler_faults;
}

/* While a round is open, a debugger may come (debugger.py). It reads and writes these two
 * in the stopped kernel: @in says that it has breakpoints.
 */
volatile struct {
    uint8_t open, in;
} stress_debugger;

/* wait_for_debugger - wait until the debugger has taken its breakpoints back. */
static void wait_for_debugger(void)
{
    stress_debugger.open = 0;
    while (stress_debugger.in)
        thread_sleep_ns(MS);
}

static const char *const method_names[OPTIMIZE_METHODS] = { "pun", "region", "off" };

static void run(uint64_t *state)
{
    uint64_t end = clock_ns() + ROUND_NS;

    stress_debugger.open = 1;
    stress_crowd_start(stress_next(state));
    while (clock_ns() < end) {
        stress_slots_change(state);
        stress_crowd_disturb(state);
        thread_sleep_ns(MS);
    }
    stress_crowd_end();
    wait_for_debugger();
}

static void print_round(uint64_t number, const char *jumps, uint64_t faults)
{
    struct stress_sums sums;

    stress_slots_sums(&sums);
    ktest_note("round %lu: %s, %s, %u probes (%u jumps), calls %lu hits %lu missed %lu "
               "returns %lu faults %lu locks %lu: %s",
               number, jumps, step_get_engine() == STEP_TF ? "TF" : "int3", sums.probes,
               sums.jumps, stress_calls(), sums.hits, sums.missed, sums.returns, faults,
               stress_faults.locks, difference_count ? "differs" : "same");
}

/* chosen - return all of @classes, or a random part of them. */
static uint32_t chosen(uint32_t classes, uint64_t *state)
{
    uint32_t some = (uint32_t)stress_next(state);

    return stress_next(state) % 2 ? classes : classes & some;
}

/* one_round - run round @number. Return: is all as it should be? */
static bool one_round(uint64_t seed, uint64_t number, uint32_t classes)
{
    uint64_t state = stress_mix(seed) ^ stress_mix(number), faults = handler_faults();
    enum optimize_method method =
        (enum optimize_method)(stress_next(&state) % OPTIMIZE_METHODS);

    difference_count = 0;
    stress_calls_reset();
    stress_misbehave_reset();
    step_set_engine(stress_next(&state) % 3 ? STEP_INT3 : STEP_TF);
    optimize_set_method(method);
    stress_slots_make(&state, chosen(classes, &state));
    run(&state);
    stress_others_end();
    compare_when_quiet();
    stress_slots_out();
    compare_when_empty();
    stress_slots_judge();
    faults = handler_faults() - faults;
    expect_same("handlers given up", faults, stress_faults.begun - stress_faults.dealt);
    print_round(number, method_names[method], faults);
    print_differences();
    if (difference_count)
        stress_slots_print();
    step_set_engine(STEP_INT3);
    return !difference_count;
}

/* ---- all rounds ---- */

static uint64_t number_of(const char *word, uint64_t otherwise)
{
    char text[24];

    return ktest_word(word, text, sizeof(text)) ? strtoul(text, NULL, 0) : otherwise;
}

static uint32_t wanted_classes(void)
{
    char list[256];

    if (!ktest_word("classes", list, sizeof(list)))
        return (uint32_t)BIT(STRESS_CLASSES) - 1;
    return stress_classes_of(list);
}

static void prepare(void)
{
    jumps_by(OPTIMIZE_OFF);
    stress_crowd_init();
    stress_targets_init();
    stress_others_first();
    sweep();
    before.text = text_sum();
    before.heap = heap_in_use();
    ktest_note("%zu instructions, %zu of them entries", stress_insn_count,
               stress_entry_count);
}

KTEST_ALONE(stress, rounds)
{
    uint64_t seed = number_of("seed", 1), number = number_of("round", 0), first = number;
    uint64_t end = clock_ns() + number_of("seconds", 20) * UINT64_C(1000000000);
    uint32_t classes = wanted_classes();
    bool same = true;

    ktest_report(classes, "the classes are known");
    prepare();
    print_differences();
    same = !difference_count;
    while (classes && same && clock_ns() < end)
        same = one_round(seed, number++, classes);
    ktest_report(same && number > first, "all is the same behind %lu rounds",
                 number - first);
}
