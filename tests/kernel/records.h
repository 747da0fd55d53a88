/* records.h - counts the records that the tracer's rings have overwritten. */
#pragma once

#include "kernel/cpu/percpu.h"
#include "probes/trace/buffer/buffer.h"

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
