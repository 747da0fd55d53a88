/* bench_text.c - `bench text`: measures how long a change of text takes by each engine, how
 * long the other CPUs stand meanwhile, and how many synchronisations it takes.
 *
 * On the other CPUs threads read the clock in a loop. The longest time between two readings
 * is the time that the CPU has stood. A CPU without such a thread is halted, so changes of
 * text leave it alone.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "probes/bench/bench.h"
#include "probes/core/text_poke.h"
#include "probes/text/text_engine.h"
#include "probes/text/text_phases.h"

#include <string.h>

/* With the machine stopped, a change may take a second under QEMU. */
#define ROUNDS 9
#define LEN 7          /* of an instruction of bench_targets_long */
#define DISPLACEMENT 3 /* its last bytes, from here on */

/* ---- the changes ---- */

/* Text changes only where sites are, so each place has a probe, which is disabled. */
static struct kprobe probes[BENCH_PLACEMENTS];

/* change_places - let @bytes bytes of the first @places instructions have other values
 * (@on), or those that they had before.
 */
static void change_places(size_t places, size_t bytes, bool on)
{
    struct text_poke pokes[BENCH_PLACEMENTS] = { 0 };
    static uint8_t before[BENCH_PLACEMENTS][LEN];

    for (size_t i = 0; i < places; i++) {
        pokes[i].addr = probes[i].addr;
        pokes[i].len = LEN;
        if (on)
            memcpy(before[i], (const void *)probes[i].addr, LEN);
        memcpy(pokes[i].bytes, before[i], LEN);
        for (size_t at = 0; on && at < bytes; at++)
            pokes[i].bytes[DISPLACEMENT + at] ^= 0x55;
    }
    plat_lock(PLAT_TEXT);
    text_poke_batch(pokes, places);
    plat_unlock(PLAT_TEXT);
}

static void change_armed(bool on)
{
    if (on)
        enable_kprobe(&probes[0]);
    else
        disable_kprobe(&probes[0]);
}

static void change_byte(bool on)
{
    change_places(1, 1, on);
}

static void change_one(bool on)
{
    change_places(1, LEN - DISPLACEMENT, on);
}

static void change_batch(bool on)
{
    change_places(BENCH_PLACEMENTS, LEN - DISPLACEMENT, on);
}

static const struct {
    const char *name, *back; /* back: NULL: the way back is not measured */
    void (*run)(bool on);
} changes[] = {
    { "arm", "disarm", change_armed },
    { "byte", NULL, change_byte },
    { "instruction", NULL, change_one },
    { "batch", NULL, change_batch },
};

/* ---- the other CPUs ---- */

static struct runner {
    volatile uint64_t longest; /* between two readings, in nanoseconds */
    volatile uint64_t loops;
    int tid;
} runners[MAX_CPUS];
static size_t runner_count;
static volatile bool running;

static int runner_loop(void *arg)
{
    uint64_t last = clock_ns();
    struct runner *r = arg;

    for (; running; r->loops++) {
        uint64_t now = clock_ns();

        if (now - last > r->longest)
            r->longest = now - last;
        last = now;
    }
    return 0;
}

static void wait_for_loops(void)
{
    for (size_t i = 0; i < runner_count; i++)
        for (uint64_t end = runners[i].loops + 2; runners[i].loops < end;)
            pause();
}

/* start_runners - let @count CPUs beside this one, the last one, run. */
static void start_runners(size_t count)
{
    running = true;
    for (runner_count = 0; runner_count < count; runner_count++) {
        struct runner *r = &runners[runner_count];

        r->tid = kernel_clone(&(struct clone_args){
            .fn = runner_loop, .arg = r, .name = "bench", .cpus = BIT(runner_count) });
        if (r->tid < 0)
            break;
    }
    wait_for_loops();
}

static void stop_runners(void)
{
    running = false;
    for (size_t i = 0; i < runner_count; i++)
        thread_join(runners[i].tid, NULL);
}

/* ---- measuring ---- */

struct sample {
    uint64_t ns[ROUNDS], stood[ROUNDS], syncs[ROUNDS];
};

static uint64_t median(uint64_t values[ROUNDS])
{
    for (size_t i = 1; i < ROUNDS; i++)
        for (size_t j = i; j && values[j - 1] > values[j]; j--) {
            uint64_t value = values[j];

            values[j] = values[j - 1];
            values[j - 1] = value;
        }
    return values[ROUNDS / 2];
}

static void measure_change(struct sample *s, size_t round, void (*fn)(bool on), bool on)
{
    uint64_t phases = text_phases_count(), start;

    for (size_t i = 0; i < runner_count; i++)
        runners[i].longest = 0;
    start = clock_ns();
    fn(on);
    s->ns[round] = clock_ns() - start;
    s->syncs[round] = text_phases_count() - phases;
    wait_for_loops();
    s->stood[round] = 0;
    for (size_t i = 0; i < runner_count; i++)
        if (runners[i].longest > s->stood[round])
            s->stood[round] = runners[i].longest;
}

static void print_sample(struct shell *sh, struct sample *s, const char *name)
{
    const char *engine = text_engine_get()->name;
    size_t cpus = runner_count + 1;

    bench_print(sh, median(s->ns), "ns", "text.%s.%zu.%s.ns", engine, cpus, name);
    if (runner_count)
        bench_print(sh, median(s->stood), "ns", "text.%s.%zu.%s.others_stand_ns", engine,
                    cpus, name);
    bench_print(sh, median(s->syncs), "times", "text.%s.%zu.%s.syncs", engine, cpus,
                name);
}

static void measure_changes(struct shell *sh)
{
    static struct sample there, back; /* one run of `bench` at a time */

    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        for (size_t round = 0; round < ROUNDS; round++) {
            measure_change(&there, round, changes[i].run, true);
            measure_change(&back, round, changes[i].run, false);
        }
        print_sample(sh, &there, changes[i].name);
        if (changes[i].back)
            print_sample(sh, &back, changes[i].back);
    }
}

/* measure_engines - measure each engine, or that with the name @only, while @cpus CPUs run.
 */
static void measure_engines(struct shell *sh, const char *only, unsigned cpus)
{
    const struct text_engine *before = text_engine_get();

    start_runners(cpus - 1);
    for (size_t i = 0; i < text_engine_count; i++) {
        if (only && strcmp(only, text_engines[i]->name) != 0)
            continue;
        text_engine_set(text_engines[i]);
        measure_changes(sh);
    }
    text_engine_set(before);
    stop_runners();
}

static int text_run_group(struct shell *sh, const char *only)
{
    struct kprobe *ps[BENCH_PLACEMENTS];
    int err;

    if (only && !text_engine_find(only, strlen(only)))
        return -ENOENT;
    for (size_t i = 0; i < BENCH_PLACEMENTS; i++) {
        probes[i] = (struct kprobe){ .addr = bench_targets_long[i].addr,
                                     .flags = KPROBE_FLAG_DISABLED };
        ps[i] = &probes[i];
    }
    err = register_kprobes(ps, BENCH_PLACEMENTS);
    if (err)
        return shell_error(sh, err, "bench: text");
    for (unsigned cpus = 1; cpus < cpu_count() && !shell_interrupted(sh); cpus *= 2)
        measure_engines(sh, only, cpus);
    if (!shell_interrupted(sh))
        measure_engines(sh, only, cpu_count());
    else
        err = -EINTR;
    unregister_kprobes(ps, BENCH_PLACEMENTS);
    return err;
}

const struct bench_group bench_group_text = {
    .name = "text",
    .run = text_run_group,
};
