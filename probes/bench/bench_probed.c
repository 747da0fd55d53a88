/* bench_probed.c - measures what probes of one kind add to a call, for `bench hit` and for
 * `probe explain`.
 */
#include "kernel/base/err.h"
#include "probes/bench/bench.h"
#include "probes/core/registry.h"

#include <string.h>

#define HITS_LIKE 500 /* in each round */

/* all_counted - check that each handler of @set has run for each call of the target. */
static bool all_counted(const struct bench_set *set, uint64_t hits)
{
    const struct bench_kind *kind = set->kind;
    unsigned handlers = kind->probes + kind->returns + kind->jprobe + !!kind->event;

    return bench_set_hits(set) == handlers * bench_measured_calls(hits);
}

int bench_measure_probed(const struct bench_kind *kind, const struct bench_target *target,
                         uint64_t hits, struct bench_cost *cost)
{
    struct bench_cost base = bench_measure(target, hits), probed = base;
    struct bench_set set;
    int err = bench_set_register(&set, kind, target->addr);

    if (!err)
        probed = bench_measure(target, hits);
    if (!err && !all_counted(&set, hits))
        err = -EIO;
    bench_set_unregister(&set);
    cost->median = probed.median - base.median;
    cost->min = probed.min - base.min;
    return err;
}

static bool has_probe(uintptr_t addr)
{
    bool found;

    plat_lock(PLAT_PROBES);
    found = registry_find(addr);
    plat_unlock(PLAT_PROBES);
    return found;
}

int bench_hit_like(const char *name, struct bench_cost *cost)
{
    for (size_t i = 0; i < bench_kind_count; i++) {
        const struct bench_kind *kind = &bench_kinds[i];

        if (strcmp(name, kind->name) != 0)
            continue;
        if (has_probe(kind->targets->addr))
            return -EBUSY;
        return bench_measure_probed(kind, kind->targets, HITS_LIKE, cost);
    }
    return -ENOENT;
}
