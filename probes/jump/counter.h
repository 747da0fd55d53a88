/* counter.h - hands out counters of 8 bytes. Each CPU has its own copy of each counter,
 * so one instruction counts, without a lock.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* counter_get - reserve a counter, whose value is 0. Locks: PLAT_PROBES held.
 * Return: its number; 0: no memory.
 */
uint32_t counter_get(void);
/* counter_put - give @counter back; 0 does nothing. No hit can count there any more.
 * Locks: PLAT_PROBES held.  Return: its last value, summed over all CPUs.
 */
uint64_t counter_put(uint32_t counter);
/* counter_sum - the value of @counter, summed over all CPUs. counter_total - the sum of
 * all counters, including those that were given back.
 * Context: any.
 */
uint64_t counter_sum(uint32_t counter);
uint64_t counter_total(void);
