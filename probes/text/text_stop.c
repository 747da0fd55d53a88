/* text_stop.c - the engine that takes the steps of a batch with the machine stopped.
 *
 * The steps are the same as without. A CPU that stands still takes NMIs, and the NMI
 * handler may run into text that is being changed. And the loop in which the CPUs wait
 * may be part of the text that is changed.
 */
#include "kernel/base/bits.h"
#include "probes/core/platform.h"
#include "probes/core/text_batch.h"
#include "probes/text/text_engine.h"

/* How often the machine is stopped before the log names the CPU that is in the way: first
 * TRIES_MIN times, then twice as often each time, up to TRIES_MAX. A CPU that makes
 * progress leaves the text after one or two tries. In an emulator a try takes some 15 ms,
 * so a CPU that makes no progress is named within a second.
 */
#define TRIES_MIN 16
#define TRIES_MAX 65536

/* is_inside - is @ip in the middle of a poke of @b, not at its first byte? */
static bool is_inside(const struct text_batch *b, uintptr_t ip)
{
    size_t low = 0, high = b->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (b->pokes[mid].addr < ip)
            low = mid + 1;
        else
            high = mid;
    }
    return low && ip < b->pokes[low - 1].addr + b->pokes[low - 1].len;
}

/* cpu_inside - find the first stopped CPU that is inside a poke. Return: false: none is.
 */
static bool cpu_inside(const struct text_batch *b, unsigned *out)
{
    for (unsigned cpu = 0; cpu < plat_cpu_count(); cpu++) {
        if (!is_inside(b, plat_stopped_ip(cpu)))
            continue;
        *out = cpu;
        return true;
    }
    return false;
}

struct stop {
    struct text_batch *batch;
    bool done;
    unsigned cpu; /* not done: the CPU that was in the way at the last try, */
    uintptr_t ip; /* and where it was */
};

static void run_stopped(void *arg)
{
    struct stop *stop = arg;

    if (cpu_inside(stop->batch, &stop->cpu)) {
        stop->ip = plat_stopped_ip(stop->cpu);
        return;
    }
    text_poke_steps(stop->batch);
    stop->done = true;
}

static void report_in_the_way(const struct stop *stop)
{
    struct plat_symbol sym = { .start = stop->ip, .name = "?" };

    plat_symbol_at(stop->ip, &sym);
    plat_log("text-poke: CPU %u is at %s+0x%lx, inside of what is to be changed",
             stop->cpu, sym.name, (unsigned long)(stop->ip - sym.start));
}

/* run_stopping - stop the machine until no CPU is inside of the text that is to be
 * changed, and change it then. Between two tries all CPUs go on, so that a CPU can leave
 * this text. If a debugger has stopped all CPUs, the steps are taken at once.
 */
static void run_stopping(struct text_batch *b)
{
    struct stop stop = { .batch = b };

    if (plat_context() == PLAT_HELD) {
        text_poke_steps(b);
        return;
    }
    for (unsigned tries = TRIES_MIN; tries <= TRIES_MAX; tries *= 2) {
        for (unsigned i = 0; i < tries && !stop.done; i++)
            plat_stop_machine(run_stopped, &stop);
        if (stop.done)
            return;
        report_in_the_way(&stop);
    }
    plat_bug("a CPU does not leave text that is to be changed", stop.ip);
}

const struct text_engine text_engine_stop_machine = {
    .name = "stop-machine",
    .steps = BIT(TEXT_POKE_GUARD) | BIT(TEXT_POKE_TAIL) | BIT(TEXT_POKE_FIRST),
    .run = run_stopping,
};
