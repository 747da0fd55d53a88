/* explore_gdb_stop.c - two CPUs come to breakpoints of the debugger at the same time. At the
 * first two stops the debugger may let one CPU run alone, and ask for a stop meanwhile. It
 * sees each CPU in the program, and not in the hit of a breakpoint, or on the way into the
 * hit and out, where interrupts are off, or in a detour.
 */
#include "probes/gdb/gdb_step.h"
#include "tests/explore/two_stops.h"

static struct pt_regs images[2], nmi_images[2];
static bool on_the_way[2], in_detour[2];
static bool serves, asked;
static uint64_t polls; /* 0 or 1 */
static unsigned stops;
static int alone ALIGNED(64) = GDB_ALL_CPUS;
static unsigned reports[2];

/* No CPU is stepped. */
void gdb_step_irqs(bool runs UNUSED)
{
}

/* runs_alone - choose: the CPU that has stopped, another one that has still to come to its
 * breakpoint, or all.
 */
static int runs_alone(unsigned cpu)
{
    switch (explore_choose(reports[!cpu] ? 2 : 3)) {
    case 0:
        return GDB_ALL_CPUS;
    case 1:
        explore_seen("a CPU runs alone");
        return (int)cpu;
    default:
        explore_seen("another CPU runs alone");
        return !cpu;
    }
}

/* talk - what the debugger does at a stop. */
static void talk(unsigned cpu)
{
    explore_check(!serves, "one CPU serves at a time");
    explore_check(!polls, "nobody else reads the line meanwhile");
    serves = true;
    for (unsigned i = 0; i < 2; i++) {
        explore_check(gdb_cpu(i)->regs, "all CPUs stand");
        explore_check(!(on_the_way[i] || machine[i].inside) ||
                          gdb_cpu(i)->regs == &images[i],
                      "a CPU that has a hit stands in the program");
        explore_check(gdb_cpu(i)->regs->ip < TWO_STOPS_DETOUR, "not in a detour");
    }
    explore_check(gdb_cpu(cpu)->why, "the CPU that serves has a reason");
    reports[cpu]++;
    alone = GDB_ALL_CPUS;
    if (gdb_cpu(cpu)->why == GDB_WHY_BREAK && stops++ < 2)
        alone = runs_alone(cpu);
    for (unsigned i = 0; i < 2; i++)
        explore_check(gdb_cpu(i)->regs, "they still do");
    serves = false;
    gdb_release(alone);
}

static bool poll(void)
{
    bool asks;

    polls = 1;
    explore_check(!serves, "the line is read only while no CPU serves");
    asks = !asked && explore_choose(2);
    asked |= asks;
    polls = 0;
    return asks;
}

static bool is_wanted(void *arg UNUSED)
{
    return true;
}

/* stop - come to a breakpoint; and when this CPU runs alone, to a second one. */
static void stop(void)
{
    unsigned cpu = explore_cpu();

    in_detour[cpu] = false;
    two_stops_again();
    explore_irqs(false);
    on_the_way[cpu] = true;
    do {
        explore_check(alone < 0 || alone == (int)cpu, "the other CPU stands");
        machine_enter();
        gdb_stop(&images[cpu], GDB_WHY_BREAK, is_wanted, NULL);
        machine_leave();
    } while (alone == (int)cpu);
    on_the_way[cpu] = false;
    two_stops_again();
    explore_irqs(true);
}

static void stop_twice(void)
{
    in_detour[0] = true;
    stop();
    stop();
}

/* nmi - comes to the program, to the way, or to a handler, which has interrupts on. */
static void nmi(void)
{
    unsigned cpu = explore_cpu();
    bool is_off = on_the_way[cpu] && !machine[cpu].inside;

    nmi_images[cpu].flags = FLAGS_FIXED | (is_off ? 0 : FLAGS_IF);
    nmi_images[cpu].ip = in_detour[cpu] ? TWO_STOPS_DETOUR : 0;
    two_stops_nmi(&nmi_images[cpu]);
}

static void start(void)
{
    cpus_online = 2;
    gdb_stop_init(talk);
    two_stops_poll = poll;
}

static void end(void)
{
    explore_check(!gdb_is_stopping(), "no CPU is to stand");
    for (unsigned i = 0; i < 2; i++)
        explore_check(!gdb_cpu(i)->regs, "no CPU stands");
    explore_check(reports[0] && reports[1], "each stop is reported");
}

const struct scenario scenario = {
    .start = start,
    .end = end,
    .actors = { { "cpu0", stop_twice, 0, EXPLORE_THREAD },
                { "nmi0", nmi, 0, EXPLORE_NMI, two_stops_sent_0 },
                { "cpu1", stop, 1, EXPLORE_THREAD },
                { "nmi1", nmi, 1, EXPLORE_NMI, two_stops_sent_1 } },
    .outcomes = { "a CPU runs alone", "another CPU runs alone" },
    .preemptions = 1,
    .is_cut = true,
};
