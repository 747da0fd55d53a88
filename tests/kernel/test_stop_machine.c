/* test_stop_machine.c - while one CPU runs the function, all other CPUs stand still. */
#include "kernel/cpu/trap.h"
#include "kernel/debug/ksyms.h"
#include "kernel/sync/stop_machine.h"
#include "tests/kernel/ktest.h"

#define MS UINT64_C(1000000)

static bool stop_spinning;
static unsigned long spins[MAX_CPUS];

static NOINLINE int spin_here(void *arg)
{
    unsigned long *mine = arg;

    while (!READ_ONCE(stop_spinning))
        WRITE_ONCE(*mine, READ_ONCE(*mine) + 1);
    return 0;
}

/* Threads that spin on all CPUs but CPU 0, where this thread runs. */
struct spinners {
    int tids[MAX_CPUS];
};

static void spinners_start(struct spinners *s)
{
    WRITE_ONCE(stop_spinning, false);
    memset(spins, 0, sizeof(spins));
    thread_set_affinity(BIT(0));
    for (unsigned cpu = 1; cpu < cpu_count(); cpu++) {
        struct clone_args args = { .fn = spin_here,
                                   .arg = &spins[cpu],
                                   .cpus = BIT(cpu) };

        s->tids[cpu] = kernel_clone(&args);
    }
    for (unsigned cpu = 1; cpu < cpu_count(); cpu++)
        while (!READ_ONCE(spins[cpu]))
            thread_sleep_ns(MS);
}

static void spinners_stop(struct spinners *s)
{
    WRITE_ONCE(stop_spinning, true);
    for (unsigned cpu = 1; cpu < cpu_count(); cpu++)
        thread_join(s->tids[cpu], NULL);
    thread_set_affinity(UINT64_MAX);
}

struct findings {
    unsigned runs, regs, in_spin, irqs_were_on, moved, nmis;
    unsigned cpu;
    bool own_regs, irqs_on, running;
};

static void watch_regs(struct findings *f)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        const struct pt_regs *regs = stop_machine_regs(cpu);
        struct ksym sym;

        if (!regs)
            continue;
        f->regs++;
        f->irqs_were_on += (regs->flags & FLAGS_IF) != 0;
        f->in_spin += !ksyms_at(regs->ip, &sym) && !strcmp(sym.name, "spin_here");
    }
}

static void watch(void *arg)
{
    struct findings *f = arg;
    unsigned long before[MAX_CPUS];

    f->runs++;
    f->cpu = cpu_id();
    f->irqs_on = irqs_enabled();
    f->running = stop_machine_running();
    f->own_regs = stop_machine_regs(cpu_id()) != NULL;
    watch_regs(f);
    memcpy(before, spins, sizeof(before));
    clock_spin_ns(20 * MS);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        f->moved += READ_ONCE(spins[cpu]) != before[cpu];
}

KTEST(stop_machine, others_stand_still)
{
    struct findings f = { 0 };
    struct spinners s;
    unsigned others = cpu_count() - 1, went_on = 0;
    unsigned long after[MAX_CPUS];

    spinners_start(&s);
    stop_machine(watch, &f);
    memcpy(after, spins, sizeof(after));
    for (unsigned cpu = 1; cpu < cpu_count(); cpu++)
        for (unsigned n = 0; n < 1000 && READ_ONCE(spins[cpu]) == after[cpu]; n++)
            thread_sleep_ns(MS);
    for (unsigned cpu = 1; cpu < cpu_count(); cpu++)
        went_on += READ_ONCE(spins[cpu]) != after[cpu];
    spinners_stop(&s);
    ktest_report(f.runs == 1 && f.cpu == 0, "the function ran once, on the caller's CPU");
    ktest_report(!f.irqs_on && f.running, "with interrupts off, and knows why");
    ktest_report(!stop_machine_running(), "which is over afterwards");
    ktest_report(f.regs == others && !f.own_regs, "it saw the registers of %u others",
                 others);
    ktest_report(f.irqs_were_on == others, "all interrupted where interrupts were on");
    ktest_report(f.in_spin == others, "all in the function they were spinning in");
    ktest_report(f.moved == 0, "for 20 ms no counter moved");
    ktest_report(went_on == others, "then all went on");
}

static void nmi_all(void *arg)
{
    struct findings *f = arg;
    uint64_t before[MAX_CPUS];
    uint64_t end = clock_ns() + 60000 * MS; /* a busy host may take seconds */

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        before[cpu] = irq_count(cpu, TRAP_NMI);
    smp_stop_others(); /* sends NMIs; without a panic they do not stop a CPU */
    do {
        f->nmis = 0;
        for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
            f->nmis += irq_count(cpu, TRAP_NMI) > before[cpu];
    } while (f->nmis < cpu_count() - 1 && clock_ns() < end);
}

KTEST(stop_machine, parked_cpus_take_nmis)
{
    struct findings f = { 0 };

    stop_machine(nmi_all, &f);
    ktest_report(f.nmis == cpu_count() - 1, "each of %u parked CPUs took one",
                 cpu_count() - 1);
}

/* ---- together with other callers and calls ----------------------------------------- */

static unsigned acting, crowded, acts;

static void act_alone(void *arg UNUSED)
{
    if (__atomic_add_fetch(&acting, 1, __ATOMIC_SEQ_CST) != 1)
        crowded++;
    acts++;
    __atomic_sub_fetch(&acting, 1, __ATOMIC_SEQ_CST);
}

static void nothing(void *arg UNUSED)
{
}

static int stop_often(void *arg UNUSED)
{
    for (unsigned n = 0; n < 10; n++) {
        stop_machine(act_alone, NULL);
        smp_call_all(nothing, NULL);
    }
    return 0;
}

static int call_often(void *arg UNUSED)
{
    while (!READ_ONCE(stop_spinning))
        for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
            smp_call(cpu, nothing, NULL);
    return 0;
}

KTEST(stop_machine, several_callers_take_turns)
{
    struct clone_args stopper = { .fn = stop_often }, caller = { .fn = call_often };
    int tids[4];

    acts = 0;
    crowded = 0;
    WRITE_ONCE(stop_spinning, false);
    for (unsigned i = 0; i < 4; i++)
        tids[i] = kernel_clone(i < 2 ? &stopper : &caller);
    thread_join(tids[0], NULL);
    thread_join(tids[1], NULL);
    WRITE_ONCE(stop_spinning, true);
    thread_join(tids[2], NULL);
    thread_join(tids[3], NULL);
    ktest_report(acts == 20,
                 "two threads stopped the machine 10 times each, among calls");
    ktest_report(crowded == 0, "never both at once");
}

static void count_threads(struct thread *t UNUSED, void *arg)
{
    (*(unsigned *)arg)++;
}

static void walk_threads(void *arg)
{
    thread_for_each(count_threads, arg);
}

KTEST(stop_machine, threads_can_be_walked_meanwhile)
{
    unsigned count = 0;

    stop_machine(walk_threads, &count);
    ktest_report(count > cpu_count(), "%u threads were seen, idle ones included", count);
}
