/* explore_gdb_lock.c - a CPU waits for a lock, with interrupts off, while the CPU that has
 * the lock comes to a breakpoint. The debugger sees it there at once: it would wait for
 * ever.
 */
#include "kernel/sync/spinlock.h"
#include "probes/gdb/gdb_step.h"
#include "tests/explore/two_stops.h"

static struct spinlock lock;
static struct pt_regs image, waiting = { .flags = FLAGS_FIXED };

/* No CPU is stepped. */
void gdb_step_irqs(bool runs UNUSED)
{
}

static void talk(unsigned cpu UNUSED)
{
    explore_check(gdb_cpu(1)->regs == &waiting, "the other CPU stands");
    gdb_release(GDB_ALL_CPUS);
}

static void holder(void)
{
    spin_lock(&lock);
    gdb_stop(&image, GDB_WHY_BREAK, NULL, NULL);
    spin_release(&lock);
    preempt_enable_no_resched();
}

static bool is_taken(const void *arg UNUSED)
{
    return lock.holder;
}

static void waiter(void)
{
    explore_wait(is_taken, NULL);
    spin_lock(&lock);
    spin_release(&lock);
    preempt_enable_no_resched();
}

/* has_come - the NMI of a stop comes again while this CPU waits. */
static bool has_come(void)
{
    return two_stops_sent_1() && percpu_of(1)->waits_for;
}

static void nmi(void)
{
    two_stops_nmi(&waiting);
}

static void start(void)
{
    cpus_online = 2;
    gdb_stop_init(talk);
}

static void end(void)
{
    explore_check(!percpu_of(1)->waits_for, "no CPU waits");
}

const struct scenario scenario = {
    .start = start,
    .end = end,
    .actors = { { "cpu0", holder, 0, EXPLORE_THREAD },
                { "cpu1", waiter, 1, EXPLORE_THREAD },
                { "nmi1", nmi, 1, EXPLORE_NMI, has_come } },
};
