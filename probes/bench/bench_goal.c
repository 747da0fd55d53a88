/* bench_goal.c - the goals of `bench`, printed beside its figures. A goal is an aim,
 * not a test: a busy host spoils every time.
 *
 * This is the one table of them. Goals that need figures of another kernel are in
 * tests/bench/compare.py, those of a processor without an emulator in
 * tests/hosted/bench_native.c.
 */
#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/time/clock.h"
#include "probes/bench/bench.h"

#include <extra.h>
#include <string.h>

/* The most that a figure should be, in hundredths: of its unit, or of another figure. */
struct goal {
    const char *figure; /* a pattern */
    uint64_t most;
    const char *of;    /* NULL, or a figure that is measured before it */
    bool only_in_time; /* says nothing where a cycle is an instruction */
};

static const struct goal goals[] = {
    /* A jump is there to be cheaper. */
    { "hit.opt.cycles", 10, "hit.int3_tf.cycles", true },
    /* Linux has no such figure any more, or never had it: beside the next dearer way. */
    { "hit.kret_opt_posthandler.cycles", 100, "hit.kret_int3_unboostable.cycles", true },
    { "hit.jprobe_int3.cycles", 100, "hit.jprobe_int3_unboostable.cycles", true },
    { "hit.jprobe_opt.cycles", 100, "hit.jprobe_int3.cycles", true },
    { "hit.jprobe_opt_posthandler.cycles", 100, "hit.jprobe_int3_unboostable.cycles",
      true },
    { "hit.jprobe_kret_int3.cycles", 100, "hit.jprobe_kret_int3_unboostable.cycles",
      true },
    { "hit.jprobe_kret_opt.cycles", 100, "hit.jprobe_kret_int3.cycles", true },
    /* One of many costs what one of few does. */
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
    /* Events of the tracer: 1 s for the lines, 0.2 s for the write that enables them;
     * the last line costs what the first does.
     */
    { "events.define.1000.total", 100 * UINT64_C(1000000), NULL, true },
    { "events.define.last_100", 110, "events.define.first_100", false },
    { "events.enable.1000", 100 * UINT64_C(200000), NULL, true },
    /* Other threads: how late by a jump, beside a trap; unregistering: 100 ms, a handler. */
    { "starve.*.late_by_trap", 200, NULL, true },
    { "starve.50us.*.unregister", 100 * UINT64_C(100050), NULL, true },
    { "starve.1ms.*.unregister", 100 * UINT64_C(101000), NULL, true },
    { "starve.3ms.*.unregister", 100 * UINT64_C(103000), NULL, true },
};

/* Of one run of the command, by the shell's thread. */
static uint64_t
    others[ARRAY_LEN(goals)]; /* what goal i is relative to; 0: not measured */
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

/* An instruction takes a nanosecond then, and a cycle is one. The rate is measured, so it
 * may be a little off.
 */
bool bench_counts_instructions(void)
{
    return clock_cycles_per_ms() > 999000 && clock_cycles_per_ms() < 1001000;
}

/* limit_of - by goal @i, in hundredths; 0: there is none yet. */
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
