/* records.h - takes the records out of the tracer's rings, and counts the lost ones. */
#pragma once

#include "kernel/cpu/percpu.h"
#include "probes/trace/buffer/buffer.h"

#include <stdbool.h>
#include <stdint.h>

/* overwritten - return how many records were overwritten before they were read, on all
 * CPUs. Context: thread; takes trace_lock().
 */
static inline uint64_t overwritten(void)
{
    uint64_t sum = 0;

    trace_lock();
    for (unsigned i = 0; i < cpu_count(); i++) {
        struct ring_stats stats;

        buffer_stats(i, BUFFER_LIVE, &stats);
        sum += stats.overwritten;
    }
    trace_unlock();
    return sum;
}

struct taken {
    uint64_t seen, wrong;
};

/* take_records - take all records, and count those that @is_right does not accept.
 * Context: thread; takes trace_lock().
 */
static inline void take_records(struct taken *taken,
                                bool (*is_right)(const struct merged *one))
{
    struct merged one;
    struct merge m;

    trace_lock();
    if (buffer_merge(&m, -1, BUFFER_LIVE, MERGE_TAKE)) {
        taken->wrong++;
    } else {
        while (buffer_merge_next(&m, &one)) {
            taken->seen++;
            taken->wrong += !is_right(&one);
        }
        buffer_merge_end(&m);
    }
    trace_unlock();
}
