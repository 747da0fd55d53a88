/* bench_hit.c - `bench hit`: measures a hit, for each way to run the instruction.
 *
 * The same loop is timed with and without the probe; the difference is the cost of the
 * hits. Interrupts are on, so timer interrupts make a few rounds longer. The median of
 * the rounds is not changed by a few longer rounds.
 */
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/thread/thread.h"
#include "probes/bench/bench.h"
#include "probes/core/life.h"
#include "probes/jump/optimize.h"

#include <stdlib.h>
#include <string.h>

#define HITS 10000 /* in each round */

/* ---- one kind ---- */

static void take_lower(struct bench_cost *lowest, const struct bench_cost *cost)
{
    if (cost->median < lowest->median)
        lowest->median = cost->median;
    if (cost->min < lowest->min)
        lowest->min = cost->min;
}

struct placement {
    const struct bench_kind *kind;
    const struct bench_target *target;
    struct bench_cost cost;
};

static int placement_run(void *arg)
{
    struct placement *placement = arg;

    return bench_measure_probed(placement->kind, placement->target, HITS,
                                &placement->cost);
}

/* measure_placement - measure placement @i of @kind. Each placement is measured in a
 * thread of its own, to have another stack, and the placements use the CPUs in turn,
 * because each CPU has its data at other addresses.
 */
static int measure_placement(const struct bench_kind *kind, unsigned i,
                             struct bench_cost *cost)
{
    struct placement placement = { .kind = kind, .target = &kind->targets[i] };
    struct clone_args thread = {
        .fn = placement_run,
        .arg = &placement,
        .name = "bench",
        .stack_len = THREAD_STACK_LEN + i * PAGE_SIZE,
        .cpus = BIT(i % cpu_count()),
    };
    int tid = kernel_clone(&thread), err;

    if (tid < 0)
        return tid;
    thread_join(tid, &err);
    *cost = placement.cost;
    return err;
}

/* measure_lowest - measure all placements of @kind. *@lowest receives the lowest median
 * and the lowest minimum.
 */
static int measure_lowest(struct shell *sh, const struct bench_kind *kind,
                          struct bench_cost *lowest)
{
    *lowest = (struct bench_cost){ INT64_MAX, INT64_MAX };
    for (unsigned i = 0; i < BENCH_PLACEMENTS; i++) {
        struct bench_cost cost;
        int err = shell_interrupted(sh) ? -EINTR : measure_placement(kind, i, &cost);

        if (err)
            return err;
        take_lower(lowest, &cost);
    }
    return 0;
}

int bench_hit_boosted(struct shell *sh, struct bench_cost *cost)
{
    return measure_lowest(sh, &bench_kinds[0], cost);
}

static int measure_kind(struct shell *sh, const struct bench_kind *kind)
{
    struct bench_cost cost;
    int err = measure_lowest(sh, kind, &cost);

    if (err == -EINTR)
        return err;
    if (err == -EIO)
        return shell_error(sh, err, "bench: hit.%s: not every call was counted, by %s",
                           kind->name, kind->jump ? "a jump" : "a trap");
    if (err)
        return shell_error(sh, err, "bench: hit.%s", kind->name);
    bench_print_hundredths(sh, cost.median, "cycles/hit", "hit.%s.cycles", kind->name);
    bench_print_hundredths(sh, cost.min, "cycles/hit", "hit.%s.cycles_min", kind->name);
    return 0;
}

/* measure_base - measure how long calls of the targets take while the bench has no probe
 * there. Other parts of the kernel may have probes at the targets: these stay, and count
 * as a part of the call. First they are made jumps, as they usually are.
 * probes/bench/host/gdb.py measures breakpoints of gdb in this way.
 */
static int measure_base(struct shell *sh)
{
    struct bench_cost lowest = { INT64_MAX, INT64_MAX };
    int err = bench_jumps(true);

    if (err)
        return shell_error(sh, err, "bench: hit.base_call");
    optimize_run();
    for (size_t i = 0; i < BENCH_PLACEMENTS; i++) {
        struct bench_cost cost = bench_measure(&bench_targets_lea[i], 10 * HITS);

        take_lower(&lowest, &cost);
    }
    bench_print_hundredths(sh, lowest.median, "cycles/hit", "hit.base_call.cycles");
    return 0;
}

/* ---- the group ---- */

static int measure_as_told(struct shell *sh, const struct bench_kind *kind)
{
    int err;

    step_set_engine(kind->engine);
    err = bench_jumps(kind->jump);
    if (err)
        return shell_error(sh, err, "bench: hit.%s", kind->name);
    return measure_kind(sh, kind);
}

static int measure_kinds(struct shell *sh, const char *only)
{
    int err = only ? -ENOENT : 0;

    for (size_t i = 0; i < bench_kind_count; i++) {
        if (only && strcmp(only, bench_kinds[i].name) != 0)
            continue;
        err = measure_as_told(sh, &bench_kinds[i]);
        if (err)
            return err;
    }
    return err;
}

/* ---- hits among very many sites ---- */

static int measure_crowd(struct shell *sh, const struct bench_crowd_kind *kind)
{
    struct bench_crowd_cost crowd;
    int err = bench_jumps(true);

    if (!err)
        err = bench_among(kind, &crowd);
    if (err)
        return shell_error(sh, err, "bench: hit.%s", kind->name);
    bench_print_hundredths(sh, crowd.hit.median, "cycles/hit", "hit.%s.cycles",
                           kind->name);
    bench_print_hundredths(sh, crowd.hit.min, "cycles/hit", "hit.%s.cycles_min",
                           kind->name);
    bench_print(sh, crowd.specialized, "sites", "hit.%s.specialized", kind->name);
    if (crowd.specialized && !kind->in_turn)
        bench_print(sh, crowd.specialized_bytes / crowd.specialized, "bytes/site",
                    "mem.specialized.%s.bytes", kind->light ? "light" : "pre");
    return 0;
}

static int measure_crowds(struct shell *sh, const char *only)
{
    int err = only ? -ENOENT : 0;

    for (size_t i = 0; i < bench_crowd_kind_count && bench_among_is_there(); i++) {
        if (only && strcmp(only, bench_crowd_kinds[i].name) != 0)
            continue;
        err = shell_interrupted(sh) ? -EINTR : measure_crowd(sh, &bench_crowd_kinds[i]);
        if (err)
            return err;
    }
    return err;
}

static int hit_group_run(struct shell *sh, const char *only)
{
    enum step_engine engine = step_get_engine();
    int err;

    if (!only || strcmp(only, "base_call") == 0) {
        err = measure_base(sh);
        if (err || only)
            return err;
    }
    err = measure_kinds(sh, only);
    if (err == (only ? -ENOENT : 0))
        err = measure_crowds(sh, only);
    step_set_engine(engine);
    bench_jumps(false);
    return err;
}

const struct bench_group bench_group_hit = {
    .name = "hit",
    .run = hit_group_run,
};
