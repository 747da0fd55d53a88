/* counter.h - hands out counters of 8 bytes. Each CPU has its own copy of each counter,
 * so one instruction counts, without a lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* counter_take - reserve @count counters in a row, whose values are 0.
 * @is_apart: counter_total() leaves them out
 * counter_get - reserve one.
 * @is_first: of the first probe at its place. Only such counters are in counter_total():
 *            the other probes there count the same hits
 * Locks:  PLAT_PROBES held.
 * Return: the number of the first; 0: no memory.
 */
uint32_t counter_take(size_t count, bool is_apart);
static inline uint32_t counter_get(bool is_first)
{
    return counter_take(1, !is_first);
}
/* counter_pass - the probe with @counter leaves its place, where the probe with @next comes
 * behind it: if the first was in the total, the other one is from now on. 0: none.
 * Locks: PLAT_PROBES held.
 */
void counter_pass(uint32_t counter, uint32_t next);
/* counter_put - give @counter back; 0 does nothing. No hit can count there any more.
 * Locks: PLAT_PROBES held.  Return: its last value, summed over all CPUs.
 */
uint64_t counter_put(uint32_t counter);
/* counter_words_get - reserve @count counters in a row, for the words of a program. They do
 * not count hits, so counter_total() leaves them out.
 * counter_words_put - give them back. No hit can change them any more.
 * Locks: PLAT_PROBES held.  Return: the number of the first; 0: no memory.
 */
static inline uint32_t counter_words_get(size_t count)
{
    return counter_take(count, true);
}
void counter_words_put(uint32_t counter, size_t count);
/* counter_word - word @number, of CPU @cpu. Context: any. */
uint64_t *counter_word(unsigned cpu, uint32_t number);

/* counter_sum - the value of @counter, summed over all CPUs. Context: any. */
uint64_t counter_sum(uint32_t counter);
/* counter_total - how many hits counters have counted, those that were given back included.
 * Locks: may take PLAT_PROBES. It does so unless the caller holds it.
 */
uint64_t counter_total(void);
