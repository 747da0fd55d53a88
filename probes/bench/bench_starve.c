/* bench_starve.c - `bench starve`: measures how slow handlers delay other threads.
 *
 * Four threads call one function all the time, on all CPUs. The function has a probe, and
 * the handler of this probe takes 50 us, 1 ms, or 3 ms. Meanwhile another thread sleeps
 * for 10 ms, again and again: how late does it wake? And how long does it take to
 * unregister the probe? Both are measured with the probe as a breakpoint, and for each
 * way in which a jump can run the handler.
 */
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/thread/thread.h"
#include "probes/bench/bench.h"
#include "probes/core/registry.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define SLEEPS 15
#define SLEEP_NS UINT64_C(10000000)
#define PATIENCE_NS UINT64_C(2000000000) /* then no further sleep of one way begins */

static const struct duration {
    const char *name;
    uint64_t ns;
} durations[] = {
    { "50us", 50000 },
    { "1ms", 1000000 },
    { "3ms", 3000000 },
};

/* A way to run the handler. A way by a jump is compared with the last way by a trap
 * before it in the table.
 */
struct handler_way {
    const char *name;
    enum detour_kind jump; /* DETOUR_NONE: a trap */
    bool specialized; /* the detour is specialized; false: all sites share its code */
    bool light;       /* a light handler, no pre-handler */
    bool returns;     /* a return handler, no pre-handler */
    bool second;      /* the function has another probe, too */
    bool post;
};

static const struct handler_way ways[] = {
    { .name = "int3" },
    { "specialized", DETOUR_CALL, .specialized = true },
    { "shared", DETOUR_CALL, .second = true },
    { "light", DETOUR_LIGHT, .specialized = true, .light = true },
    { "post", DETOUR_POST, .post = true },
    { .name = "int3_return", .returns = true },
    { "return_detour", DETOUR_RETURN, .returns = true },
    { "return_trampoline", DETOUR_CALL, .returns = true, .second = true },
};

#define TARGET (&bench_targets_long[0])

static uint64_t
    handler_ns;          /* how long a handler takes; written while none is registered */
static bool stop;        /* atomic */
static uint64_t handled; /* atomic */

/* ---- handlers ---- */

static void take_long(void)
{
    uint64_t end = plat_clock_ns() + handler_ns;

    while (plat_clock_ns() < end)
        continue;
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static int slow_pre(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    take_long();
    return 0;
}

static void slow_light(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    take_long();
}

static int slow_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    take_long();
    return 0;
}

static int quick_pre(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

static void quick_post(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                       unsigned long flags UNUSED)
{
}

/* ---- the probes of one way ---- */

struct probes {
    struct kprobe first, second;
    struct kretprobe ret;
};

static int probes_register(struct probes *s, const struct handler_way *way)
{
    int err = 0;

    *s = (struct probes){ .ret = { .handler = slow_return } };
    s->first.addr = s->second.addr = s->ret.kp.addr = TARGET->addr;
    s->second.pre_handler = quick_pre;
    if (way->light)
        s->first.light_handler = slow_light;
    else
        s->first.pre_handler = slow_pre;
    if (way->post)
        s->first.post_handler = quick_post;
    if (way->second)
        err = register_kprobe(&s->second);
    if (err)
        return err;
    err = way->returns ? register_kretprobe(&s->ret) : register_kprobe(&s->first);
    optimize_run();
    return err;
}

/* way_unregister - unregister the probe with the slow handler, then the other one if
 * there is one. Return: how long the first took, in ns.
 */
static uint64_t way_unregister(struct probes *s, const struct handler_way *way)
{
    uint64_t start = plat_clock_ns(), ns;

    if (way->returns)
        unregister_kretprobe(&s->ret);
    else
        unregister_kprobe(&s->first);
    ns = plat_clock_ns() - start;
    if (way->second)
        unregister_kprobe(&s->second);
    return ns;
}

static bool way_is_as_told(const struct probes *s, const struct handler_way *way)
{
    uint32_t flags = way->returns ? s->ret.kp.flags : s->first.flags;
    const struct site *site;
    bool right;

    if (!way->jump || !(flags & KPROBE_FLAG_OPTIMIZED))
        return !way->jump == !(flags & KPROBE_FLAG_OPTIMIZED);
    plat_lock(PLAT_PROBES);
    site = registry_find(TARGET->addr);
    right = site && jump_site(site)->kind == way->jump &&
            jump_site(site)->specialized == way->specialized;
    plat_unlock(PLAT_PROBES);
    return right;
}

/* ---- the threads ---- */

static int call_on(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        TARGET->loop(1);
    return 0;
}

/* crowd_start - start the threads. Return: 0; -ENOMEM: none of them runs. */
static int crowd_start(int tids[THREADS])
{
    __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < THREADS; i++) {
        struct clone_args thread = { .fn = call_on, .name = "starve" };

        tids[i] = kernel_clone(&thread);
        if (tids[i] > 0)
            continue;
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        while (i-- > 0)
            thread_join(tids[i], NULL);
        return -ENOMEM;
    }
    return 0;
}

static void crowd_end(const int tids[THREADS])
{
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < THREADS; i++)
        thread_join(tids[i], NULL);
}

/* ---- how late ---- */

struct lateness {
    uint64_t median, worst; /* ns */
};

static int by_delay(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static struct lateness sleep_some(void)
{
    uint64_t late[SLEEPS], begin = plat_clock_ns();
    size_t n = 0;

    while (n < SLEEPS && (n == 0 || plat_clock_ns() - begin < PATIENCE_NS)) {
        uint64_t start = plat_clock_ns();

        thread_sleep_ns(SLEEP_NS);
        late[n++] = plat_clock_ns() - start - SLEEP_NS;
    }
    qsort(late, n, sizeof(late[0]), by_delay);
    return (struct lateness){ late[n / 2], late[n - 1] };
}

static void print_lateness(struct shell *sh, const char *name,
                           const struct lateness *late)
{
    bench_print(sh, late->median / 1000, "us", "starve.%s.late", name);
    bench_print(sh, late->worst / 1000, "us", "starve.%s.late_worst", name);
}

/* measure_delay - measure how late a thread wakes while the others call the function, and
 * how long it takes to unregister the probe. The probe is registered before these threads
 * start, because they would delay the optimizer.
 */
static int measure_delay(const struct handler_way *way, struct lateness *late,
                         uint64_t *unregister_ns)
{
    int tids[THREADS], err = bench_jumps(way->jump != DETOUR_NONE);
    struct probes s;

    if (!err)
        err = probes_register(&s, way);
    if (err)
        return err;
    handled = 0;
    err = way_is_as_told(&s, way) ? crowd_start(tids) : -EIO;
    if (!err)
        *late = sleep_some();
    *unregister_ns = way_unregister(&s, way);
    if (err)
        return err;
    crowd_end(tids);
    return handled ? 0 : -EIO;
}

static int measure_way(struct shell *sh, const struct duration *duration,
                       const struct handler_way *way, struct lateness *trap)
{
    struct lateness late;
    uint64_t unregister_ns;
    char name[48];
    int err;

    snprintf(name, sizeof(name), "%s.%s", duration->name, way->name);
    handler_ns = duration->ns;
    err = measure_delay(way, &late, &unregister_ns);
    if (err)
        return shell_error(sh, err, "bench: starve.%s: the handler is not run by %s",
                           name, way->jump ? "a jump" : "a trap");
    print_lateness(sh, name, &late);
    if (!way->jump)
        *trap = late;
    else if (trap->median)
        bench_print_hundredths(sh, (int64_t)(late.median * 100 / trap->median), "times",
                               "starve.%s.late_by_trap", name);
    bench_print(sh, unregister_ns / 1000, "us", "starve.%s.unregister", name);
    return 0;
}

static int measure_unprobed(struct shell *sh)
{
    struct lateness late;
    int tids[THREADS], err = crowd_start(tids);

    if (err)
        return shell_error(sh, err, "bench: starve");
    late = sleep_some();
    crowd_end(tids);
    print_lateness(sh, "none", &late);
    return 0;
}

static int measure_duration(struct shell *sh, const struct duration *duration)
{
    struct lateness trap = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        int err;

        if (shell_interrupted(sh))
            return -EINTR;
        err = measure_way(sh, duration, &ways[i], &trap);
        if (err)
            return err;
    }
    return 0;
}

/* The thread that sleeps may run on any CPU, like the threads that call the function. */
static int starve_run(struct shell *sh, const char *only)
{
    int err = -ENOENT;

    thread_set_affinity(UINT64_MAX);
    if (!only)
        err = measure_unprobed(sh);
    for (size_t i = 0; i < ARRAY_LEN(durations); i++) {
        if (only && strcmp(only, durations[i].name) != 0)
            continue;
        err = measure_duration(sh, &durations[i]);
        if (err)
            break;
    }
    bench_jumps(false);
    return err;
}

const struct bench_group bench_group_starve = {
    .name = "starve",
    .run = starve_run,
};
