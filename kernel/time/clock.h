/* clock.h - nanoseconds since boot, from the time stamp counter.
 *
 * All CPUs read the same counter value at the same time (invariant, synchronised TSC, as
 * QEMU gives it); the kernel does not correct a counter that differs.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"

#include <stdbool.h>
#include <stdint.h>

/* clock_init - find out how fast the TSC runs: from CPUID if CPUID says so, else by a
 * measurement against the PIT, for about 10 ms.
 * @pit_wait: waits @us microseconds by the PIT; returns the TSC cycles that it took
 *
 * Context: boot, once. Until then clock_ns() is 0.
 */
void clock_init(uint64_t (*pit_wait)(unsigned us));

/* clock_ns - get nanoseconds since clock_init(). Never runs backwards. Context: any. */
uint64_t clock_ns(void);

#define CLOCK_SHIFT 32
/* For clock_ns_here() only. */
extern struct clock_rate {
    uint64_t base_cycles; /* the counter when the clock was 0 */
    uint64_t mult;        /* nanoseconds per cycle, << CLOCK_SHIFT; 0: no clock yet */
} clock_rate;

static ALWAYS_INLINE uint64_t clock_ns_between(uint64_t base, uint64_t cycles)
{
    return (uint64_t)(((unsigned __int128)(cycles - base) * clock_rate.mult) >>
                      CLOCK_SHIFT);
}

/* clock_ns_here - as clock_ns(), in the code of the caller, where a call would cost too much.
 *
 * A debugger may stop the CPU, and the clock, after base_cycles was read and before the
 * counter is read. Then base_cycles has changed, and both are read again.
 */
static ALWAYS_INLINE uint64_t clock_ns_here(void)
{
    uint64_t base, cycles;

    do {
        base = READ_ONCE(clock_rate.base_cycles);
        barrier();
        cycles = rdtsc();
        barrier();
    } while (unlikely(base != READ_ONCE(clock_rate.base_cycles)));
    return clock_ns_between(base, cycles);
}

/* clock_waited - has the caller, which looks again and again, waited for @ns nanoseconds?
 *
 * When the host stops the machine, the clock jumps on, though no CPU had time for what the
 * caller waits for. So the time between two looks counts as a quarter of @ns at most.
 * Context: any.
 */
struct clock_wait {
    uint64_t last; /* clock_ns() at the last look; at first, when the wait began */
    uint64_t ns;   /* what counts so far */
};

bool clock_waited(struct clock_wait *wait, uint64_t ns);

/* clock_ns_at - get the time at which the time stamp counter was @cycles. For a time
 * before the last stop of the machine by a debugger, the result is too small.
 * Context: any.
 */
uint64_t clock_ns_at(uint64_t cycles);

/* clock_skip - leave the last @cycles of the time stamp counter out of the clock: the stub
 * has waited for the debugger for that time. Context: held.
 */
void clock_skip(uint64_t cycles);

/* clock_cycles_per_ms - get the number of TSC cycles in a millisecond. Context: any. */
uint64_t clock_cycles_per_ms(void);

/* clock_spin_ns - wait @ns nanoseconds without sleeping. Context: any. */
void clock_spin_ns(uint64_t ns);
