/* clock.c - converts the time stamp counter to nanoseconds.
 *
 * Owns the rate, which is found once and never corrected. So reading the clock is one
 * multiplication and needs no lock, and the clock never runs backwards if the counter
 * does not.
 */
#include "kernel/time/clock.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/debug/log.h"

#include <stddef.h>

#define MEASURE_US 5000
#define MEASURE_TIMES 2
#define LEAF_TSC 0x15u
#define LEAF_HYPERVISOR 0x40000000u
#define LEAF_HYPERVISOR_TSC 0x40000010u
#define HYPERVISOR BIT(31) /* ecx of leaf 1 */

/* Immutable after clock_init(), but for base_cycles: clock_skip() writes it while all other
 * CPUs stand still.
 */
struct clock_rate clock_rate;
static uint64_t cycles_per_ms;
static const char *source = "none";

static uint64_t rate_from_cpuid(void)
{
    uint32_t out[4];

    cpuid(0, 0, out);
    if (out[0] < LEAF_TSC)
        return 0;
    cpuid(LEAF_TSC, 0, out); /* eax, ebx: the ratio of TSC and crystal; ecx: its Hz */
    if (!out[0] || !out[1] || !out[2])
        return 0;
    return (uint64_t)out[2] * out[1] / out[0] / 1000;
}

static uint64_t rate_from_hypervisor(void)
{
    uint32_t out[4];

    cpuid(1, 0, out);
    if (!(out[2] & HYPERVISOR))
        return 0;
    cpuid(LEAF_HYPERVISOR, 0, out);
    if (out[0] < LEAF_HYPERVISOR_TSC)
        return 0;
    cpuid(LEAF_HYPERVISOR_TSC, 0, out);
    return out[0]; /* kHz */
}

/* rate_from_pit - measure the cycles per millisecond. A disturbance makes a measurement
 * longer, so the shortest measurement is the best.
 */
static uint64_t rate_from_pit(uint64_t (*pit_wait)(unsigned us))
{
    uint64_t best = UINT64_MAX;

    for (unsigned n = 0; n < MEASURE_TIMES; n++) {
        uint64_t cycles = pit_wait(MEASURE_US);

        if (cycles < best)
            best = cycles;
    }
    return best * 1000 / MEASURE_US;
}

static uint64_t rate_find(uint64_t (*pit_wait)(unsigned us))
{
    uint64_t rate = rate_from_cpuid();

    source = "CPUID 15h";
    if (rate)
        return rate;
    rate = rate_from_hypervisor();
    source = "hypervisor";
    if (rate)
        return rate;
    source = "PIT";
    return rate_from_pit(pit_wait);
}

INIT void clock_init(uint64_t (*pit_wait)(unsigned us))
{
    cycles_per_ms = rate_find(pit_wait);
    clock_rate.base_cycles = rdtsc();
    clock_rate.mult = (UINT64_C(1000000) << CLOCK_SHIFT) / cycles_per_ms;
    log_info("clock: TSC at %llu kHz, by %s", (unsigned long long)cycles_per_ms, source);
}

uint64_t clock_ns_at(uint64_t cycles)
{
    return clock_ns_between(READ_ONCE(clock_rate.base_cycles), cycles);
}
NOKPROBE(clock_ns_at);

uint64_t clock_ns(void)
{
    return clock_ns_here();
}

COLD bool clock_waited(struct clock_wait *wait, uint64_t ns)
{
    uint64_t now = clock_ns(), step = now - wait->last;

    wait->last = now;
    wait->ns += step < ns / 4 ? step : ns / 4;
    return wait->ns >= ns;
}

void clock_skip(uint64_t cycles)
{
    WRITE_ONCE(clock_rate.base_cycles, clock_rate.base_cycles + cycles);
}

uint64_t clock_cycles_per_ms(void)
{
    return cycles_per_ms;
}

void clock_spin_ns(uint64_t ns)
{
    uint64_t end = clock_ns() + ns;

    while (clock_ns() < end)
        pause();
}
