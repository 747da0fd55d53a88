/* gdb_rings.h - a ring of the tracer's (probes/trace/ring.h) for each CPU: what hits have for
 * the debugger waits there.
 */
#pragma once

#include "kernel/cpu/percpu.h"
#include "probes/trace/page_merge.h"

struct gdb_rings {
    unsigned count; /* of rings; 0: there are none */
    struct ring *ring[MAX_CPUS];
    struct merge merge;
    struct merge_ring reader[MAX_CPUS];
};

/* gdb_rings_init - @pages for each CPU. Context: boot, all CPUs online.
 * Return: false: no memory, and there are none.
 */
bool gdb_rings_init(struct gdb_rings *rings, size_t pages, bool overwrite);

/* gdb_rings_begin - let rings->merge be in front of the first record.
 * Context: one reader at a time; not in the middle of a writer of the executing CPU.
 */
void gdb_rings_begin(struct gdb_rings *rings, enum merge_how how);

/* gdb_rings_reset - forget what was written up to now. Context: as gdb_rings_begin(). */
void gdb_rings_reset(struct gdb_rings *rings);

/* gdb_rings_overwrite - may what is new take the place of what is oldest? Context: any.
 * gdb_rings_bytes - of what can be read. Context: as gdb_rings_begin().
 */
void gdb_rings_overwrite(struct gdb_rings *rings, bool overwrite);
uint64_t gdb_rings_bytes(struct gdb_rings *rings);

/* gdb_rings_write - ring_write() to the ring of the executing CPU.
 * gdb_rings_commit - ring_commit() of it.
 * Context: any, preemption off.
 */
static inline void *gdb_rings_write(struct gdb_rings *rings, size_t len)
{
    return ring_write(rings->ring[cpu_id()], len);
}

static inline void gdb_rings_commit(struct gdb_rings *rings)
{
    ring_commit(rings->ring[cpu_id()]);
}
