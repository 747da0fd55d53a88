/* explore_gdb_late.c - a CPU takes the NMI of a stop so late that the owner does not wait for
 * it. It may then stand for a moment, and must not stand for ever.
 */
#include "probes/gdb/gdb_step.h"
#include "tests/explore/two_stops.h"

static struct pt_regs image, nmi_image = { .flags = FLAGS_FIXED | FLAGS_IF };

/* No CPU is stepped. */
void gdb_step_irqs(bool runs UNUSED)
{
}

static void talk(unsigned cpu UNUSED)
{
    explore_seen(gdb_cpu(1)->regs ? "the other CPU stands" : "the other CPU is late");
    gdb_release(GDB_ALL_CPUS);
}

static void stop(void)
{
    explore_irqs(false);
    explore_check(gdb_stop(&image, GDB_WHY_BREAK, NULL, NULL), "the CPU stops");
    explore_check(!gdb_cpu(0)->regs, "and goes on");
}

static void other(void)
{
    explore_point();
}

static void nmi(void)
{
    two_stops_nmi(&nmi_image);
}

static void start(void)
{
    cpus_online = 2;
    two_stops_late = 100000000;
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
                { "cpu1", other, 1, EXPLORE_THREAD },
                { "nmi1", nmi, 1, EXPLORE_NMI, two_stops_sent_1 } },
    .outcomes = { "the other CPU stands", "the other CPU is late" },
};
