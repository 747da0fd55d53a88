/* bench_cache.c - `bench cache`: measures how often a hit finds its site in the cache of
 * its CPU (struct probe_cpu), with a probe at the entry of every function and all
 * workloads running.
 */
#include "kernel/base/err.h"
#include "kernel/work/work.h"
#include "probes/bench/bench.h"
#include "probes/core/life.h"
#include "probes/explain/totals.h"

static int run_workloads(struct shell *sh)
{
    struct seq out;
    int err;

    seq_init(&out, NULL, NULL);
    err = workload_run("all", 0, NULL, &out, shell_stop, sh);
    seq_free(&out);
    if (err && err != -EINTR)
        shell_error(sh, err, "bench: cache: the workloads");
    return err;
}

static int measure_cache(struct shell *sh, struct bench_crowd *crowd)
{
    struct probe_totals before, after;
    uint64_t traps;
    long in;
    int err;

    bench_crowd_place(crowd, crowd->room);
    in = register_kprobes_some(crowd->ps, crowd->room, bench_ignore_refused, NULL);
    if (in < 0)
        return shell_error(sh, (int)in, "bench: cache");
    account_totals(&before);
    err = run_workloads(sh);
    account_totals(&after);
    unregister_kprobes(crowd->ps, (size_t)in);
    if (err)
        return err;
    traps = after.traps - before.traps;
    bench_print(sh, (uint64_t)in, "probes", "cache.probes");
    bench_print(sh, traps, "traps", "cache.traps");
    bench_print_hundredths(
        sh, (int64_t)(10000 - (after.cache_misses - before.cache_misses) * 10000 / traps),
        "percent", "cache.hit_ratio");
    return 0;
}

static int cache_run(struct shell *sh, const char *only)
{
    struct bench_crowd crowd;
    int err;

    if (only)
        return -ENOENT;
    err = bench_crowd_make_entries(&crowd);
    if (err)
        return shell_error(sh, err, "bench: cache");
    err = measure_cache(sh, &crowd);
    bench_crowd_free(&crowd);
    return err;
}

const struct bench_group bench_group_cache = {
    .name = "cache",
    .run = cache_run,
};
