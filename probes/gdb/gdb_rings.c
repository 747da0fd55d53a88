/* gdb_rings.c - makes the rings at boot: a kernel that stands cannot allocate memory. */
#include "probes/gdb/gdb_rings.h"

#include "kernel/base/compiler.h"
#include "kernel/mm/heap.h"
#include "kernel/time/clock.h"
#include "probes/trace/buffer/buffer.h"

static const struct ring_ops ops = { .clock = clock_ns,
                                     .page_new = buffer_page_new,
                                     .page_free = buffer_page_free,
                                     .alloc = kzalloc,
                                     .free = kfree };

static bool init_cpu(struct gdb_rings *rings, unsigned cpu, size_t pages, bool overwrite)
{
    rings->ring[cpu] = ring_new(pages, overwrite, &ops);
    rings->reader[cpu].ring = rings->ring[cpu];
    rings->reader[cpu].page = buffer_page_new();
    return rings->ring[cpu] && rings->reader[cpu].page;
}

INIT bool gdb_rings_init(struct gdb_rings *rings, size_t pages, bool overwrite)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        if (!init_cpu(rings, cpu, pages, overwrite))
            return false;
    rings->count = cpu_count();
    return true;
}

void gdb_rings_begin(struct gdb_rings *rings, enum merge_how how)
{
    merge_init(&rings->merge, rings->reader, rings->count, how);
}

void gdb_rings_reset(struct gdb_rings *rings)
{
    for (unsigned cpu = 0; cpu < rings->count; cpu++)
        rings->reader[cpu].page = ring_reset(rings->ring[cpu], rings->reader[cpu].page);
}

void gdb_rings_overwrite(struct gdb_rings *rings, bool overwrite)
{
    for (unsigned cpu = 0; cpu < rings->count; cpu++)
        WRITE_ONCE(rings->ring[cpu]->overwrite, overwrite);
}

uint64_t gdb_rings_bytes(struct gdb_rings *rings)
{
    struct ring_stats stats;
    uint64_t bytes = 0;

    for (unsigned cpu = 0; cpu < rings->count; cpu++) {
        ring_stats_get(rings->ring[cpu], &stats);
        bytes += stats.bytes;
    }
    return bytes;
}
