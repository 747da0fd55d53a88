/* gdb_rings.h - owns, for each CPU, a ring of the tracer (probes/trace/ring/ring.h). What
 * hits have for the debugger waits there.
 */
#pragma once

#include "kernel/cpu/percpu.h"
#include "probes/trace/ring/page_merge.h"

struct gdb_rings {
    unsigned count; /* number of rings; 0: there are none */
    struct ring *ring[MAX_CPUS];
    struct merge merge;
    struct merge_ring reader[MAX_CPUS];
};

/* gdb_rings_init - make a ring of @pages pages for each CPU.
 * @overwrite: as for gdb_rings_overwrite()
 * Context: boot, all CPUs online.
 * Return: false: no memory, and there are no rings.
 */
bool gdb_rings_init(struct gdb_rings *rings, size_t pages, bool overwrite);

/* gdb_rings_begin - set rings->merge in front of the first record.
 * Context: any, one caller at a time. No record of the executing CPU is being written.
 */
void gdb_rings_begin(struct gdb_rings *rings, enum merge_how how);

/* gdb_rings_reset - forget what was written up to now. Context: as gdb_rings_begin(). */
void gdb_rings_reset(struct gdb_rings *rings);

/* gdb_rings_overwrite - say whether new records may replace the oldest ones.
 * Context: any.
 * gdb_rings_bytes - count the bytes that can be read. Context: as gdb_rings_begin().
 */
void gdb_rings_overwrite(struct gdb_rings *rings, bool overwrite);
uint64_t gdb_rings_bytes(struct gdb_rings *rings);

/* gdb_rings_write - do ring_write() in the ring of the executing CPU.
 * gdb_rings_commit - do ring_commit() there. Context: any, preemption off.
 */
static inline void *gdb_rings_write(struct gdb_rings *rings, size_t len)
{
    return ring_write(rings->ring[cpu_id()], len);
}

static inline void gdb_rings_commit(struct gdb_rings *rings)
{
    ring_commit(rings->ring[cpu_id()]);
}
