/* buffer.h - the buffer of the tracer: a ring for each CPU, and the way into it.
 *
 * Locks: the trace lock, a mutex, is held by each reader and by everything that adds or
 * removes events or changes the buffer. Writers take no lock.
 */
#pragma once

#include "probes/trace/event.h"
#include "probes/trace/page_merge.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUFFER_KB 1408 /* for each CPU, once something is to be recorded */

/* buffer_init - small rings for all CPUs. Context: boot thread, all CPUs online.
 * Return: 0; -ENOMEM.
 */
int buffer_init(void);

void trace_lock(void);
void trace_unlock(void);

/* record_begin - begin a record of @event, its head filled in.
 * @len:   bytes, event_head() included
 * @flags: of the CPU, as the probed code has them
 * @ring:  where it goes, for record_end(); another one may take its place meanwhile. NULL:
 *         tracing is off
 *
 * Context: any, preemption off.  Locks: none.
 * Return:  its first byte, until record_end(); NULL: tracing is off, or it was dropped, and
 *          there is nothing to end.
 */
void *record_begin(const struct event *event, size_t len, unsigned long flags,
                   struct ring **ring);
void record_end(struct ring *ring);
/* record_head_fill - the head of a record of @event. Context: as record_begin(). */
void record_head_fill(struct record_head *head, const struct event *event,
                      unsigned long flags);
/* record_copy - record @len bytes that are complete, also when tracing has just been
 * switched off.  Context: as record_begin().  Return: false: it was dropped.
 */
bool record_copy(const void *record, size_t len);

/* buffer_switch - tracing_on. Context: any. buffer_is_on - Context: any. */
void buffer_switch(bool on);
bool buffer_is_on(void);

/* buffer_takes - is tracing on, and are records of this CPU wanted?
 * Context: as record_begin().
 * buffer_take_cpu - tracing_cpumask; buffer_takes_cpu - what it says. Context: any.
 */
bool buffer_takes(void);
void buffer_take_cpu(unsigned cpu, bool take);
bool buffer_takes_cpu(unsigned cpu);

/* buffer_now - the time as records have it. Context: any. */
uint64_t buffer_now(void);

/* ---- all below: Context: thread. Locks: the trace lock held. ---- */

/* buffer_expand - rings of the size that was asked for, BUFFER_KB unless told. To be called
 * before an event is enabled.
 * Return: 0; -ENOMEM, and the rings are as before.
 */
int buffer_expand(void);

/* buffer_set_size - @cpu: which; -1: all.  @kb: of data
 * Return: 0; -EINVAL; -ENOMEM. What was recorded stays where the buffer becomes larger, and
 *         is gone where it becomes smaller.
 */
int buffer_set_size(int cpu, uint64_t kb);
/* buffer_size - of @cpu, KiB, now; buffer_wanted - what buffer_expand() makes of it. */
uint64_t buffer_size(unsigned cpu);
uint64_t buffer_wanted(unsigned cpu);

/* buffer_reset - forget what was recorded on @cpu; -1: on all. */
void buffer_reset(int cpu);

/* buffer_set_overwrite - may what is new take the place of what is oldest? */
void buffer_set_overwrite(bool overwrite);
/* buffer_set_clock - of all rings, which are new ones then: in a ring no time may be before
 * another.  Return: 0; -ENOMEM.
 */
int buffer_set_clock(uint64_t (*clock)(void));

/* Where records are. */
enum buffer_set {
    BUFFER_LIVE,
    BUFFER_SNAPSHOT, /* only if buffer_has_snapshot() */
};

/* buffer_stats - of @cpu. */
void buffer_stats(unsigned cpu, enum buffer_set set, struct ring_stats *out);

/* buffer_merge - the records of @cpu, or of all with -1, by time.
 * Return: 0, and buffer_merge_end() is due; -ENOMEM.
 */
int buffer_merge(struct merge *m, int cpu, enum buffer_set set, enum merge_how how);
/* buffer_merge_next - as merge_next(); the number of the ring is that of its CPU. */
bool buffer_merge_next(struct merge *m, struct merged *out);
void buffer_merge_end(struct merge *m);
/* buffer_lost_behind - after the last record: events lost on @cpu behind its own last one. */
uint64_t buffer_lost_behind(const struct merge *m, unsigned cpu);

/* buffer_read_page - take the next page of @cpu, @spare for it, as ring_read() does.
 * @missed: events lost right before it; NULL
 * buffer_page_new, buffer_page_free - pages for it.
 */
struct ring_page *buffer_read_page(unsigned cpu, struct ring_page *spare, unsigned flags,
                                   uint64_t *missed);
struct ring_page *buffer_page_new(void);
void buffer_page_free(struct ring_page *page);

/* buffer_spare_renew - make an empty second set of rings, beside those that are written.
 * @was_taken: the present second set holds the snapshot that buffer_spare_exchange() has
 *             taken, so keep it
 * Return: 0; -ENOMEM, and no second set may be used.
 */
int buffer_spare_renew(bool was_taken);
/* buffer_spare_exchange - exchange the two sets of rings. The caller makes sure that
 * there is a second set, and that no other CPU exchanges them meanwhile.
 * Context: any.  Locks: none.
 */
void buffer_spare_exchange(void);
/* buffer_has_snapshot - is there a snapshot?
 * buffer_snapshot_free - the snapshot is not needed any more: free it. The second set
 * stays.
 */
bool buffer_has_snapshot(void);
void buffer_snapshot_free(void);
/* buffer_snapshot_is_empty - it has no events, and tells of none that were lost.
 * Context: thread.  Locks: the trace lock held, and there is a snapshot.
 */
bool buffer_snapshot_is_empty(void);

/* comm_find - the name of thread @pid, as it was recorded last.
 * @out: 16 bytes.  Return: false: none is known.
 */
bool comm_find(int pid, char *out);
/* comm_each - call @fn for each thread whose name is known. */
void comm_each(void (*fn)(int pid, const char *name, void *arg), void *arg);
