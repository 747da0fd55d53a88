/* bench_scale.c - `bench scale`: measures many probes: how long it takes to register them
 * one by one, as a set, and as a set of jumps; how much memory they use; and what a hit
 * costs while they are registered.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "probes/bench/bench.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/jump/optimize.h"

#include <stdio.h>
#include <string.h>

#define SINGLES_MAX 1000 /* are unregistered one by one: each waits for quiescence */
#define FINDS 100000

static const size_t sizes[] = { 1, 1000, 10000, 37222, 100000 };

struct scale {
    struct shell *sh;
    struct bench_crowd crowd;
    size_t memory;      /* bytes for a probe: the most of all sizes */
    size_t jump_memory; /* the same when all probes are jumps, without jump_stays */
    size_t jump_stays;  /* bytes that are never freed: page tables of pads */
};

/* ---- one by one ---- */

static void print_scale_time(const struct scale *s, const char *what, size_t size,
                             size_t count, uint64_t ns)
{
    bench_print(s->sh, ns / count, "ns/probe", "scale.%s.%zu.ns_per_probe", what, size);
    bench_print(s->sh, ns / 1000, "us", "scale.%s.%zu.total", what, size);
}

/* register_one_by_one - @what: the name of the figure */
static int register_one_by_one(struct scale *s, size_t size, const char *what)
{
    uint64_t start = plat_clock_ns();

    for (size_t i = 0; i < size; i++) {
        int err = shell_interrupted(s->sh) ? -EINTR : register_kprobe(s->crowd.ps[i]);

        if (err) {
            unregister_kprobes(s->crowd.ps, i);
            return err;
        }
        if (i % 1000 == 0)
            shell_progress(s->sh, "%zu of %zu probes", i, size);
    }
    shell_progress(s->sh, NULL);
    print_scale_time(s, what, size, size, plat_clock_ns() - start);
    return 0;
}

static void unregister_singly(struct scale *s, size_t size)
{
    size_t singles = size < SINGLES_MAX ? size : SINGLES_MAX, done = 0;
    uint64_t start = plat_clock_ns();

    for (; done < singles && !shell_interrupted(s->sh); done++)
        unregister_kprobe(s->crowd.ps[done]);
    if (done == singles)
        print_scale_time(s, "unregister_one_by_one", size, singles,
                         plat_clock_ns() - start);
    unregister_kprobes(s->crowd.ps + done, size - done);
}

static int measure_singles(struct scale *s, size_t size)
{
    int err;

    bench_crowd_place(&s->crowd, size);
    err = register_one_by_one(s, size, "register_one_by_one");
    if (!err)
        unregister_singly(s, size);
    return err;
}

/* measure_jumping_singles - the same while the optimizer makes jumps of those that are
 * there.
 */
static int measure_jumping_singles(struct scale *s, size_t size)
{
    int err;

    bench_crowd_place(&s->crowd, size);
    err = register_one_by_one(s, size, "optimize_one_by_one");
    if (!err)
        unregister_kprobes(s->crowd.ps, size);
    return err;
}

/* ---- as a set ---- */

static int measure_hit(const struct scale *s, size_t size)
{
    struct bench_cost cost;
    int err = bench_hit_boosted(s->sh, &cost);

    if (err)
        return err;
    bench_print_hundredths(s->sh, cost.median, "cycles/hit", "scale.hit.%zu.cycles",
                           size);
    bench_print_hundredths(s->sh, cost.min, "cycles/hit", "scale.hit.%zu.cycles_min",
                           size);
    return 0;
}

/* bench_measure_find - measure the registry alone: look all sites up in turn. The function
 * has a name of its own, and stays one, so that it carries no probe: see bench_crowd.c.
 */
static NOINLINE void bench_measure_find(const struct scale *s, size_t size)
{
    uint64_t start, cycles;

    plat_lock(PLAT_PROBES);
    start = rdtsc();
    for (size_t i = 0; i < FINDS; i++)
        registry_find(s->crowd.probes[i % size].addr);
    cycles = rdtsc() - start;
    plat_unlock(PLAT_PROBES);
    bench_print_hundredths(s->sh, (int64_t)(cycles * 100 / FINDS), "cycles/find",
                           "scale.find.%zu.cycles", size);
}

static void note_memory(struct scale *s, size_t size, size_t bytes)
{
    bench_print(s->sh, bytes / size, "bytes/probe", "scale.memory.%zu.bytes", size);
    if (bytes / size > s->memory)
        s->memory = bytes / size;
}

static int measure_set(struct scale *s, size_t size)
{
    size_t before = bench_free_bytes();
    uint64_t start = plat_clock_ns();
    int err = register_kprobes(s->crowd.ps, size);

    if (err)
        return err;
    print_scale_time(s, "register_set", size, size, plat_clock_ns() - start);
    if (size > 1)
        note_memory(s, size, before - bench_free_bytes());
    err = measure_hit(s, size);
    bench_measure_find(s, size);
    start = plat_clock_ns();
    unregister_kprobes(s->crowd.ps, size);
    print_scale_time(s, "unregister_set", size, size, plat_clock_ns() - start);
    return err;
}

/* ---- as a set of jumps ---- */

#define TRAPS_PERCENT 1 /* of the probes may stay breakpoints */

/* check_jumps - print how many probes are not jumps. Return: 0; -EIO too many. */
static int check_jumps(const struct scale *s, size_t size)
{
    size_t traps = 0;

    for (size_t i = 0; i < size; i++)
        traps += !(s->crowd.probes[i].flags & KPROBE_FLAG_OPTIMIZED);
    bench_print(s->sh, traps, "probes", "scale.optimize_set.%zu.breakpoints", size);
    if (traps * 100 <= size * TRAPS_PERCENT)
        return 0;
    return shell_error(s->sh, EIO, "bench: scale.%zu: %zu are no jumps", size, traps);
}

/* note_jump_memory - note how much memory the jumps need.
 * @gone: bytes in use while there are jumps   @stays: bytes still in use afterwards
 */
static void note_jump_memory(struct scale *s, size_t size, size_t gone, size_t stays)
{
    size_t each = gone > stays ? (gone - stays) / size : 0;

    bench_print(s->sh, each, "bytes/probe", "scale.jump_memory.%zu.bytes", size);
    if (each > s->jump_memory)
        s->jump_memory = each;
    s->jump_stays += stays;
}

static int measure_jumps(struct scale *s, size_t size)
{
    size_t before = bench_free_bytes(), with, after;
    uint64_t start = plat_clock_ns();
    int err = register_kprobes(s->crowd.ps, size);

    if (err)
        return err;
    optimize_run();
    print_scale_time(s, "optimize_set", size, size, plat_clock_ns() - start);
    err = check_jumps(s, size);
    with = bench_free_bytes();
    start = plat_clock_ns();
    unregister_kprobes(s->crowd.ps, size);
    print_scale_time(s, "unoptimize_set", size, size, plat_clock_ns() - start);
    after = bench_free_bytes();
    note_jump_memory(s, size, before - with, before > after ? before - after : 0);
    return err;
}

/* ---- the group ---- */

static int measure_size(struct scale *s, size_t size)
{
    int err = 0;

    if (size > 1)
        err = measure_singles(s, size);
    if (!err && shell_interrupted(s->sh))
        err = -EINTR;
    if (err)
        return err;
    bench_crowd_place(&s->crowd, size);
    err = measure_set(s, size);
    if (!err && shell_interrupted(s->sh))
        err = -EINTR;
    if (err || size == 1)
        return err;
    bench_crowd_place(&s->crowd, size);
    err = bench_jumps(true);
    if (!err)
        err = measure_jumps(s, size);
    if (!err)
        err = measure_jumping_singles(s, size);
    bench_jumps(false);
    return err;
}

static int measure_sizes(struct scale *s, const char *only)
{
    int err = only ? -ENOENT : 0;

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char name[16];

        snprintf(name, sizeof(name), "%zu", sizes[i]);
        if (sizes[i] > s->crowd.room || (only && strcmp(only, name) != 0))
            continue;
        err = measure_size(s, sizes[i]);
        if (err)
            return err;
    }
    return err;
}

static void print_site_bytes(const struct scale *s)
{
    if (s->memory)
        bench_print(s->sh, s->memory, "bytes/probe", "mem.per_probe.bytes");
    if (!s->jump_memory)
        return;
    bench_print(s->sh, s->jump_memory, "bytes/probe", "mem.jump_per_probe.bytes");
    bench_print(s->sh, s->jump_stays, "bytes", "mem.jump_page_tables.bytes");
}

static int scale_run(struct shell *sh, const char *only)
{
    struct scale s = { .sh = sh };
    int err = bench_crowd_make(&s.crowd);

    if (err)
        return shell_error(sh, err, "bench: scale");
    bench_print(sh, s.crowd.room, "places", "scale.places.%s",
                s.crowd.is_generated ? "generated" : "own");
    err = measure_sizes(&s, only);
    print_site_bytes(&s);
    bench_crowd_free(&s.crowd);
    return err;
}

const struct bench_group bench_group_scale = {
    .name = "scale",
    .run = scale_run,
};
