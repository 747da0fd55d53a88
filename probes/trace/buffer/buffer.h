/* buffer.h - owns the buffer of the tracer, which is a ring for each CPU, and writes
 * records into it.
 *
 * A thread that reads the buffer, changes it, or adds or removes events holds the trace
 * lock, a mutex. Writers take no lock.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "probes/program/program.h"
#include "probes/trace/language/event.h"
#include "probes/trace/ring/page_merge.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUFFER_KB 1408 /* for each CPU, from the first enabled event on */

/* buffer_init - make small rings for all CPUs. Context: thread, all CPUs online.
 * Return: 0; -ENOMEM.
 */
int buffer_init(void);

void trace_lock(void);
void trace_unlock(void);

/* record_begin - begin a record of @event, and fill in its head.
 * @len:   bytes, event_head() included
 * @flags: the flags register of the probed code
 * @ring:  set to the ring of the record, for record_end(), because the CPU may get
 *         another ring meanwhile; set to NULL if tracing is off or this CPU is not
 *         recorded
 *
 * Context: any, preemption off.  Locks: none.
 * Return:  the first byte of the record, valid until record_end(); NULL: nothing is
 *          recorded now, or the record was dropped. Then record_end() must not be called.
 */
void *record_begin(const struct event *event, size_t len, unsigned long flags,
                   struct ring **ring);
void record_end(struct ring *ring);
/* record_reserve - begin the record of a hit at @ip, after trace_takes_hit() and
 * own_work_begin(). It ends by ring_commit() of the token and own_work_end(); without a
 * record this work has ended.
 * @lost: counts the records that were dropped
 *
 * Context: as record_begin().
 * Return:  a struct record_probe, and its ring; or none.
 */
struct kprobe_room record_reserve(const struct event *event, size_t len,
                                  unsigned long flags, uintptr_t ip, uint64_t *lost);
/* record_head_fill - fill in the head of a record. Context: as record_begin(). */
void record_head_fill(struct record_head *head, const struct event *event,
                      unsigned long flags);
/* record_copy - record @len bytes that are complete, also while tracing is off.
 * Context: as record_begin().  Return: false: the record was dropped.
 */
bool record_copy(const void *record, size_t len);

/* Why nothing is recorded: tracing was switched off; `trace` is being read. */
enum { BUFFER_OFF = 1, BUFFER_PAUSED = 2 };
extern uint8_t buffer_stops; /* [a] these bits */

/* buffer_stop - record nothing because of @why, or let that go on no longer.
 * buffer_switch - switch tracing on or off, as the file tracing_on does.
 * buffer_is_off - tell whether it was switched off.
 * buffer_is_on - tell whether hits are recorded: tracing is on, and does not pause.
 * Context: any.
 */
void buffer_stop(uint8_t why, bool stops);
static inline void buffer_switch(bool on)
{
    buffer_stop(BUFFER_OFF, !on);
}

static inline bool buffer_is_off(void)
{
    return READ_ONCE(buffer_stops) & BUFFER_OFF;
}

static ALWAYS_INLINE bool buffer_is_on(void)
{
    return !READ_ONCE(buffer_stops);
}

/* buffer_takes - tell whether tracing is on and records of this CPU are wanted.
 * Context: as record_begin().
 * buffer_take_cpu - set whether records of @cpu are wanted, as tracing_cpumask does.
 * buffer_takes_cpu - tell whether they are wanted. Context: any.
 */
bool buffer_takes(void);
void buffer_take_cpu(unsigned cpu, bool take);
bool buffer_takes_cpu(unsigned cpu);

/* buffer_now - return the time in the clock of the records. Context: any. */
uint64_t buffer_now(void);

/* Context of all: thread.  Locks of all: the trace lock held. */

/* buffer_expand - give the rings the size that was asked for, or BUFFER_KB. To be called
 * before an event is enabled.
 * Return: 0; -ENOMEM, and the rings are as before.
 */
int buffer_expand(void);

/* buffer_set_size - set the size of the ring of @cpu. Recorded events stay, unless the
 * ring becomes smaller: then they are counted as lost.
 * @cpu: -1: all CPUs
 * @kb:  KiB of data
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int buffer_set_size(int cpu, uint64_t kb);
/* buffer_size - return the present size of @cpu's ring, KiB.
 * buffer_wanted - return the size that buffer_expand() would give it, KiB.
 */
uint64_t buffer_size(unsigned cpu);
uint64_t buffer_wanted(unsigned cpu);

/* buffer_reset - forget all events that were recorded on @cpu; -1: on all CPUs.
 * Context: thread.  Locks: the trace lock held.  Return: 0; -EDEADLK; -ENOMEM.
 */
int buffer_reset(int cpu);

/* buffer_set_overwrite - in a full ring, overwrite the oldest events or drop new ones. */
void buffer_set_overwrite(bool overwrite);
/* buffer_set_clock - set the clock of all rings. The rings are replaced by empty ones,
 * because the times in a ring must not run backwards.  Return: 0; -ENOMEM.
 */
int buffer_set_clock(uint64_t (*clock)(void));

/* The rings to read. */
enum buffer_set {
    BUFFER_LIVE,     /* the rings that are written */
    BUFFER_SNAPSHOT, /* the snapshot; only if buffer_has_snapshot() */
};

/* buffer_stats - fill in @out for the ring of @cpu. */
void buffer_stats(unsigned cpu, enum buffer_set set, struct ring_stats *out);

/* buffer_merge - begin to read the records of @cpu by time; -1: of all CPUs.
 * Return: 0: the caller has to call buffer_merge_end(); -ENOMEM.
 */
int buffer_merge(struct merge *m, int cpu, enum buffer_set set, enum merge_how how);
/* buffer_merge_next - do as merge_next(), but set out->ring to the number of the CPU. */
bool buffer_merge_next(struct merge *m, struct merged *out);
void buffer_merge_end(struct merge *m);
/* buffer_lost_behind - return how many events were lost after the last record of @cpu. */
uint64_t buffer_lost_behind(const struct merge *m, unsigned cpu);

/* buffer_read_page - take the next page of @cpu for @spare, as ring_read() does.
 * @missed: set to the number of events that were lost right before the page; may be NULL
 * Context: thread.  Locks: the trace lock held.
 * buffer_page_new, buffer_page_free - make and free pages for it. Context: thread.
 */
struct ring_page *buffer_read_page(unsigned cpu, struct ring_page *spare, unsigned flags,
                                   uint64_t *missed);
struct ring_page *buffer_page_new(void);
void buffer_page_free(struct ring_page *page);

/* buffer_spare_renew - make an empty second set of rings.
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
/* buffer_has_snapshot - tell whether there is a snapshot.
 * buffer_snapshot_free - free the snapshot. The second set of rings stays.
 */
bool buffer_has_snapshot(void);
void buffer_snapshot_free(void);
/* buffer_snapshot_is_empty - tell whether the snapshot has no events and no lost events.
 * There must be a snapshot. Context: thread.  Locks: the trace lock held.
 */
bool buffer_snapshot_is_empty(void);

/* comm_find - find the name that thread @pid had when a record of it was written.
 * @out: 16 bytes.  Context: any.  Return: false: no name is known.
 */
bool comm_find(int pid, char *out);
/* comm_each - call @fn for each thread whose name is known. Context: any. */
void comm_each(void (*fn)(int pid, const char *name, void *arg), void *arg);
