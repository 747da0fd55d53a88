/* explore_marker.c - functions are connected to a marker and disconnected, while a CPU
 * and its NMI pass the marker. The byte that switches the marker and the list of functions
 * are two places in memory, and a CPU may still fetch the old byte: in each order the CPU
 * calls functions that are connected, or none.
 */
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/core/recover.h"
#include "probes/marker/marker.h"
#include "probes/xmc/xmc.h"
#include "tests/explore/machine.h"

#define NAME "explored"
#define FORMAT "%u"

/* The immediate of the marker's instruction. `old` is what a CPU may still fetch. */
static struct {
    uint8_t now, old[MACHINE_CPUS];
} byte;
static struct marker_site site = { .name = NAME, .format = FORMAT };
static const struct marker_insn insn = { (uintptr_t)&byte, &site };
static struct marker_part part = {
    .sites = &site,
    .insns = &insn,
    .site_count = 1,
    .insn_count = 1,
};

int recover_bytes(uint8_t *out, uintptr_t addr, size_t len)
{
    explore_check(addr == insn.insn && len == 2, "it is the marker's instruction");
    out[1] = byte.now;
    return 0;
}

int xmc_batch(const struct xmc_change *changes, size_t count,
              struct probe_reject *why UNUSED)
{
    if (!count)
        return 0;
    explore_check(count == 1 && changes->addr == insn.insn, "one byte changes");
    if (explore_choose(2)) {
        explore_seen("a change of the byte is refused");
        return -ENOMEM;
    }
    byte.now = changes->bytes[1];
    for (unsigned i = 0; i < MACHINE_CPUS; i++)
        byte.old[i] = byte.now;
    return 0;
}

int register_check_caller(const char *verb UNUSED, struct probe_reject *why UNUSED)
{
    return 0;
}

void plat_lock(enum plat_lock lock UNUSED)
{
}

void plat_unlock(enum plat_lock lock UNUSED)
{
}

void quiesce(void);
void __wrap_plat_quiesce(void);
void __wrap_plat_quiesce(void)
{
    quiesce();
}

void preempt_enable(void)
{
    machine_leave();
}

static void called(void *private, struct marker_call *call)
{
    explore_check(*(unsigned *)private == 1, "a function has its argument");
    explore_check(va_arg(call->args, uint64_t) == 7, "and the marker's");
    explore_seen("a function is called");
}

static void start(void)
{
    explore_check(!marker_comes(&part), "the marker comes");
}

static unsigned *connect(void)
{
    unsigned *private = explore_alloc(sizeof(*private));

    *private = 1;
    if (!marker_connect(NAME, FORMAT, called, private))
        return private;
    explore_free(private);
    return NULL;
}

static void disconnect(unsigned *private)
{
    if (!private)
        return;
    explore_check(!marker_disconnect(NAME, called, private), "a function goes");
    explore_free(private);
}

static void change(void)
{
    unsigned *first = connect(), *second = connect();

    disconnect(first);
    disconnect(second);
    explore_check(!site.hooks || !site.hooks->count, "no function stays");
}

static void pass(void)
{
    const uint64_t words[] = { (uintptr_t)&site, 7 };
    const uintptr_t frame[2] = { 0 };
    uint8_t now = byte.now, old = byte.old[explore_cpu()];

    if (now == old || explore_choose(2) ? now : old)
        marker_run(words, frame);
    else
        explore_seen("the marker is off");
}

static void pass_twice(void)
{
    pass();
    pass();
}

static void end(void)
{
    marker_goes(&part);
    explore_check(!explore_blocks(), "no memory is left");
}

const struct scenario scenario = {
    .start = start,
    .end = end,
    .actors = { { "switch", change, 0, EXPLORE_THREAD },
                { "program", pass_twice, 1, EXPLORE_THREAD },
                { "nmi", pass, 1, EXPLORE_NMI } },
    .outcomes = { "a function is called", "the marker is off",
                  "a change of the byte is refused" },
};
