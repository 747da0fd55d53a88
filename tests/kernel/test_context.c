/* test_context.c - probes in the code of traps, NMIs, timer, scheduler, and calls between
 * CPUs; and hits with unusual flags, or on a CPU that is not ready for probes.
 */
#include "kernel/cpu/trap.h"
#include "kernel/debug/ksyms.h"
#include "kernel/mm/extable.h"
#include "kernel/sync/quiesce.h"
#include "kernel/work/work.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nothing.h"
#include "tests/kernel/own_steps.h"

#define ROUNDS 12u

/* context_targets.asm */
unsigned long flags_around(unsigned long flags);
bool load_not_canonical(void);
extern const char flags_around_nop[];

/* ---- what a hit must not spoil: flags -------------------------------------------------- */

static volatile unsigned long flags_in_handler, flags_in_image;

static int look_at_flags(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    flags_in_handler = read_flags();
    flags_in_image = regs->flags;
    return 0;
}

static const unsigned long odd_flags[] = {
    FLAGS_DF,
    FLAGS_AC,
    FLAGS_NT,
    FLAGS_DF | FLAGS_AC | FLAGS_NT | FLAGS_ID | FLAGS_CF | FLAGS_ZF,
    FLAGS_CF | FLAGS_PF | FLAGS_AF | FLAGS_ZF | FLAGS_SF | FLAGS_OF,
};

static void flags_under(kprobe_post_handler_t post, const char *how)
{
    struct kprobe p = { .addr = (uintptr_t)flags_around_nop,
                        .pre_handler = look_at_flags,
                        .post_handler = post };
    unsigned same = 0, seen = 0, clean = 0;

    for (size_t i = 0; i < ARRAY_LEN(odd_flags); i++) {
        unsigned long alone = flags_around(odd_flags[i] | FLAGS_FIXED), probed;

        register_kprobe(&p);
        probed = flags_around(odd_flags[i] | FLAGS_FIXED);
        unregister_kprobe(&p);
        same += probed == alone;
        seen += flags_in_image == alone;
        clean += !(flags_in_handler & (FLAGS_DF | FLAGS_NT | FLAGS_TF | FLAGS_IF));
    }
    ktest_report(same == ARRAY_LEN(odd_flags), "%s: the program keeps its flags", how);
    ktest_report(seen == ARRAY_LEN(odd_flags), "%s: the handler sees them", how);
    ktest_report(clean == ARRAY_LEN(odd_flags), "%s: and has clean ones itself", how);
}

KTEST(context, odd_flags_are_the_programs_own)
{
    flags_under(NULL, "boosted");
    flags_under(no_post, "stepped by int3");
    step_set_engine(STEP_TF);
    flags_under(no_post, "stepped by TF");
    step_set_engine(STEP_INT3);
}

/* ---- a program that steps itself ------------------------------------------------------- */

#define STEPS_SEEN 4

static struct {
    uintptr_t at[STEPS_SEEN];
    unsigned count;
} steps;

static void note_few(struct pt_regs *regs)
{
    steps.at[steps.count++] = regs->ip;
    if (steps.count == STEPS_SEEN)
        regs->flags &= ~FLAGS_TF;
}

/* The way back from a single-step trap sets TF and ip by the same instruction.
 * Otherwise the next trap would come before the program has executed an
 * instruction, again and again.
 */
KTEST(context, behind_each_trap_an_instruction_is_executed)
{
    unsigned further = 0;

    steps.count = 0;
    own_steps_watch(note_few);
    __asm__ volatile("pushfq\n\t"
                     "orq %0, (%%rsp)\n\t"
                     "popfq\n\t"
                     ".rept 8\n\t"
                     "nop\n\t"
                     ".endr" ::"i"(FLAGS_TF)
                     : "cc", "memory");
    own_steps_unwatch();
    for (unsigned i = 1; i < steps.count; i++)
        further += steps.at[i] == steps.at[i - 1] + 1;
    ktest_report(steps.count == STEPS_SEEN && further == STEPS_SEEN - 1,
                 "%u traps, %u of them one instruction further", steps.count, further);
}

/* ---- a CPU that is not ready for probes ------------------------------------------------ */

KTEST_TARGET(target, x, x * 6 + 5)

static volatile unsigned wrong;

static void without_area(void *unused UNUSED)
{
    struct percpu *cpu = this_cpu();
    void *area = cpu->probe;

    cpu->probe = NULL;
    barrier();
    if (target(4) != 29)
        wrong++;
    barrier();
    cpu->probe = area;
}

KTEST(context, before_a_cpu_has_its_area_hits_are_early)
{
    struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = no_pre };

    wrong = 0;
    register_kprobe(&p);
    smp_call_all(without_area, NULL);
    target(1);
    unregister_kprobe(&p);
    ktest_report(p.missed[MISS_EARLY] == cpu_count(), "%lu early hits on %u CPUs",
                 p.missed[MISS_EARLY], cpu_count());
    ktest_report(p.hits == 1, "with its area, a CPU runs handlers");
    ktest_report(wrong == 0, "the function returned what it should");
}

/* ---- an interrupt that waits until a trap ends ----------------------------------------- */

static struct {
    struct ksym way_back;
    unsigned came, on_the_way;
} waiting;

static int send_to_myself(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    smp_send_reschedule(cpu_id());
    return 0;
}

static int look_at_interrupted(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    const struct pt_regs *interrupted = (const struct pt_regs *)regs->di;

    waiting.came++;
    waiting.on_the_way +=
        interrupted->ip - waiting.way_back.start < waiting.way_back.size;
    return 0;
}

/* The handler sends an interrupt to its own CPU, where interrupts are off until the end
 * of the trap. Then the interrupt comes, and it must have interrupted the program: if it
 * had interrupted the way back of the trap, its ip would lie in trap_exit.
 */
KTEST(context, an_interrupt_behind_a_trap_comes_where_the_program_goes_on)
{
    struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = send_to_myself };
    struct kprobe irq = { .symbol_name = "resched_irq",
                          .pre_handler = look_at_interrupted };
    unsigned right = 0;

    waiting.came = waiting.on_the_way = 0;
    ktest_report(ksyms_find("trap_exit", &waiting.way_back) == 0 &&
                     register_kprobe(&p) == 0 && register_kprobe(&irq) == 0,
                 "two probes");
    thread_set_affinity(BIT(0));
    for (unsigned i = 0; i < 20; i++)
        right += target(4) == 29;
    unregister_kprobe(&irq);
    unregister_kprobe(&p);
    ktest_report(right == 20 && waiting.came >= 20, "%u interrupts", waiting.came);
    ktest_report(!waiting.on_the_way, "none of them in trap_exit");
}

/* ---- the machinery, counted ------------------------------------------------------------ */

static uint64_t nmis(void)
{
    uint64_t sum = 0;

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        sum += irq_count(cpu, TRAP_NMI);
    return sum;
}

static uint64_t ticks(void)
{
    uint64_t sum = 0;

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        sum += irq_count(cpu, VECTOR_TIMER);
    return sum;
}

static volatile uint64_t faults, fixed, calls, quiesces, yields;

static uint64_t count_faults(void)
{
    return faults;
}

static uint64_t count_fixed(void)
{
    return fixed;
}

static uint64_t count_calls(void)
{
    return calls;
}

static uint64_t count_quiesces(void)
{
    return quiesces;
}

static uint64_t count_yields(void)
{
    return yields;
}

static struct machine {
    const char *symbol;
    uint64_t (*count)(void);
    bool is_all; /* count() counts each call of the function */
    struct kprobe p;
    uint64_t before, from, to;
} machines[] = {
    { .symbol = "nmi_dispatch", .count = nmis, .is_all = true },
    { .symbol = "sched_tick", .count = ticks, .is_all = true },
    { .symbol = "trap_dispatch", .count = count_faults },
    { .symbol = "extable_fixup", .count = count_fixed },
    { .symbol = "smp_call_all", .count = count_calls },
    { .symbol = "quiesce", .count = count_quiesces },
    { .symbol = "schedule", .count = count_yields },
    { .symbol = "leave_cpu", .count = count_yields },
    { .symbol = "switch_to", .count = count_yields },
    { .symbol = "sched_arrive", .count = count_yields },
};

static void do_nothing(void *unused UNUSED)
{
}

static void exercise(void)
{
    for (unsigned n = 0; n < ROUNDS; n++) {
        char byte;

        smp_send_nmi(n % cpu_count());
        if (copy_nofault(&byte, (const void *)0x10, 1) != -EFAULT ||
            !load_not_canonical())
            wrong++;
        faults += 2;
        fixed += 2;
        smp_call_all(do_nothing, NULL);
        calls++;
        if (n % 4 == 0) {
            quiesce();
            quiesces++;
        }
    }
}

static unsigned yielding;

/* Two threads run this on one CPU. They wait for each other, and then
 * switch to each other.
 */
static int yield_often(void *unused UNUSED)
{
    __atomic_add_fetch(&yielding, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&yielding, __ATOMIC_RELAXED) < 2)
        thread_yield();
    for (unsigned n = 0; n < ROUNDS; n++)
        thread_yield();
    return 0;
}

static void exercise_scheduler(void)
{
    struct clone_args args = { .fn = yield_often, .cpus = BIT(cpu_count() - 1) };
    int a, b;

    yielding = 0;
    a = kernel_clone(&args);
    b = kernel_clone(&args);
    thread_join(a, NULL);
    thread_join(b, NULL);
    yields += ROUNDS; /* until one thread is done, each yield switches to the other */
}

static volatile bool at_work;
static volatile uint64_t checksum;

/* keep_working - run two workloads until at_work is false, but at least once. */
static int keep_working(void *unused UNUSED)
{
    static const char *const names[] = { "fault", "fork" };
    struct seq out;

    do {
        seq_init(&out, NULL, NULL);
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            if (workload_run(names[i], 0, NULL, &out, NULL, NULL))
                wrong++;
        checksum = work_hash_text(seq_str(&out), strlen(seq_str(&out)));
        seq_free(&out);
    } while (at_work);
    return 0;
}

static int worker_start(bool go_on)
{
    at_work = go_on;
    checksum = 0;
    return ktest_thread(keep_working, NULL, 0);
}

static void machines_watch(kprobe_post_handler_t post)
{
    for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
        struct machine *m = &machines[i];

        m->p = (struct kprobe){ .symbol_name = m->symbol,
                                .pre_handler = no_pre,
                                .post_handler = post };
        m->before = m->count();
        ktest_report(register_kprobe(&m->p) == 0, "a probe on %s", m->symbol);
        m->from = m->count();
    }
}

/* When the probe is removed, a CPU may have counted an interrupt whose handler it has not
 * yet called. So each CPU may have counted one call more than the probe has seen.
 */
static void machine_judge(const struct machine *m)
{
    uint64_t seen = m->p.hits + m->p.nmissed, counted = m->to - m->from;
    uint64_t most = m->is_all ? m->count() - m->before : UINT64_MAX;

    ktest_report(counted > 0 && seen + cpu_count() >= counted && seen <= most,
                 "%s: %lu hits, %lu missed, of %lu", m->symbol, m->p.hits, m->p.nmissed,
                 counted);
}

static void machines_release(void)
{
    for (size_t i = ARRAY_LEN(machines); i-- > 0;) {
        struct machine *m = &machines[i];

        m->to = m->count();
        unregister_kprobe(&m->p);
        machine_judge(m);
    }
}

static void machinery_under(kprobe_post_handler_t post)
{
    uint64_t alone, first_tick;
    int tid;

    wrong = 0;
    thread_join(worker_start(false), NULL);
    alone = checksum;
    machines_watch(post);
    first_tick = ticks();
    tid = worker_start(true);
    do {
        exercise();
        exercise_scheduler();
    } while (!checksum || ticks() == first_tick);
    at_work = false;
    thread_join(tid, NULL);
    machines_release();
    ktest_report(wrong == 0, "all of it did what it should");
    ktest_report(checksum == alone, "so did the workloads meanwhile");
}

KTEST(context, the_machinery_carries_probes_while_it_works)
{
    machinery_under(NULL);
}

KTEST(context, and_steps_by_int3)
{
    machinery_under(no_post);
}

KTEST(context, and_steps_by_tf)
{
    step_set_engine(STEP_TF);
    machinery_under(no_post);
    step_set_engine(STEP_INT3);
}

/* ---- the switch itself ----------------------------------------------------------------- */

#define INSNS_MAX 24

static struct kprobe inside[INSNS_MAX];
static size_t inside_count;

static void add_inside(const struct insn *insn, void *unused UNUSED)
{
    if (inside_count < INSNS_MAX)
        inside[inside_count++] =
            (struct kprobe){ .addr = insn->addr, .pre_handler = no_pre };
}

/* Each switch executes every instruction of switch_to() once: on the old stack, on the
 * new one, and where it exchanges them. The counts may differ a little, because a CPU may
 * be inside of switch_to() when the probes are armed or disarmed.
 */
KTEST(context, every_instruction_of_switch_to)
{
    struct kprobe *all[INSNS_MAX];
    struct plat_symbol function;
    uint64_t least = UINT64_MAX, most = 0;

    inside_count = 0;
    yields = 0;
    plat_symbol_find("switch_to", &function);
    plat_lock(PLAT_PROBES);
    boundary_for_each(&function, add_inside, NULL);
    plat_unlock(PLAT_PROBES);
    for (size_t i = 0; i < inside_count; i++)
        all[i] = &inside[i];
    ktest_report(inside_count > 10 && register_kprobes(all, inside_count) == 0,
                 "all %zu instructions carry a probe", inside_count);
    for (unsigned n = 0; n < 10; n++)
        exercise_scheduler();
    unregister_kprobes(all, inside_count);
    for (size_t i = 0; i < inside_count; i++) {
        uint64_t seen = inside[i].hits + inside[i].nmissed;

        least = seen < least ? seen : least;
        most = seen > most ? seen : most;
    }
    ktest_report(least >= yields, "each was hit in at least %lu switches, %lu times",
                 yields, least);
    ktest_report(most - least <= 2 * cpu_count(), "and all of them as often");
}
