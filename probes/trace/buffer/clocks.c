/* clocks.c - owns the clocks for records, and the choice between them. */
#include "probes/trace/buffer/clocks.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/sync/wait_check.h"
#include "kernel/time/clock.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/snapshot.h"
#include "probes/trace/language/event.h"

#include <string.h>

static uint64_t clock_counter(void)
{
    static uint64_t count;

    return __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
}

/* clock_uptime - count hundredths of a second, as processes see jiffies on Linux. */
static uint64_t clock_uptime(void)
{
    return clock_ns() / 10000000;
}

static uint64_t clock_tsc(void)
{
    return rdtsc();
}

/* All clocks that count nanoseconds are the same one here, because clock_ns() is the same
 * on all CPUs. They have all of Linux's names.
 */
static const struct trace_clock {
    const char *name;
    uint64_t (*read)(void);
    bool cycles;
} clocks[] = {
    { "local", clock_ns, false },       { "global", clock_ns, false },
    { "counter", clock_counter, true }, { "uptime", clock_uptime, true },
    { "perf", clock_ns, false },        { "mono", clock_ns, false },
    { "mono_raw", clock_ns, false },    { "boot", clock_ns, false },
    { "tai", clock_ns, false },         { "x86-tsc", clock_tsc, true },
};

static const struct trace_clock *chosen = &clocks[0];

bool trace_clock_is_cycles(void)
{
    return READ_ONCE(chosen)->cycles;
}

const char *trace_clock_name(size_t i, bool *is_chosen)
{
    if (i >= ARRAY_LEN(clocks))
        return NULL;
    *is_chosen = &clocks[i] == chosen;
    return clocks[i].name;
}

int trace_set_clock(const char *name, size_t len)
{
    int err = wait_check(__func__);

    if (err)
        return err;
    for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
        if (!str_is(clocks[i].name, name, len))
            continue;
        snapshot_hold();
        err = buffer_set_clock(clocks[i].read);
        snapshot_release();
        if (err)
            return err;
        buffer_snapshot_free(); /* as on Linux, it is empty */
        event_forget_births();
        WRITE_ONCE(chosen, &clocks[i]);
        return 0;
    }
    return -EINVAL;
}
