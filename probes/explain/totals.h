/* totals.h - sum the counters about hits over all CPUs. */
#pragma once

#include "probes/core/life.h"

struct probe_totals {
    /* Traps that were taken for probes: the sum of the next two lines, without WAY_JUMP,
     * minus @untrapped.
     */
    uint64_t traps;
    uint64_t ran[WAYS], missed[MISS_CAUSES];
    uint64_t steps, redirected, retries;
    uint64_t untrapped;
    uint64_t cache_misses, handler_faults;
};
/* account_totals - fill @out with the sums over all CPUs. Locks: as counter_total(). */
void account_totals(struct probe_totals *out);
