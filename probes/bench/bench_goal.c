/* bench_goal.c - has the goals of `bench`, which are printed beside the figures. A goal
 * is an aim and not a test, because everything takes longer on a busy host.
 *
 * The table here has all goals but two groups. Goals that need figures of another kernel
 * are in probes/bench/host/compare.py. Goals for a processor without an emulator are in
 * tests/hosted/bench_native.c.
 */
#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/time/clock.h"
#include "probes/bench/bench.h"

#include <extra.h>
#include <string.h>

/* The most that a figure should be: in hundredths of its unit, or of another figure. */
struct goal {
    const char *figure; /* a pattern for its name */
    uint64_t most;
    const char *of;    /* the other figure, which is measured before; or NULL */
    bool only_in_time; /* no goal where each instruction is one cycle */
};

static const struct goal goals[] = {
    /* A hit by a jump must be much cheaper than a hit by two traps. */
    { "hit.opt.cycles", 10, "hit.int3_tf.cycles", true },
    /* Linux has no figures of these kinds, or none any more. So each kind is compared
     * with the next kind that is more expensive.
     */
    { "hit.kret_opt_posthandler.cycles", 100, "hit.kret_int3_unboostable.cycles", true },
    { "hit.jprobe_int3.cycles", 100, "hit.jprobe_int3_unboostable.cycles", true },
    { "hit.jprobe_opt.cycles", 100, "hit.jprobe_int3.cycles", true },
    { "hit.jprobe_opt_posthandler.cycles", 100, "hit.jprobe_int3_unboostable.cycles",
      true },
    { "hit.jprobe_kret_int3.cycles", 100, "hit.jprobe_kret_int3_unboostable.cycles",
      true },
    { "hit.jprobe_kret_opt.cycles", 100, "hit.jprobe_kret_int3.cycles", true },
    /* Among many probes one probe costs as much as among few. */
    { "scale.hit.*.cycles", 110, "scale.hit.1.cycles", false },
    { "scale.register_one_by_one.*.ns_per_probe", 110,
      "scale.register_one_by_one.1000.ns_per_probe", false },
    { "scale.register_set.*.ns_per_probe", 110, "scale.register_set.1000.ns_per_probe",
      false },
    { "scale.unregister_one_by_one.*.ns_per_probe", 110,
      "scale.unregister_one_by_one.1000.ns_per_probe", false },
    { "scale.unregister_set.*.ns_per_probe", 110,
      "scale.unregister_set.1000.ns_per_probe", false },
    { "scale.register_one_by_one.37222.total", 100 * UINT64_C(5000000), NULL, true },
    { "scale.register_set.37222.total", 100 * UINT64_C(500000), NULL, true },
    { "scale.optimize_set.37222.total", 100 * UINT64_C(2000000), NULL, true },
    { "scale.unoptimize_set.37222.total", 100 * UINT64_C(1000000), NULL, true },
    { "mem.per_probe.bytes", 100 * 200, NULL, false },
    { "mem.jump_page_tables.bytes", 100 * 9 * MiB, NULL, false },
    /* The kernel's own work. */
    { "counted.entries.slowdown", 200, NULL, false },
    { "counted.instructions.slowdown", 1500, NULL, false },
    { "counted.instructions.memory", 100 * 180, NULL, false },
    /* All places of a marker change together: 0.3 s. */
    { "marker.switch.10000.*", 100 * UINT64_C(300000), NULL, true },
    /* Events of the tracer: 1 s for all lines, 0.2 s for the write that enables them. The
     * last lines cost as much as the first.
     */
    { "events.define.1000.total", 100 * UINT64_C(1000000), NULL, true },
    { "events.define.last_100", 110, "events.define.first_100", false },
    { "events.enable.1000", 100 * UINT64_C(200000), NULL, true },
    /* How late other threads wake by a jump, compared with a trap; and the time to
     * unregister: 100 ms and the time of one handler.
     */
    { "starve.*.late_by_trap", 200, NULL, true },
    { "starve.50us.*.unregister", 100 * UINT64_C(100050), NULL, true },
    { "starve.1ms.*.unregister", 100 * UINT64_C(101000), NULL, true },
    { "starve.3ms.*.unregister", 100 * UINT64_C(103000), NULL, true },
};

/* Of one run of the command. Only the shell's thread uses them. */
static uint64_t
    others[ARRAY_LEN(goals)]; /* the figure that goal i refers to; 0: not measured */
static struct bench_verdict total;

void bench_goals_begin(void)
{
    memset(others, 0, sizeof(others));
    total = (struct bench_verdict){ 0 };
}

struct bench_verdict bench_goals_end(void)
{
    return total;
}

/* bench_counts_instructions - is each instruction one cycle (QEMU's -icount shift=0)?
 * With -icount shift=0 an instruction takes one nanosecond, and a cycle is one
 * nanosecond. The rate of cycles is measured, so it may be a little wrong.
 */
static bool bench_counts_instructions(void)
{
    return clock_cycles_per_ms() > 999000 && clock_cycles_per_ms() < 1001000;
}

/* limit_of - compute the limit that goal @i sets for @figure, in hundredths.
 * Return: 0: @figure is goal->of itself, or goal->of was not measured.
 */
static uint64_t limit_of(size_t i, const char *figure)
{
    const struct goal *goal = &goals[i];

    if (!goal->of)
        return goal->most;
    if (strcmp(goal->of, figure) == 0)
        return 0;
    return others[i] * goal->most / 100;
}

uint64_t bench_goal(const char *figure, uint64_t hundredths)
{
    uint64_t limit = 0;

    for (size_t i = 0; i < ARRAY_LEN(goals); i++) {
        if (goals[i].of && strcmp(goals[i].of, figure) == 0)
            others[i] = hundredths;
        if (glob_match(goals[i].figure, figure) &&
            !(goals[i].only_in_time && bench_counts_instructions()))
            limit = limit_of(i, figure);
    }
    if (limit) {
        total.goals++;
        total.missed += hundredths > limit;
    }
    return limit;
}
