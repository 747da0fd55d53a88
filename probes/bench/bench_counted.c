/* bench_counted.c - `bench counted`: measures how much longer the kernel's own work takes
 * with a probe that counts at the entry of each function, and then at each instruction.
 * All these probes are jumps. Also measures how much memory they use.
 */
#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/work/work.h"
#include "probes/bench/bench.h"
#include "probes/jump/optimize.h"
#include "probes/many/mass.h"

#define LONG_ENOUGH_NS UINT64_C(30000000)

/* The workloads that work all the time. The other workloads wait for other threads. */
static const char *const workloads[] = {
    "format",    "hash", "heap",    "matrix", "numbers",
    "recursion", "sort", "strings", "tree",   "vfs",
};

struct counted {
    struct shell *sh;
    uint64_t times[ARRAY_LEN(workloads)]; /* how often each workload is run */
    uint64_t ns[ARRAY_LEN(workloads)];    /* how long that takes without a probe */
};

/* run_counted - run a workload @times times. @ns: receives how long that takes */
static int run_counted(struct shell *sh, const char *name, uint64_t times, uint64_t *ns)
{
    uint64_t start = plat_clock_ns();
    int err = 0;

    for (uint64_t i = 0; i < times && !err; i++) {
        struct seq out;

        seq_init(&out, NULL, NULL);
        err = workload_run(name, 0, NULL, &out, shell_stop, sh);
        seq_free(&out);
    }
    *ns = plat_clock_ns() - start;
    return err;
}

static int measure_without(struct counted *c)
{
    int err = 0;

    for (size_t i = 0; i < ARRAY_LEN(workloads) && !err; i++) {
        c->times[i] = 1;
        err = run_counted(c->sh, workloads[i], 1, &c->ns[i]);
        while (!err && c->ns[i] < LONG_ENOUGH_NS) {
            c->times[i] *= 2;
            err = run_counted(c->sh, workloads[i], c->times[i], &c->ns[i]);
        }
    }
    return err;
}

/* measure_with - measure and print how many times as long each workload takes with the
 * probes, and the mean of all.
 */
static int measure_with(const struct counted *c, const char *what)
{
    int64_t sum = 0;

    for (size_t i = 0; i < ARRAY_LEN(workloads); i++) {
        uint64_t ns;
        int err = run_counted(c->sh, workloads[i], c->times[i], &ns);

        if (err)
            return err;
        bench_print_hundredths(c->sh, (int64_t)(ns * 100 / c->ns[i]), "times",
                               "counted.%s.%s.slowdown", what, workloads[i]);
        sum += (int64_t)(ns * 100 / c->ns[i]);
    }
    bench_print_hundredths(c->sh, sum / (int64_t)ARRAY_LEN(workloads), "times",
                           "counted.%s.slowdown", what);
    return 0;
}

static void print_crowd_memory(const struct counted *c, const char *what, size_t probes,
                               size_t without, size_t with, size_t after)
{
    size_t stays = without > after ? without - after : 0;

    bench_print(c->sh, (without - with - stays) / probes, "bytes/probe",
                "counted.%s.memory", what);
    bench_print(c->sh, stays, "bytes", "counted.%s.page_tables", what);
    bench_print(c->sh, percpu_counters_bytes(), "bytes", "counted.%s.counters", what);
}

static void print_crowd_jumps(const struct counted *c, const char *what,
                              const struct bench_crowd *crowd, size_t count)
{
    size_t jumps = 0;

    for (size_t i = 0; i < count; i++)
        jumps += (crowd->ps[i]->flags & KPROBE_FLAG_OPTIMIZED) != 0;
    bench_print(c->sh, count, "probes", "counted.%s.probes", what);
    bench_print(c->sh, jumps, "probes", "counted.%s.jumps", what);
}

static int count_crowd(const struct counted *c, const char *what,
                       struct bench_crowd *crowd)
{
    const struct mass_caller shell = { shell_stop, shell_show_progress, c->sh };
    size_t without = bench_free_bytes(), with;
    long in;
    int err;

    bench_crowd_place(crowd, crowd->room);
    in = mass_register(&shell, crowd->ps, crowd->room, bench_ignore_refused, NULL);
    if (in <= 0)
        return (int)in;
    optimize_run();
    with = bench_free_bytes();
    print_crowd_jumps(c, what, crowd, (size_t)in);
    err = measure_with(c, what);
    unregister_kprobes(crowd->ps, (size_t)in);
    print_crowd_memory(c, what, (size_t)in, without, with, bench_free_bytes());
    return err;
}

static int measure_all(const struct counted *c)
{
    struct bench_crowd crowd;
    int err = bench_crowd_make_entries(&crowd);

    if (err)
        return err;
    err = count_crowd(c, "entries", &crowd);
    bench_crowd_free(&crowd);
    if (!err)
        err = bench_crowd_make_instructions(&crowd);
    if (err)
        return err;
    err = count_crowd(c, "instructions", &crowd);
    bench_crowd_free(&crowd);
    return err;
}

static int counted_run(struct shell *sh, const char *only)
{
    struct counted c = { .sh = sh };
    int err;

    if (only)
        return -ENOENT;
    err = measure_without(&c);
    if (!err)
        err = bench_jumps(true);
    if (!err)
        err = measure_all(&c);
    bench_jumps(false);
    if (err && err != -EINTR)
        shell_error(sh, err, "bench: counted");
    return err;
}

const struct bench_group bench_group_counted = {
    .name = "counted",
    .run = counted_run,
};
