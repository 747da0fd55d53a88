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

/* Locks: PLAT_PROBES. */
static uint64_t *used;   /* bit i: counter i is in use. Behind that, as long: bit i: it is
                          * not in the total */
static size_t in_use;    /* how many counters are */
static size_t words;     /* of used[] */
static size_t first;     /* all words before this one are full */
static uint64_t retired; /* what the total has of counters that were given back */

static bool words_grow(void)
{
    size_t more = words ? 2 * words : WORDS_MIN;
    uint64_t *new = plat_alloc(2 * more * sizeof(*new));

    if (!new)
        return false;
    for (size_t i = 0; i < words; i++) {
        new[i] = used[i];
        new[more + i] = used[words + i];
    }
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

static bool counter_is_used(size_t counter)
{
    return used[counter / 64] & BIT(counter % 64);
}

/* counter_row_find - find @count free counters in a row. Return: the first; 0: no memory. */
static size_t counter_row_find(size_t count)
{
    size_t at, row = 0;

    while (first < words && used[first] == UINT64_MAX)
        first++;
    for (at = first * 64; row < count; at++) {
        if (at == words * 64 && !words_grow())
            return 0;
        row = counter_is_used(at) ? 0 : row + 1;
    }
    return at - count;
}

uint32_t counter_take(size_t count, bool is_apart)
{
    size_t counter = counter_row_find(count);

    if (!counter || plat_counters_map(counter + count)) {
        free_if_unused();
        return 0;
    }
    for (size_t i = counter; i < counter + count; i++) {
        used[i / 64] |= BIT(i % 64);
        if (is_apart)
            used[words + i / 64] |= BIT(i % 64);
    }
    in_use += count;
    return (uint32_t)counter;
}

static bool counter_is_apart(uint32_t counter)
{
    return used[words + counter / 64] & BIT(counter % 64);
}

/* What @next has counted so far, @counter has counted as well. */
void counter_pass(uint32_t counter, uint32_t next)
{
    if (!counter || !next || counter_is_apart(counter) || !counter_is_apart(next))
        return;
    used[words + next / 64] &= ~BIT(next % 64);
    retired -= counter_sum(next);
}

uint64_t *counter_word(unsigned cpu, uint32_t number)
{
    return plat_probe_cpu(cpu)->plat.counters + number;
}

uint64_t counter_sum(uint32_t counter)
{
    uint64_t sum = 0;

    if (!counter)
        return 0;
    for (unsigned cpu = 0; cpu < plat_cpu_count(); cpu++)
        sum += READ_ONCE(*counter_word(cpu, counter));
    return sum;
}

/* counter_free - give @counter back, which no hit changes any more. */
static void counter_free(uint32_t counter)
{
    for (unsigned cpu = 0; cpu < plat_cpu_count(); cpu++)
        WRITE_ONCE(*counter_word(cpu, counter), 0);
    used[counter / 64] &= ~BIT(counter % 64);
    used[words + counter / 64] &= ~BIT(counter % 64);
    if (counter / 64 < first)
        first = counter / 64;
    in_use--;
}

uint64_t counter_put(uint32_t counter)
{
    uint64_t sum = counter_sum(counter);

    if (!counter)
        return 0;
    if (!counter_is_apart(counter))
        retired += sum;
    counter_free(counter);
    free_if_unused();
    return sum;
}

void counter_words_put(uint32_t counter, size_t count)
{
    for (size_t i = 0; i < count; i++)
        counter_free(counter + (uint32_t)i);
    free_if_unused();
}

uint64_t counter_total(void)
{
    bool held = plat_lock_held(PLAT_PROBES);
    uint64_t sum;

    if (!held)
        plat_lock(PLAT_PROBES);
    sum = retired;
    for (uint32_t i = 1; i < words * 64; i++)
        if (counter_is_used(i) && !counter_is_apart(i))
            sum += counter_sum(i);
    if (!held)
        plat_unlock(PLAT_PROBES);
    return sum;
}
