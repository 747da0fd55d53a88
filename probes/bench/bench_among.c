/* bench_among.c - `bench hit.opt_crowd` and similar kinds: measures what a hit costs when
 * 10,000 sites have a handler each.
 *
 * Either only the last site is hit, so the caches have all data that a hit needs; or all
 * sites are hit in turn, so the caches do not have the data of the next site.
 */
#include "kernel/base/err.h"
#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"
#include "probes/bench/bench.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"

#define HITS 10000
#define TURNS 5 /* hits of each site in one timed loop */

const struct bench_crowd_kind bench_crowd_kinds[] = {
    { "opt_crowd", .light = false, .in_turn = false },
    { "opt_crowd_in_turn", .light = false, .in_turn = true },
    { "opt_light_crowd", .light = true, .in_turn = false },
    { "opt_light_crowd_in_turn", .light = true, .in_turn = true },
};
const size_t bench_crowd_kind_count = ARRAY_LEN(bench_crowd_kinds);

bool bench_among_is_there(void)
{
    return bench_among_all.count != 0;
}

struct among {
    const struct bench_crowd_kind *kind;
    struct kprobe *probes, **ps;
    struct bench_cost base[BENCH_PLACEMENTS];
    struct bench_crowd_cost cost;
};

/* ---- the loop ---- */

static uint64_t hits_of(const struct bench_crowd_kind *kind)
{
    return kind->in_turn ? TURNS * bench_among_all.count : HITS;
}

static void choose_called(const struct bench_crowd_kind *kind)
{
    const struct bench_among *all = &bench_among_all;
    size_t first = kind->in_turn ? 0 : all->count - 1;

    bench_among_called[0] = all->first + first * all->stride;
    bench_among_called[1] = all->first + all->count * all->stride;
}

struct called {
    const struct bench_crowd_kind *kind;
    struct bench_cost cost;
};

static int called_run(void *arg)
{
    const struct bench_target target = { .loop = bench_among_all.loop };
    struct called *placement = arg;

    placement->cost = bench_measure(&target, hits_of(placement->kind));
    return 0;
}

/* measure_placed - measure on stack number @i: see measure_placement() in bench_hit.c. */
static int measure_placed(const struct bench_crowd_kind *kind, unsigned i,
                          struct bench_cost *cost)
{
    struct called placement = { .kind = kind };
    struct clone_args thread = {
        .fn = called_run,
        .arg = &placement,
        .name = "bench",
        .stack_len = THREAD_STACK_LEN + i * PAGE_SIZE,
        .cpus = BIT(0),
    };
    int tid = kernel_clone(&thread), err;

    if (tid < 0)
        return tid;
    thread_join(tid, &err);
    *cost = placement.cost;
    return err;
}

/* ---- the probes ---- */

static void place_sites(struct among *a)
{
    for (size_t i = 0; i < bench_among_all.count; i++) {
        struct kprobe *p = &a->probes[i];

        *p =
            (struct kprobe){ .addr = bench_among_all.first + i * bench_among_all.stride };
        if (a->kind->light)
            p->light_handler = bench_count_light;
        else
            bench_fill_pre(p, true);
        a->ps[i] = p;
    }
}

/* all_jump - check that each site is a jump. Also count the specialized detours. */
static bool all_jump(struct among *a)
{
    for (size_t i = 0; i < bench_among_all.count; i++) {
        if (!(a->probes[i].flags & KPROBE_FLAG_OPTIMIZED))
            return false;
        a->cost.specialized += jump_site(a->probes[i].site)->specialized;
    }
    return true;
}

static int measure_sites(struct among *a)
{
    uint64_t calls = bench_measured_calls(hits_of(a->kind));
    struct bench_cost cost;
    int err = 0;

    a->cost.hit = (struct bench_cost){ INT64_MAX, INT64_MAX };
    for (unsigned i = 0; i < BENCH_PLACEMENTS && !err; i++) {
        bench_handled = 0;
        err = measure_placed(a->kind, i, &cost);
        if (!err && bench_handled != calls)
            err = -EIO;
        if (!err && cost.median - a->base[i].median < a->cost.hit.median)
            a->cost.hit.median = cost.median - a->base[i].median;
        if (!err && cost.min - a->base[i].min < a->cost.hit.min)
            a->cost.hit.min = cost.min - a->base[i].min;
    }
    return err;
}

static int measure_registered(struct among *a)
{
    size_t bytes = insn_slot_detour_bytes();
    int err = register_kprobes(a->ps, bench_among_all.count);

    if (err)
        return err;
    optimize_run();
    a->cost.specialized_bytes = insn_slot_detour_bytes() - bytes;
    err = all_jump(a) ? measure_sites(a) : -EIO;
    unregister_kprobes(a->ps, bench_among_all.count);
    return err;
}

static int measure_among(struct among *a)
{
    int err = 0;

    choose_called(a->kind);
    for (unsigned i = 0; i < BENCH_PLACEMENTS && !err; i++)
        err = measure_placed(a->kind, i, &a->base[i]);
    place_sites(a);
    return err ? err : measure_registered(a);
}

int bench_among(const struct bench_crowd_kind *kind, struct bench_crowd_cost *cost)
{
    struct among a = { .kind = kind };
    int err = -ENOMEM;

    a.probes = kzalloc(bench_among_all.count * sizeof(a.probes[0]));
    a.ps = kzalloc(bench_among_all.count * sizeof(a.ps[0]));
    if (a.probes && a.ps)
        err = measure_among(&a);
    kfree(a.probes);
    kfree(a.ps);
    *cost = a.cost;
    return err;
}
