/* counter.h - counters of 8 bytes that each CPU has for itself: counting needs no lock, and
 * one instruction does it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* counter_get - a counter that is 0. Locks: PLAT_PROBES held.  Return: 0 without memory. */
uint32_t counter_get(void);
/* counter_put - give it back; no hit can count there any more. @counter: 0 does nothing.
 * Locks: PLAT_PROBES held.  Return: what it has come to.
 */
uint64_t counter_put(uint32_t counter);
/* counter_sum - of all CPUs. counter_total - of all counters, those given back included.
 * Context: any.
 */
uint64_t counter_sum(uint32_t counter);
uint64_t counter_total(void);
/* counter_exit - when none is in use: forget the bookkeeping. Locks: PLAT_PROBES held. */
void counter_exit(void);
