/* bench_marker.c - `bench marker`: measures what a condition costs that is hardly ever
 * true: a marker (an immediate), a static key, and a variable in memory; and what a call
 * costs. Also measures how long it takes to switch all markers of a name, and a key.
 *
 * probes/bench/marks.asm has very many places, if it is linked or loaded.
 */
#include "kernel/base/err.h"
#include "kernel/time/clock.h"
#include "probes/bench/bench.h"
#include "probes/bench/bench_condition.h"
#include "probes/marker/marker.h"
#include "probes/marker/static_key.h"

#include <string.h>

#define PASSES 10000
#define MANY "bench_many" /* of marks.asm */
#define MANY_FORMAT "nothing"

static void marker_passed(void *private UNUSED, struct marker_call *call)
{
    bench_pass(va_arg(call->args, uint64_t));
}

static int switch_marker(bool on)
{
    return on ? marker_connect(BENCH_MARKER, BENCH_MARKER_FORMAT, marker_passed, NULL)
              : marker_disconnect(BENCH_MARKER, marker_passed, NULL);
}

static int switch_key(bool on)
{
    return static_key_switch(&bench_key, on);
}

static int switch_flag(bool on)
{
    WRITE_ONCE(bench_flag, on);
    return 0;
}

static const struct {
    const char *name;
    void (*loop)(uint64_t count);
    int (*on)(bool on); /* NULL: it is no condition */
} kinds[] = {
    { "immediate", bench_condition_marker, switch_marker },
    { "key", bench_condition_key, switch_key },
    { "load", bench_condition_load, switch_flag },
    { "call", bench_condition_call, NULL },
};

static int64_t cost_of(void (*loop)(uint64_t count))
{
    const struct bench_target alone = { .loop = bench_condition_none };
    const struct bench_target target = { .loop = loop };

    return bench_measure(&target, PASSES).median - bench_measure(&alone, PASSES).median;
}

static int measure_passes(struct shell *sh)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        int err = 0;

        bench_print_hundredths(sh, cost_of(kinds[i].loop), "cycles/pass", "marker.%s%s",
                               kinds[i].name, kinds[i].on ? ".off" : "");
        if (!kinds[i].on)
            continue;
        err = kinds[i].on(true);
        if (err)
            return shell_error(sh, err, "bench: marker.%s", kinds[i].name);
        bench_print_hundredths(sh, cost_of(kinds[i].loop), "cycles/pass", "marker.%s.on",
                               kinds[i].name);
        kinds[i].on(false);
    }
    return 0;
}

/* ---- switching ---- */

static void sum_places(const struct marker_facts *m, void *arg)
{
    if (!strcmp(m->name, MANY))
        *(size_t *)arg += m->places;
}

static int measure_switch(struct shell *sh, const char *name, const char *format,
                          size_t places)
{
    static char mine; /* only the bench connects with this address */
    uint64_t start = clock_ns(), middle, end;
    int err = marker_connect(name, format, marker_passed, &mine);

    middle = clock_ns();
    if (err)
        return shell_error(sh, err, "bench: marker.switch");
    marker_disconnect(name, marker_passed, &mine);
    end = clock_ns();
    bench_print(sh, (middle - start) / 1000, "us", "marker.switch.%zu.on", places);
    bench_print(sh, (end - middle) / 1000, "us", "marker.switch.%zu.off", places);
    return 0;
}

static int measure_key(struct shell *sh)
{
    size_t places = static_key_places(&bench_key);
    uint64_t start = clock_ns(), middle, end;
    int err = static_key_switch(&bench_key, true);

    middle = clock_ns();
    if (err)
        return shell_error(sh, err, "bench: marker.switch.key");
    static_key_switch(&bench_key, false);
    end = clock_ns();
    bench_print(sh, (middle - start) / 1000, "us", "marker.switch.key.%zu.on", places);
    bench_print(sh, (end - middle) / 1000, "us", "marker.switch.key.%zu.off", places);
    return 0;
}

static int measure_switches(struct shell *sh)
{
    size_t many = 0;
    int err = measure_switch(sh, BENCH_MARKER, BENCH_MARKER_FORMAT, 1);

    marker_for_each(sum_places, &many);
    if (!err && many)
        err = measure_switch(sh, MANY, MANY_FORMAT, many);
    return err ? err : measure_key(sh);
}

static int marker_run_group(struct shell *sh, const char *only)
{
    int err = 0;

    if (only && strcmp(only, "pass") != 0 && strcmp(only, "switch") != 0)
        return -ENOENT;
    if (!only || !strcmp(only, "pass"))
        err = measure_passes(sh);
    if (!err && (!only || !strcmp(only, "switch")))
        err = measure_switches(sh);
    return err;
}

const struct bench_group bench_group_marker = {
    .name = "marker",
    .keeps_jumps = true,
    .run = marker_run_group,
};
