/* clock.h - nanoseconds since boot, from the time stamp counter.
 *
 * All CPUs read the same counter value at the same time (invariant, synchronised TSC, as
 * QEMU gives it); the kernel does not correct a counter that differs.
 */
#pragma once

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

/* clock_source - tell how the rate was found: "CPUID 15h", "PIT", ... Context: any. */
const char *clock_source(void);

/* clock_spin_ns - wait @ns nanoseconds without sleeping. Context: any. */
void clock_spin_ns(uint64_t ns);
