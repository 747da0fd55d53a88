/* buffer.c - owns the rings of the CPUs, writes records into them, and keeps the names of
 * threads.
 */
#include "probes/trace/buffer/buffer.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"
#include "kernel/sync/quiesce.h"
#include "kernel/sync/wait_check.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"

#include <string.h>

static struct mutex trace_mutex = MUTEX_INIT(trace_mutex);

void trace_lock(void)
{
    mutex_lock(&trace_mutex);
}

void trace_unlock(void)
{
    mutex_unlock(&trace_mutex);
}

/* ---- the rings ---- */

/* Locks:  T the trace lock   a any, atomically */
static struct buffer_cpu {
    struct ring *ring;     /* [T to change] */
    struct ring *old;      /* [T] the ring before @ring, with events to read; or NULL */
    struct ring *spare;    /* [a] the second set: takes the ring's place at a snapshot */
    struct ring *snapshot; /* [T] the snapshot, or NULL */
    uint64_t kb;           /* [T] the size that @ring was made with */
    uint64_t wanted;       /* [T] the size that it gets when an event is enabled */
    bool is_masked;        /* [a] events on this CPU are not recorded */
} cpus[MAX_CPUS];

uint8_t buffer_stops;
static bool may_overwrite = true;        /* [T] */
static uint64_t (*now)(void) = clock_ns; /* [T to change] */
static bool snapshot_was_read;           /* [T] the present snapshot has been read */

struct ring_page *buffer_page_new(void)
{
    uint64_t frame = frame_alloc();

    return frame == FRAME_NONE ? NULL : phys_to_virt(frame);
}

void buffer_page_free(struct ring_page *page)
{
    frame_free(virt_to_phys(page));
}

static const struct ring_ops ops = { .clock = clock_ns,
                                     .page_new = buffer_page_new,
                                     .page_free = buffer_page_free,
                                     .alloc = kzalloc,
                                     .free = kfree };

static size_t buffer_pages(uint64_t kb)
{
    size_t pages = (size_t)((kb * 1024 + RING_DATA_LEN - 1) / RING_DATA_LEN);

    return pages < RING_PAGES_MIN ? RING_PAGES_MIN : pages;
}

static struct ring *ring_of_size(uint64_t kb)
{
    struct ring *ring = ring_new(buffer_pages(kb), may_overwrite, &ops);

    if (ring)
        ring->clock = now;
    return ring;
}

#define SMALL_KB (RING_PAGES_MIN * RING_DATA_LEN / 1024)

INIT int buffer_init(void)
{
    for (unsigned i = 0; i < cpu_count(); i++) {
        cpus[i].ring = ring_of_size(SMALL_KB);
        cpus[i].kb = SMALL_KB;
        cpus[i].wanted = BUFFER_KB;
        if (!cpus[i].ring)
            return -ENOMEM;
    }
    return 0;
}

static void forget_old(unsigned cpu)
{
    if (cpus[cpu].old)
        ring_free(cpus[cpu].old);
    cpus[cpu].old = NULL;
}

/* lose_old - free the old ring, and count its unread events as lost before the events of
 * @next. Events that were dropped after its last event are left out: keep_old() has
 * counted them in the ring that followed it.
 */
static void lose_old(unsigned cpu, struct ring *next)
{
    const struct ring *old = cpus[cpu].old;

    if (old)
        ring_lost_before(next, ring_unread(old) - ring_lost_last(old));
    forget_old(cpu);
}

/* keep_old - keep the replaced @ring for readers, if it has events. Only one such ring is
 * kept for a CPU, so the old ring before it is lost. Events that were dropped after the
 * last event of @ring are counted as lost before the events of the present ring.
 */
static void keep_old(unsigned cpu, struct ring *ring)
{
    struct ring_stats stats;

    ring_stats_get(ring, &stats);
    if (!stats.entries) {
        ring_lost_before(cpus[cpu].ring, ring_unread(ring));
        ring_free(ring);
        return;
    }
    lose_old(cpu, ring);
    ring_lost_before(cpus[cpu].ring, ring_lost_last(ring));
    cpus[cpu].old = ring;
}

/* buffer_lose - free @ring, and count its unread events as lost. */
static void buffer_lose(unsigned cpu, struct ring *ring)
{
    lose_old(cpu, cpus[cpu].ring);
    ring_lost_before(cpus[cpu].ring, ring_unread(ring));
    ring_free(ring);
}

/* replace - exchange the rings of CPUs [@first, @last) for those in @new. A writer may
 * still use the old ring, so wait until every thread has been outside of hits.
 * @keep: the events of an old ring can still be read, unless the new ring is smaller;
 *        then they are counted as lost. False: the old rings are freed with their events.
 */
static void replace(unsigned first, unsigned last, struct ring **new, bool keep)
{
    for (unsigned i = first; i < last; i++)
        new[i] = __atomic_exchange_n(&cpus[i].ring, new[i], __ATOMIC_ACQ_REL);
    quiesce();
    for (unsigned i = first; i < last; i++) {
        if (keep && new[i]->count <= cpus[i].ring->count) {
            keep_old(i, new[i]);
        } else if (keep) {
            buffer_lose(i, new[i]);
        } else {
            ring_free(new[i]);
            forget_old(i);
        }
    }
}

/* renew_rings - replace the rings of CPUs [@first, @last) by empty ones. @resize: with
 * the wanted size, and old events can still be read; else with the same size, and old
 * events are lost.
 */
static COLD int renew_rings(unsigned first, unsigned last, bool resize)
{
    struct ring *new[MAX_CPUS];

    for (unsigned i = first; i < last; i++) {
        new[i] = ring_of_size(resize ? cpus[i].wanted : cpus[i].kb);
        if (new[i])
            continue;
        while (i-- > first)
            ring_free(new[i]);
        return -ENOMEM;
    }
    for (unsigned i = first; resize && i < last; i++)
        cpus[i].kb = cpus[i].wanted;
    replace(first, last, new, resize);
    return 0;
}

int buffer_expand(void)
{
    for (unsigned i = 0; i < cpu_count(); i++)
        if (cpus[i].kb != cpus[i].wanted)
            return renew_rings(0, cpu_count(), true);
    return 0;
}

COLD int buffer_set_size(int cpu, uint64_t kb)
{
    unsigned first = cpu < 0 ? 0 : (unsigned)cpu,
             last = cpu < 0 ? cpu_count() : first + 1;
    uint64_t before[MAX_CPUS];
    int err = wait_check(__func__);

    if (err)
        return err;
    if (!kb || kb > (uint64_t)RING_PAGES_MAX * RING_DATA_LEN / 1024)
        return -EINVAL;
    for (unsigned i = first; i < last; i++) {
        before[i] = cpus[i].wanted;
        cpus[i].wanted = kb;
    }
    err = renew_rings(first, last, true);
    for (unsigned i = first; err && i < last; i++)
        cpus[i].wanted = before[i];
    return err;
}

uint64_t buffer_size(unsigned cpu)
{
    return buffer_pages(cpus[cpu].kb) * RING_DATA_LEN / 1024;
}

uint64_t buffer_wanted(unsigned cpu)
{
    return cpus[cpu].wanted == cpus[cpu].kb ? buffer_size(cpu) : cpus[cpu].wanted;
}

int buffer_reset(int cpu)
{
    int err = wait_check(__func__);
    struct ring_page *spare = err ? NULL : buffer_page_new();

    if (!err && !spare)
        err = -ENOMEM;
    for (unsigned i = 0; spare && i < cpu_count(); i++)
        if (cpu < 0 || (unsigned)cpu == i) {
            forget_old(i);
            spare = ring_reset(cpus[i].ring, spare);
        }
    if (spare)
        buffer_page_free(spare);
    return err;
}

void buffer_set_overwrite(bool overwrite)
{
    may_overwrite = overwrite;
    for (unsigned i = 0; i < cpu_count(); i++)
        WRITE_ONCE(cpus[i].ring->overwrite, overwrite);
}

int buffer_set_clock(uint64_t (*clock)(void))
{
    uint64_t (*before)(void) = now;
    int err;

    now = clock;
    err = renew_rings(0, cpu_count(), false);
    if (err)
        now = before;
    return err;
}

uint64_t buffer_now(void)
{
    return now();
}

void buffer_stop(uint8_t why, bool stops)
{
    if (stops)
        __atomic_or_fetch(&buffer_stops, why, __ATOMIC_RELAXED);
    else
        __atomic_and_fetch(&buffer_stops, (uint8_t)~why, __ATOMIC_RELAXED);
}

static bool is_masked; /* some CPU is masked; a single word, because each hit reads it */

bool buffer_takes(void)
{
    return buffer_is_on() &&
           (likely(!READ_ONCE(is_masked)) || buffer_takes_cpu(cpu_id()));
}

static void mask_again(void)
{
    bool masked = false;

    for (unsigned i = 0; i < cpu_count(); i++)
        masked |= !buffer_takes_cpu(i);
    WRITE_ONCE(is_masked, masked);
}

void buffer_take_cpu(unsigned cpu, bool take)
{
    WRITE_ONCE(cpus[cpu].is_masked, !take);
    mask_again();
}

bool buffer_takes_cpu(unsigned cpu)
{
    return !READ_ONCE(cpus[cpu].is_masked);
}

/* ---- a second set of rings ---- */

static void free_all(struct ring **rings, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (rings[i])
            ring_free(rings[i]);
}

/* keep_snapshot - make the exchanged ring the snapshot of @cpu. No writer uses it any
 * more. The snapshot before it and the old ring are freed, and their unread events count
 * as lost before the events of the new snapshot.
 */
static void keep_snapshot(unsigned cpu)
{
    struct ring *before = cpus[cpu].snapshot;

    cpus[cpu].snapshot = cpus[cpu].spare;
    cpus[cpu].spare = NULL;
    if (before && !snapshot_was_read)
        ring_lost_before(cpus[cpu].snapshot, ring_unread(before));
    if (before)
        ring_free(before);
    lose_old(cpu, cpus[cpu].snapshot);
}

int buffer_spare_renew(bool was_taken)
{
    struct ring *new[MAX_CPUS] = { NULL };

    if (was_taken) {
        quiesce();
        for (unsigned i = 0; i < cpu_count(); i++)
            keep_snapshot(i);
        snapshot_was_read = false;
    }
    for (unsigned i = 0; i < cpu_count(); i++) {
        new[i] = ring_of_size(cpus[i].wanted);
        if (!new[i]) {
            free_all(new, i);
            return -ENOMEM;
        }
    }
    for (unsigned i = 0; i < cpu_count(); i++) {
        if (cpus[i].spare)
            ring_free(cpus[i].spare);
        cpus[i].spare = new[i];
    }
    return 0;
}

void buffer_spare_exchange(void)
{
    for (unsigned i = 0; i < cpu_count(); i++)
        cpus[i].spare =
            __atomic_exchange_n(&cpus[i].ring, cpus[i].spare, __ATOMIC_ACQ_REL);
}

void buffer_snapshot_free(void)
{
    for (unsigned i = 0; i < cpu_count(); i++) {
        if (cpus[i].snapshot)
            ring_free(cpus[i].snapshot);
        cpus[i].snapshot = NULL;
    }
}

bool buffer_has_snapshot(void)
{
    return cpus[0].snapshot != NULL;
}

bool buffer_snapshot_is_empty(void)
{
    struct ring_stats stats;

    for (unsigned i = 0; i < cpu_count(); i++) {
        struct ring *r = cpus[i].snapshot;

        ring_stats_get(r, &stats);
        if (stats.entries || ring_lost_behind(r, &r->read))
            return false;
    }
    return true;
}

/* ---- names of threads ---- */

/* A table of names, by the number of the thread. A thread may replace the name of another
 * thread. Writers do not wait: if two want the same place, one of them gives up.
 */
#define COMMS 1024
#define COMM_BUSY (-1)

static struct comm {
    int pid; /* [a] 0: none */
    char name[THREAD_NAME_LEN];
} comms[COMMS];

static NOINLINE void comm_put(struct comm *c, const struct thread *t)
{
    int pid = READ_ONCE(c->pid);

    if (pid == COMM_BUSY ||
        !__atomic_compare_exchange_n(&c->pid, &pid, COMM_BUSY, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    memcpy(c->name, t->name, sizeof(c->name));
    __atomic_store_n(&c->pid, t->tid, __ATOMIC_RELEASE);
}

static ALWAYS_INLINE void comm_save(int tid)
{
    struct comm *c = &comms[(unsigned)tid % COMMS];

    if (unlikely(READ_ONCE(c->pid) != tid))
        comm_put(c, thread_current());
}

bool comm_find(int pid, char *out)
{
    const struct comm *c = &comms[(unsigned)pid % COMMS];

    if (pid <= 0 || __atomic_load_n(&c->pid, __ATOMIC_ACQUIRE) != pid)
        return false;
    memcpy(out, c->name, sizeof(c->name));
    return READ_ONCE(c->pid) == pid;
}

void comm_each(void (*fn)(int pid, const char *name, void *arg), void *arg)
{
    for (unsigned i = 0; i < COMMS; i++) {
        char name[THREAD_NAME_LEN];
        int pid = READ_ONCE(comms[i].pid);

        if (pid > 0 && comm_find(pid, name))
            fn(pid, name, arg);
    }
}

/* ---- for tools ---- */

/* The places and the layout of the rings, for probes/trace/host/dead.py, which reads the
 * memory of a kernel that has crashed. The tool finds this table by its symbol. Its list
 * of names has the order of this table.
 */
extern const uint64_t trace_layout[];
USED const uint64_t trace_layout[] = {
    (uintptr_t)cpus,
    MAX_CPUS,
    sizeof(struct buffer_cpu),
    offsetof(struct buffer_cpu, ring),
    offsetof(struct buffer_cpu, old),
    offsetof(struct buffer_cpu, spare),
    offsetof(struct buffer_cpu, snapshot),
    offsetof(struct ring, published),
    offsetof(struct ring, slots),
    offsetof(struct ring, count),
    offsetof(struct ring, read),
    offsetof(struct ring, dropped),
    offsetof(struct ring, overrun),
    offsetof(struct ring, dropped_before),
    offsetof(struct ring, overrun_before),
    offsetof(struct ring, overwritten),
    sizeof(struct ring),
    sizeof(struct ring_slot),
    offsetof(struct ring_slot, end),
    offsetof(struct ring_slot, first),
    offsetof(struct ring_slot, lost),
    offsetof(struct ring_cursor, off),
    offsetof(struct ring_cursor, events),
    offsetof(struct ring_cursor, lost),
    RING_LAP_SHIFT,
    (uintptr_t)comms,
    COMMS,
    sizeof(struct comm),
    offsetof(struct comm, name),
    DIRECT_MAP_BASE,
};

/* ---- records ---- */

static ALWAYS_INLINE uint8_t flags_of(const struct percpu *cpu, unsigned long flags)
{
    uint8_t found = 0;

    if (!(flags & FLAGS_IF))
        found |= RECORD_IRQS_OFF;
    if (unlikely(cpu->need_resched))
        found |= RECORD_NEED_RESCHED;
    if (likely(!(cpu->irq_depth | cpu->nmi_depth)))
        return found;
    if (cpu->irq_depth)
        found |= RECORD_HARDIRQ;
    if (cpu->nmi_depth)
        found |= RECORD_NMI;
    return found;
}

static ALWAYS_INLINE void head_fill(struct record_head *head, const struct event *event,
                                    unsigned long flags)
{
    const struct percpu *cpu = this_cpu();

    head->type = event->id;
    head->flags = flags_of(cpu, flags);
    head->preempt_count = (uint8_t)preempt_count();
    head->pid = cpu->tid;
    comm_save(cpu->tid);
}

void record_head_fill(struct record_head *head, const struct event *event,
                      unsigned long flags)
{
    head_fill(head, event, flags);
}

/* clock_of - read the clock of @r; nearly always it is this one. */
static ALWAYS_INLINE uint64_t clock_of(const struct ring *r)
{
    return likely(r->clock == clock_ns) ? clock_ns_here() : r->clock();
}

void *record_begin(const struct event *event, size_t len, unsigned long flags,
                   struct ring **ring)
{
    struct record_head *head;

    *ring = NULL;
    if (!buffer_takes())
        return NULL;
    *ring = READ_ONCE(cpus[cpu_id()].ring);
    head = ring_write(*ring, len);
    if (head)
        record_head_fill(head, event, flags);
    return head;
}

HOT struct kprobe_room record_reserve(const struct event *event, size_t len,
                                      unsigned long flags, uintptr_t ip, uint64_t *lost)
{
    struct ring *ring = READ_ONCE(cpus[cpu_id()].ring);
    struct record_probe *record = ring_write_by(ring, len, clock_of);

    if (unlikely(!record)) {
        own_work_end();
        __atomic_add_fetch(lost, 1, __ATOMIC_RELAXED);
        return (struct kprobe_room){ 0 };
    }
    head_fill(&record->head, event, flags);
    record->ip = ip;
    return (struct kprobe_room){ record, ring };
}

bool record_copy(const void *record, size_t len)
{
    struct ring *ring = READ_ONCE(cpus[cpu_id()].ring);
    void *to = ring_write(ring, len);

    if (!to)
        return false;
    memcpy(to, record, len);
    ring_commit(ring);
    return true;
}

void record_end(struct ring *ring)
{
    ring_commit(ring);
}

/* ---- readers ---- */

void buffer_stats(unsigned cpu, enum buffer_set set, struct ring_stats *out)
{
    struct ring_stats old;

    ring_stats_get(set == BUFFER_SNAPSHOT ? cpus[cpu].snapshot : cpus[cpu].ring, out);
    if (set == BUFFER_SNAPSHOT || !cpus[cpu].old)
        return;
    ring_stats_get(cpus[cpu].old, &old);
    out->entries += old.entries;
    out->overwritten += old.overwritten;
    out->overrun += old.overrun;
    out->dropped += old.dropped;
    out->read += old.read;
    out->bytes += old.bytes;
    if (old.oldest)
        out->oldest = old.oldest;
}

/* ring_at - return ring @i of @set. Each CPU has two numbers: 2 * cpu is its old ring,
 * and 2 * cpu + 1 its present ring, or its snapshot.
 */
static struct ring *ring_at(unsigned i, enum buffer_set set)
{
    if (set == BUFFER_SNAPSHOT)
        return i % 2 ? cpus[i / 2].snapshot : NULL;
    return i % 2 ? cpus[i / 2].ring : cpus[i / 2].old;
}

int buffer_merge(struct merge *m, int cpu, enum buffer_set set, enum merge_how how)
{
    unsigned count = 2 * cpu_count();
    struct merge_ring *rings = kzalloc(count * sizeof(*rings));

    if (!rings)
        return -ENOMEM;
    if (set == BUFFER_SNAPSHOT)
        snapshot_was_read = true;
    m->rings = rings;
    m->count = count;
    for (unsigned i = 0; i < count; i++) {
        struct ring *ring = ring_at(i, set);

        if (!ring || (cpu >= 0 && (unsigned)cpu != i / 2))
            continue;
        rings[i].page = buffer_page_new();
        if (!rings[i].page) {
            buffer_merge_end(m);
            return -ENOMEM;
        }
        rings[i].ring = ring;
    }
    merge_init(m, rings, count, how);
    return 0;
}

bool buffer_merge_next(struct merge *m, struct merged *out)
{
    bool more = merge_next(m, out);

    if (more)
        out->ring /= 2;
    return more;
}

uint64_t buffer_lost_behind(const struct merge *m, unsigned cpu)
{
    return merge_lost_behind(m, 2 * cpu + 1); /* with the losses of the old ring */
}

void buffer_merge_end(struct merge *m)
{
    for (unsigned i = 0; i < m->count; i++)
        if (m->rings[i].page)
            buffer_page_free(m->rings[i].page);
    kfree(m->rings);
}

struct ring_page *buffer_read_page(unsigned cpu, struct ring_page *spare, unsigned flags,
                                   uint64_t *missed)
{
    struct ring *ring = cpus[cpu].old;
    struct ring_page *page = ring ? ring_read(ring, &ring->read, spare, 0) : NULL;

    if (!page) {
        ring = cpus[cpu].ring;
        page = ring_read(ring, &ring->read, spare, flags);
    }
    if (page && missed)
        *missed = ring->read.missed;
    return page;
}
