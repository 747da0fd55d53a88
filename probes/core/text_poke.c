/* text_poke.c - change instructions that other CPUs are executing.
 *
 * Why three steps. Another CPU may fetch these bytes at any moment, in pieces and in any
 * order, so each intermediate content must be harmless:
 *
 *   1. guard: int3 over the first byte   a CPU that arrives traps, and is sent on
 *   2. tail: the bytes behind it         no CPU can reach them, 1 stands guard
 *   3. first: the new first byte         the change becomes visible at once
 *
 * Each ends with plat_sync_cores(), so that no CPU mixes two of them. That every CPU has
 * been there is asserted by its count, since an emulator works just as well without. Where
 * instructions extend over each other a step takes several levels; see text_batch.c.
 *
 * The same steps are taken with the machine stopped: CPUs that stand still take NMIs, whose
 * handlers may run into the text that is being changed, and the loop that the CPUs wait in
 * may be changed itself.
 */
#include "probes/core/extend.h"
#include "probes/core/platform.h"
#include "probes/core/text_batch.h"

/* Of stopping the machine, until the log names the CPU that is in the way; each time twice
 * as many.
 */
#define TRIES_MIN 500
#define TRIES_MAX 64000

static enum text_poke_engine engine = TEXT_POKE_INT3;
static void (*step_hook)(enum text_poke_step step, unsigned level);

/* ---- the protocol ---------------------------------------------------------------------- */

static void sync_cores(void)
{
    static uint64_t before[PLAT_CPUS_MAX]; /* under PLAT_TEXT */
    unsigned cpus = plat_cpu_count();

    for (unsigned cpu = 0; cpu < cpus; cpu++)
        before[cpu] = plat_sync_count(cpu);
    plat_sync_cores();
    for (unsigned cpu = 0; cpu < cpus; cpu++)
        if (plat_sync_count(cpu) == before[cpu])
            plat_bug("a CPU has not been synchronised", cpu);
}

static void run_step(struct text_batch *b, enum text_poke_step step)
{
    for (unsigned level = 0; level < b->levels[step]; level++) {
        if (!text_batch_write(b, step, level))
            continue;
        ext_poke_written(b->pokes, b->count, step, level);
        sync_cores();
        ext_poke_synced();
        if (step_hook)
            step_hook(step, level);
    }
}

static void run_steps(struct text_batch *b)
{
    run_step(b, TEXT_POKE_GUARD);
    run_step(b, TEXT_POKE_TAIL);
    run_step(b, TEXT_POKE_FIRST);
}

/* ---- with the machine stopped ---------------------------------------------------------- */

/* cpu_inside - the first stopped CPU that is inside a poke. Return: false: none is. */
static bool cpu_inside(const struct text_batch *b, unsigned *out)
{
    for (unsigned cpu = 0; cpu < plat_cpu_count(); cpu++) {
        if (!text_batch_is_inside(b, plat_stopped_ip(cpu)))
            continue;
        *out = cpu;
        return true;
    }
    return false;
}

struct stop {
    struct text_batch *batch;
    bool done;
    unsigned cpu; /* else: the CPU in the way when the machine was stopped last */
    uintptr_t ip;
};

static void run_stopped(void *arg)
{
    struct stop *stop = arg;

    if (cpu_inside(stop->batch, &stop->cpu)) {
        stop->ip = plat_stopped_ip(stop->cpu);
        return;
    }
    run_steps(stop->batch);
    stop->done = true;
}

static void report_in_the_way(const struct stop *stop)
{
    struct plat_symbol sym = { .start = stop->ip, .name = "?" };

    plat_symbol_at(stop->ip, &sym);
    plat_log("text-poke: CPU %u is at %s+0x%lx, inside of what is to be changed",
             stop->cpu, sym.name, (unsigned long)(stop->ip - sym.start));
}

/* Let go and try again: a CPU that is inside gets on meanwhile, and out of it. */
static void run_stopping(struct text_batch *b)
{
    struct stop stop = { .batch = b };

    for (unsigned tries = TRIES_MIN; tries <= TRIES_MAX; tries *= 2) {
        for (unsigned i = 0; i < tries && !stop.done; i++)
            plat_stop_machine(run_stopped, &stop);
        if (stop.done)
            return;
        report_in_the_way(&stop);
    }
    plat_bug("a CPU does not leave text that is to be changed", stop.ip);
}

/* ---- the interface --------------------------------------------------------------------- */

void text_poke_batch(struct text_poke *pokes, size_t count)
{
    struct text_batch b;

    if (!plat_lock_held(PLAT_TEXT))
        plat_bug("text is patched without its lock", count ? pokes->addr : 0);
    text_batch_begin(&b, pokes, count);
    ext_poke_begins(pokes, count);
    if (engine == TEXT_POKE_STOP_MACHINE)
        run_stopping(&b);
    else
        run_steps(&b);
    ext_poked(pokes, count);
}

void text_poke_set_engine(enum text_poke_engine wanted)
{
    WRITE_ONCE(engine, wanted);
}

enum text_poke_engine text_poke_get_engine(void)
{
    return READ_ONCE(engine);
}

void text_poke_set_hook(void (*fn)(enum text_poke_step step, unsigned level))
{
    step_hook = fn;
}
