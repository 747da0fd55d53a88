/* counter.c - hands out per-CPU counters, and records which of them are in use.
 *
 * A counter has a number from 1 up; 0 means none. The platform owns the memory of the
 * counters. That memory stays mapped for the next probe that needs a counter. The record
 * of the counters in use is freed with the last of them.
 */
#include "probes/jump/counter.h"

#include "kernel/base/bits.h"
#include "probes/core/life.h"
#include "probes/jump/platform_jump.h"

#define WORDS_MIN 16
#define NONE UINT64_C(1) /* in the first word: number 0 is never free */

/* Locks: PLAT_PROBES to write; `limit` and `retired` are read without it. */
static uint64_t *used;   /* bit i: counter i is in use */
static size_t in_use;    /* how many counters are */
static size_t words;     /* of used[] */
static size_t first;     /* all words before this one are full */
static uint32_t limit;   /* no counter from here up has ever been used */
static uint64_t retired; /* the sum of all counters that were given back */

static bool words_grow(void)
{
    size_t more = words ? 2 * words : WORDS_MIN;
    uint64_t *new = plat_alloc(more * sizeof(*new));

    if (!new)
        return false;
    for (size_t i = 0; i < words; i++)
        new[i] = used[i];
    new[0] |= NONE;
    plat_free(used);
    used = new;
    words = more;
    return true;
}

static void free_if_unused(void)
{
    if (in_use)
        return;
    plat_free(used);
    used = NULL;
    words = first = 0;
}

uint32_t counter_get(void)
{
    uint32_t counter;

    while (first < words && used[first] == UINT64_MAX)
        first++;
    if (first == words && !words_grow())
        return 0;
    counter = (uint32_t)(first * 64 + bit_lowest(~used[first]));
    if (plat_counters_map(counter + 1)) {
        free_if_unused();
        return 0;
    }
    used[first] |= BIT(counter % 64);
    in_use++;
    if (counter >= limit)
        WRITE_ONCE(limit, counter + 1);
    return counter;
}

static uint64_t *counter_of(unsigned cpu, uint32_t counter)
{
    return plat_probe_cpu(cpu)->plat.counters + counter;
}

uint64_t counter_sum(uint32_t counter)
{
    uint64_t sum = 0;

    if (!counter)
        return 0;
    for (unsigned cpu = 0; cpu < plat_cpu_count(); cpu++)
        sum += READ_ONCE(*counter_of(cpu, counter));
    return sum;
}

uint64_t counter_put(uint32_t counter)
{
    uint64_t sum = counter_sum(counter);

    if (!counter)
        return 0;
    for (unsigned cpu = 0; cpu < plat_cpu_count(); cpu++)
        WRITE_ONCE(*counter_of(cpu, counter), 0);
    WRITE_ONCE(retired, retired + sum);
    used[counter / 64] &= ~BIT(counter % 64);
    if (counter / 64 < first)
        first = counter / 64;
    in_use--;
    free_if_unused();
    return sum;
}

uint64_t counter_total(void)
{
    uint64_t sum = READ_ONCE(retired);

    for (uint32_t i = 1; i < READ_ONCE(limit); i++)
        sum += counter_sum(i);
    return sum;
}
