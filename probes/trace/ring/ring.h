/* ring.h - keeps the records of events in a ring of pages for each CPU, in Linux's
 * layout.
 *
 * A writer runs on the CPU of the ring and never waits. A writer may be interrupted
 * anywhere by an interrupt, an NMI or a hit. The interrupting code may itself write a
 * record, and ends before the interrupted writer continues. A reader may run on any CPU
 * and takes whole pages. No writer waits for a reader.
 *
 * All that the writers share is one value of 16 bytes, `tail`: the page, the offset of
 * the next event, the number of events on the page, and the time of the last event. A
 * writer changes it by one `cmpxchg16b`. That instruction needs no lock prefix: only this
 * CPU writes the tail, and an interrupt comes either before the instruction or after it.
 *
 * The steps of a writer, in their order:
 *   1. The writer increments `depth`. The writer that finds 0 there is the outermost one.
 *   2. The writer reads the clock, and moves the tail behind the new event. If another
 *      writer interrupts between reading the tail and moving it, the move fails. Then the
 *      new event gets the time of the last event, if that is later: times never run
 *      backwards. The clock is not read again, because the clock may be a function that
 *      is traced. Then each reading of the clock is an event that moves the tail, and the
 *      move would always fail.
 *   3. If the page has no room, the writer closes the tail. A closed tail counts the
 *      events that are dropped. Then the writer claims the next slot: it may always claim
 *      a free page, but an unread page only in overwrite mode. Then the writer whose
 *      event is the first one on the new page moves the tail there. That writer records
 *      how long the page before is, and how many events were dropped in between.
 *   4. The caller fills in the record.
 *   5. The outermost writer publishes. All events up to the tail are complete then,
 *      because each writer that interrupted it has ended. The outermost writer closes
 *      pages in their order. It writes the commit of a page before its state, and its
 *      state before it makes the next page the `published` one.
 *   6. The writer decrements `depth`. If the tail has moved since it was read in step 5,
 *      an interrupting writer has left its event unpublished: the writer repeats step 5.
 *
 * A reader takes a whole page and leaves another page in its place. Why this is safe:
 *   1. A writer claims an unread page, and the reader takes it, by a compare-and-exchange
 *      of the slot's word. So exactly one of them gets the page, and the exchange of the
 *      other one fails.
 *   2. The word holds the lap of the slot. If the page was claimed, filled and closed
 *      between the reader's look at the word and the exchange, the word has changed and
 *      the exchange fails.
 *   3. One exchange takes a page out and puts the reader's spare page in. So a writer
 *      never finds a slot without a page, and never waits for a reader that was
 *      preempted.
 *   4. The page that is being written cannot be taken, because the writer uses its
 *      address. The reader copies it as far as it is complete. Afterwards the reader
 *      compares the slot's word: if the writers have gone once around the ring meanwhile,
 *      the copy is not used.
 *   5. The reader needs to know how many events a page has, and how many came before. It
 *      reads these numbers before the exchange, and only a writer that has claimed the
 *      slot changes them.
 *
 * Losses are exact, and their places are known: each slot holds how many events were
 * written and how many were dropped before its page. docs/model/ring.pml checks these
 * steps (docs/model.md).
 *
 * Locks:  c owning CPU only, by the steps above   a any CPU, atomically   I immutable
 *         R the reader: the caller admits one at a time
 */
#pragma once

#include "kernel/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_PAGE_LEN 4096
#define RING_DATA_LEN (RING_PAGE_LEN - 16)
#define RING_EVENT_MAX (RING_DATA_LEN - 8) /* bytes of one record */
#define RING_PAGES_MIN 2
#define RING_PAGES_MAX 65536

/* The layout is Linux's: a trace.dat consists of pages that a reader has taken. */
struct ring_page {
    uint64_t time;   /* the first event's delta counts from this time, ns */
    uint64_t commit; /* bytes of data; in a reader's page also RING_MISSED... */
    uint8_t data[RING_DATA_LEN];
};

_Static_assert(sizeof(struct ring_page) == RING_PAGE_LEN, "a page is a page");

#define RING_MISSED (UINT64_C(1) << 31) /* events were lost right before this page */
#define RING_MISSED_COUNT (UINT64_C(1) << 30) /* a u64 behind the data says how many */
#define RING_COMMIT_MASK (RING_MISSED_COUNT - 1)

/* An event's header: type_len in the low 5 bits; above, the time since the last event. */
#define RING_TYPE_DATA_MAX 28 /* 1..28: words of data; 0: next word = bytes of data + 4 */
#define RING_TYPE_PADDING 29
#define RING_TYPE_EXTEND 30 /* not an event; delta = high 27 bits + next word << 27 */
#define RING_TYPE_STAMP 31
#define RING_DELTA_BITS 27

/* The place of the next event. */
struct ring_tail {
    uint64_t where; /* fields: see RING_COUNT_SHIFT */
    uint64_t time;  /* of the last event; in a closed tail: events dropped since then */
} ALIGNED(16);

/* Fields of where: [0,10) offset in words, [10,19) events of the page, 19 closed, [20,36)
 * slot, [36,62) lap. Slot and lap together are a place: each page that is written gets a
 * higher place than the page before. The lap has 26 bits and then starts again at 0: a
 * ring of two pages has written 2^27 pages by then, which is half a terabyte.
 */
#define RING_COUNT_SHIFT 10
#define RING_CLOSED (UINT64_C(1) << 19)
#define RING_PLACE_SHIFT 20
#define RING_LAP_SHIFT 16 /* in a place */
#define RING_LAP_MASK ((UINT64_C(1) << 26) - 1)

enum ring_state {
    RING_FREE,   /* the page has no event that is left to read */
    RING_OPEN,   /* claimed for its lap; its events may be incomplete */
    RING_UNREAD, /* complete and closed */
};

struct ring_slot {
    uint64_t word;    /* [a] page << 16, lap << 2, ring_state */
    uint32_t end;     /* [c] bytes of data; valid once the next page has been opened */
    uint32_t count;   /* [c] events; valid like end */
    uint64_t dropped; /* [c] events that were dropped right before this page */
    uint64_t first; /* [c] events on all pages before; valid once the page is published */
    uint64_t lost;  /* [c] events dropped before this page; valid like first */
};

/* The position of a reader. */
struct ring_cursor {
    uint64_t seq;    /* number of the page: lap * slots + slot */
    uint32_t off;    /* bytes of the page that were read */
    uint64_t events; /* written events before this position, read or overwritten */
    uint64_t lost;   /* dropped events before this position */
    uint64_t missed; /* events lost right before the page that ring_read() returned */
};

struct ring_ops {
    uint64_t (*clock)(void); /* ns, not running backwards on a CPU; any context */
    struct ring_page *(*page_new)(void); /* aligned to RING_PAGE_LEN; NULL: no memory */
    void (*page_free)(struct ring_page *page);
    void *(*alloc)(size_t len); /* zeroed; NULL: no memory */
    void (*free)(void *p);
};

struct ring {
    struct ring_tail tail;   /* [c] */
    uint64_t depth;          /* [c] writers that have not ended */
    uint64_t published;      /* [a] place of the newest page that readers may look at */
    struct ring_page *page;  /* [c] the page at published */
    uint64_t (*clock)(void); /* [I] */
    struct ring_slot *slots; /* [I] */
    uint32_t count;          /* [I] slots */
    bool overwrite; /* [a] if full: overwrite the oldest page, else drop new events */
    const struct ring_ops *ops; /* [I] */
    uint64_t dropped; /* [c] events dropped because the ring was full; all in all */
    uint64_t overrun; /* [c] events dropped because an interrupted writer held the page */
    struct ring_cursor read; /* [R] */
    uint64_t read_events;    /* [R] events that ring_read() has returned */
    uint64_t overwritten;    /* [R] events that were overwritten before they were read */
    uint64_t dropped_before; /* [R] the value of dropped at the last ring_reset() */
    uint64_t overrun_before; /* [R] the value of overrun then */
};

/* ring_new - make an empty ring.
 * @count:     pages, RING_PAGES_MIN..RING_PAGES_MAX
 * @overwrite: in a full ring: true: overwrite the oldest page; false: drop new events
 * @ops:       must outlive the ring
 *
 * Return: the ring; NULL without memory, or if @count is out of range.
 */
struct ring *ring_new(size_t count, bool overwrite, const struct ring_ops *ops);

/* ring_free - free a ring that has no writer and no reader any more. */
void ring_free(struct ring *r);

/* ring_write_slow - do steps 2 and 3 if the event does not fit on the page, if much time
 * has passed since the last event, or if another writer has moved the tail. For
 * ring_write() only.
 * @seen: the tail before the caller read the time @now. If the tail was closed then, @now
 *        is later than all events before the tail. If the tail is now another closed
 *        tail, that is not certain, and this function reads the clock once more.
 */
void *ring_write_slow(struct ring *r, size_t len, uint64_t seen, uint64_t now);
/* ring_publish - do step 5 if the tail @where is on another page than the published one.
 * For ring_commit() only.
 */
void ring_publish(struct ring *r, uint64_t where);

static inline uint32_t ring_off(uint64_t where)
{
    return (uint32_t)(where & 0x3ff) * 4;
}

static inline uint32_t ring_count(uint64_t where)
{
    return (uint32_t)(where >> RING_COUNT_SHIFT & 0x1ff);
}

static inline uint64_t ring_place(uint64_t where)
{
    return where >> RING_PLACE_SHIFT;
}

static inline struct ring_slot *ring_slot_of(const struct ring *r, uint64_t place)
{
    return &r->slots[place & (RING_PAGES_MAX - 1)];
}

/* ring_slot_page - return the page in a slot's word. The word holds 48 bits of the
 * address; the shift copies the highest of them into the bits above.
 */
static inline struct ring_page *ring_slot_page(uint64_t word)
{
    return (struct ring_page *)(uintptr_t)((int64_t)word >> 16 & ~(int64_t)0xfff);
}

/* ring_size - return the bytes that a record of @len bytes takes, with its header. */
static inline uint32_t ring_size(size_t len)
{
    uint32_t words = (uint32_t)(len + 3) / 4;

    return (words + (words > RING_TYPE_DATA_MAX ? 2 : 1)) * 4;
}

/* `clc` is for QEMU, at least 7.2: at cmpxchg16b its TCG may take an operand of an earlier
 * instruction for the flags, with all its bits. The place of a new page has the bit of DF:
 * if the vCPU then left its loop, memcpy() went down, over the head of the page. Behind
 * `clc` the flags are a value of their own.
 */
#define RING_CMPXCHG16B "clc; cmpxchg16b "

/* ring_cmpxchg16b - if *@at is @old, make it @new. Only this CPU writes there.
 * Return: whether *@at was @old.
 */
static ALWAYS_INLINE bool ring_cmpxchg16b(struct ring_tail *at, struct ring_tail old,
                                          struct ring_tail new)
{
    bool same;

    __asm__ volatile(RING_CMPXCHG16B "%1"
                     : "=@ccz"(same), "+m"(*at), "+a"(old.where), "+d"(old.time)
                     : "b"(new.where), "c"(new.time)
                     : "memory");
    return same;
}

/* ring_event_start - write the header of an event of @len bytes at @at.
 * Return: the place of its record.
 */
static ALWAYS_INLINE void *ring_event_start(uint8_t *at, size_t len, uint32_t delta)
{
    uint32_t words = (uint32_t)(len + 3) / 4;
    uint32_t *header = (uint32_t *)at;

    if (unlikely(words > RING_TYPE_DATA_MAX || !words)) {
        header[0] = delta << 5;
        header[1] = words * 4 + 4;
        return header + 2;
    }
    header[0] = delta << 5 | words;
    return header + 1;
}

/* ring_page_at - return the page of the tail @where. Only a writer may call it: while it has
 * not ended, no other one publishes a page.
 */
static ALWAYS_INLINE struct ring_page *ring_page_at(const struct ring *r, uint64_t where)
{
    uint64_t place = ring_place(where);

    if (likely(place == r->published))
        return r->page;
    return ring_slot_page(
        __atomic_load_n(&ring_slot_of(r, place)->word, __ATOMIC_RELAXED));
}

/* ring_write - begin a record. The caller fills it in, stays on the CPU, and then calls
 * ring_commit().
 * ring_write_by - the same; the caller has code that reads the ring's clock.
 * @r:   the ring of the executing CPU
 * @len: bytes, 1..RING_EVENT_MAX
 *
 * Context: any, preemption off.  Locks: none. An interrupt may call it in the middle.
 * Return:  @len bytes, aligned to 4; NULL: the record was dropped and counted, and there
 *          is nothing to commit.
 */
static ALWAYS_INLINE void *ring_write_by(struct ring *r, size_t len,
                                         uint64_t (*clock)(const struct ring *r))
{
    uint32_t size = ring_size(len);
    struct ring_tail old, new;
    uint64_t delta;

    r->depth++;
    barrier();
    old.where = READ_ONCE(r->tail.where);
    old.time = READ_ONCE(r->tail.time);
    new.time = clock(r);
    delta = new.time - old.time;
    if (unlikely((old.where & RING_CLOSED) || delta >> RING_DELTA_BITS ||
                 ring_off(old.where) + size > RING_DATA_LEN))
        return ring_write_slow(r, len, old.where, new.time);
    new.where = old.where + size / 4 + (UINT64_C(1) << RING_COUNT_SHIFT);
    if (unlikely(!ring_cmpxchg16b(&r->tail, old, new)))
        return ring_write_slow(r, len, old.where, new.time);
    return ring_event_start(ring_page_at(r, old.where)->data + ring_off(old.where), len,
                            (uint32_t)delta);
}

static ALWAYS_INLINE uint64_t ring_clock(const struct ring *r)
{
    return r->clock();
}

static ALWAYS_INLINE void *ring_write(struct ring *r, size_t len)
{
    return ring_write_by(r, len, ring_clock);
}

/* ring_commit - end the record: steps 5 and 6. Context: as ring_write(). */
static ALWAYS_INLINE void ring_commit(struct ring *r)
{
    uint64_t depth = READ_ONCE(r->depth), where;

    barrier();
    if (unlikely(depth > 1)) {
        WRITE_ONCE(r->depth, depth - 1);
        return;
    }
    do {
        WRITE_ONCE(r->depth, 1);
        barrier();
        where = READ_ONCE(r->tail.where);
        if (likely(ring_place(where) == r->published))
            __atomic_store_n(&r->page->commit, ring_off(where), __ATOMIC_RELEASE);
        else
            ring_publish(r, where);
        barrier();
        WRITE_ONCE(r->depth, 0);
        barrier();
    } while (unlikely(READ_ONCE(r->tail.where) != where));
}

/* Flags of ring_read(). */
#define RING_WHOLE 1u /* return only closed pages, not the page that is being written */
#define RING_LOOK 2u  /* take no page out of the ring: copy it into the spare page */

/* ring_read - read the next page that the cursor @at has not read.
 * @at:     &r->read, or with RING_LOOK a copy of it; moves behind the page that is
 *          returned
 * @spare:  a page from ring_ops.page_new(). The ring may keep it and return another page.
 * @flags:  RING_WHOLE, RING_LOOK
 *
 * Context: any, one caller at a time. That is one reader of @r.
 *          The reader never waits for a writer, because it
 *          may be an NMI that has interrupted the writer: gdb's stub reads its rings so.
 * Return:  a page that belongs to the caller: @spare itself, or a page for which the ring
 *          keeps @spare. Its events are complete. Its commit says whether events were
 *          lost before it, and at->missed how many.
 *          NULL: there is nothing to read, and @spare still belongs to the caller.
 */
struct ring_page *ring_read(struct ring *r, struct ring_cursor *at,
                            struct ring_page *spare, unsigned flags);

/* ring_reset - make all events that were written up to now count as read.
 * @spare: as for ring_read()
 *
 * Context: as ring_read().
 * Return:  the page that belongs to the caller now, @spare or another one.
 */
struct ring_page *ring_reset(struct ring *r, struct ring_page *spare);

/* ring_lost_behind - return how many events were dropped after the events that @at has
 * read. This includes events that were dropped at the tail, which no page records yet.
 * Context: as ring_read().
 */
uint64_t ring_lost_behind(const struct ring *r, const struct ring_cursor *at);

/* ring_lost_last - return how many events were dropped after the last readable event.
 * Context: as ring_read(). There is no writer.
 */
uint64_t ring_lost_last(const struct ring *r);

/* ring_unread - return how many events come after the position r->read: the events that
 * can be read, and the events that were lost. Context: as ring_read(). There is no
 * writer.
 */
uint64_t ring_unread(const struct ring *r);

/* ring_lost_before - add @count to the losses that the next ring_read() of r->read
 * reports. Context: as ring_read().
 */
void ring_lost_before(struct ring *r, uint64_t count);

struct ring_stats {
    uint64_t entries;     /* events that can be read */
    uint64_t overwritten; /* events that were overwritten before they were read */
    uint64_t overrun;     /* events dropped because an interrupted writer held the page */
    uint64_t dropped;     /* events dropped because the ring was full */
    uint64_t read;        /* events that were read */
    uint64_t bytes;       /* of the events that can be read */
    uint64_t oldest;      /* time of the oldest page that can be read, ns; 0: none */
};

/* ring_stats_get - fill in @out. Context: as ring_read(). */
void ring_stats_get(struct ring *r, struct ring_stats *out);
