/* explore_gdb_late.c - a CPU takes the NMI of a stop so late that the owner does not wait for
 * it. It may then stand for a moment, and must not stand for ever. If it does stand, it may
 * run alone; later it comes to a breakpoint of its own, which the debugger may have removed
 * by then.
 */
#include "probes/gdb/gdb_step.h"
#include "tests/explore/two_stops.h"

static struct pt_regs images[2], nmi_image = { .flags = FLAGS_FIXED | FLAGS_IF };
static bool has_reported;         /* CPU 1 its breakpoint */
static bool is_there ALIGNED(64); /* that breakpoint */

/* No CPU is stepped. */
void gdb_step_irqs(bool runs UNUSED)
{
}

static void talk(unsigned cpu)
{
    bool stands = gdb_cpu(1)->regs;

    explore_seen(stands ? "the other CPU stands" : "the other CPU is late");
    explore_check(!cpu || is_there, "no breakpoint is reported that was removed");
    has_reported |= cpu == 1;
    if (!cpu && explore_choose(2))
        WRITE_ONCE(is_there, false);
    gdb_release(stands && !has_reported && is_there && explore_choose(2) ? 1
                                                                         : GDB_ALL_CPUS);
}

static bool is_wanted(void *cpu)
{
    return !cpu || READ_ONCE(is_there);
}

static void stop(void)
{
    unsigned cpu = explore_cpu();

    explore_irqs(false);
    explore_check(gdb_stop(&images[cpu], GDB_WHY_BREAK, is_wanted, cpu ? &cpu : NULL),
                  "the CPU stops");
    explore_check(!gdb_cpu(cpu)->regs, "and goes on");
}

static void nmi(void)
{
    two_stops_nmi(&nmi_image);
}

static void start(void)
{
    cpus_online = 2;
    is_there = true;
    two_stops_late = 200000000;
    gdb_stop_init(talk);
}

static void end(void)
{
    explore_check(!gdb_cpu(1)->regs, "the late CPU does not stand");
    explore_check(!gdb_is_stopping(), "no CPU is to stand");
}

const struct scenario scenario = {
    .start = start,
    .end = end,
    .actors = { { "cpu0", stop, 0, EXPLORE_THREAD },
                { "cpu1", stop, 1, EXPLORE_THREAD },
                { "nmi1", nmi, 1, EXPLORE_NMI, two_stops_sent_1 } },
    .outcomes = { "the other CPU stands", "the other CPU is late" },
};
