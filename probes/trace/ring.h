/* ring.h - where records of events are kept: a ring of pages for each CPU, in Linux's
 * layout.
 *
 * Writers run on the ring's own CPU and never wait: a writer may be interrupted anywhere by
 * an interrupt, an NMI or a hit that writes too, and that one ends before the first goes
 * on. A reader runs anywhere, takes whole pages, and no writer waits for it either.
 *
 * Everything that writers agree on is one value of 16 bytes, `tail`: the page, the offset
 * of the next event, how many events the page has, and the time of the last one. It changes
 * by one `cmpxchg16b`. That needs no lock prefix, since only this CPU writes it, and what
 * interrupts comes before the instruction or behind it.
 *
 * The steps of a writer, in the order in which they are done:
 *   1. `depth` goes up. The writer that finds 0 there is the outermost one.
 *   2. The time is read, and the tail is moved behind the new event. What interrupts between
 *      reading the tail and moving it makes the move fail. Then the time is that of the last
 *      event, if that is later: times never run backwards. The clock is not read again, since
 *      the clock may be what is traced: then each reading of it is an event that moves the
 *      tail, and no other event would ever get in.
 *   3. Where the page has no room: the tail is closed, and from then on counts what is
 *      dropped. Then the next slot is claimed: free pages at once, unread ones in overwrite
 *      mode. Then the tail is moved to it, by the writer whose event comes first there.
 *      That writer records how the page before has ended, and how many events were dropped
 *      in between.
 *   4. The record is filled in.
 *   5. The outermost writer publishes. All events up to the tail are complete then, since
 *      each writer that came in between has ended. It closes pages in their order, a page's
 *      commit before its state, and its state before the next page is `published`.
 *   6. `depth` goes down. If the tail has moved since it was read in 5, a writer came in
 *      between and left the publishing to this one: again from 5.
 *
 * Why a reader takes whole pages by exchanging one for another, and does not copy what it
 * can:
 *   1. An unread page is claimed by a writer, or taken by the reader, and both by a compare
 *      and exchange of the slot's word. So one of them has it, and the other knows.
 *   2. The word has the slot's lap. A page that was claimed, filled and closed again
 *      between the reader's look and its exchange is another word.
 *   3. The reader's spare page comes to the ring in the same exchange that takes the other
 *      page out. So a writer never finds a slot without a page, and never waits for a
 *      reader that was preempted half way.
 *   4. The page that is being written cannot be taken: the writer knows its address. It is
 *      copied as far as it is complete. The slot's word is compared behind that, since the
 *      ring may have gone once around meanwhile; then the copy is not used.
 *   5. What the reader needs to know of a page (how many events it has, how many came
 *      before) is read before the exchange, and only changed by those that have claimed the
 *      slot.
 *
 * Losses are exact, and known where they are: each page knows how many events were written
 * and how many were dropped before it. tests/model/ring.pml has the steps; docs/model.md.
 *
 * Locks:  c owning CPU only, by the steps above   a any CPU, atomically   I immutable
 *         R the reader: the caller lets one at a time in
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

/* As Linux has it; a reader's page is the body of a trace.dat. */
struct ring_page {
    uint64_t time;   /* that the first event's delta counts from, ns */
    uint64_t commit; /* bytes of data, and in a reader's page RING_MISSED... */
    uint8_t data[RING_DATA_LEN];
};

_Static_assert(sizeof(struct ring_page) == RING_PAGE_LEN, "a page is a page");

#define RING_MISSED (UINT64_C(1) << 31) /* events were lost right before this page */
#define RING_MISSED_COUNT (UINT64_C(1) << 30) /* how many is a u64 behind the data */
#define RING_COMMIT_MASK (RING_MISSED_COUNT - 1)

/* Headers of events: type_len in the low 5 bits, the time since the one before above. */
#define RING_TYPE_DATA_MAX                                                               \
    28 /* 1..28: words of data; 0: bytes + 4 are in the next word */
#define RING_TYPE_PADDING 29
#define RING_TYPE_EXTEND 30 /* delta = high 27 bits + next word << 27; no event */
#define RING_TYPE_STAMP 31
#define RING_DELTA_BITS 27

/* Where the next event goes. */
struct ring_tail {
    uint64_t where; /* see RING_OFF and what follows it */
    uint64_t time;  /* of the last event; of a closed tail: events dropped since */
} ALIGNED(16);

/* Fields of where: [0,10) offset in words, [10,19) events of the page, 19 closed, [20,36)
 * slot, [36,62) lap. Slot and lap together are a place: each page that is written gets a
 * higher place than the page before. The lap has 26 bits, so it starts again at 0 some
 * day: in a ring of two pages after 2^27 pages, which is half a terabyte.
 */
#define RING_COUNT_SHIFT 10
#define RING_CLOSED (UINT64_C(1) << 19)
#define RING_PLACE_SHIFT 20
#define RING_LAP_SHIFT 16 /* in a place */
#define RING_LAP_MASK ((UINT64_C(1) << 26) - 1)

enum ring_state {
    RING_FREE,   /* nothing in it, or nothing that was not read */
    RING_OPEN,   /* claimed for its lap, maybe not complete yet */
    RING_UNREAD, /* complete and closed */
};

struct ring_slot {
    uint64_t word;    /* [a] page << 16, lap << 2, ring_state */
    uint32_t end;     /* [c] bytes of data; valid when the next page was opened */
    uint32_t count;   /* [c] events, as long */
    uint64_t dropped; /* [c] events that found no room between the page before and this */
    uint64_t first;   /* [c] events on all pages before; valid when published */
    uint64_t lost;    /* [c] dropped on all pages before and this, as long */
};

/* Where a reader is. */
struct ring_cursor {
    uint64_t seq;    /* of the page: lap * slots + slot */
    uint32_t off;    /* bytes of it that were read */
    uint64_t events; /* read or lost up to here */
    uint64_t lost;   /* dropped up to here */
    uint64_t missed; /* events lost right before what ring_read() gave */
};

struct ring_ops {
    uint64_t (*clock)(void); /* ns, not running backwards on a CPU; any context */
    struct ring_page *(*page_new)(void); /* RING_PAGE_LEN bytes, aligned to that; NULL */
    void (*page_free)(struct ring_page *page);
    void *(*alloc)(size_t len); /* zeroed; NULL */
    void (*free)(void *p);
};

struct ring {
    struct ring_tail tail;   /* [c] */
    uint64_t depth;          /* [c] writers that are not done */
    uint64_t published;      /* [a] place of the last page that readers may know of */
    struct ring_page *page;  /* [c] that of published */
    uint64_t (*clock)(void); /* [I] */
    struct ring_slot *slots; /* [I] */
    uint32_t count;          /* [I] slots */
    bool overwrite; /* [a] the oldest page makes room, else new events are dropped */
    const struct ring_ops *ops; /* [I] */
    uint64_t dropped; /* [c] in all, because unread pages were not to be overwritten */
    uint64_t overrun; /* [c] in all, because writers that were interrupted held pages */
    struct ring_cursor read; /* [R] */
    uint64_t read_events;    /* [R] that ring_read() gave */
    uint64_t overwritten;    /* [R] that ring_read() did not find any more */
    uint64_t dropped_before; /* [R] dropped, when ring_reset() was called */
    uint64_t overrun_before; /* [R] overrun, then */
};

/* ring_new - an empty ring.
 * @count:     pages, RING_PAGES_MIN..RING_PAGES_MAX
 * @overwrite: what happens when it is full
 * @ops:       borrowed
 *
 * Return: the ring; NULL without memory, or with another @count.
 */
struct ring *ring_new(size_t count, bool overwrite, const struct ring_ops *ops);

/* ring_free - there is no writer and no reader of it any more. */
void ring_free(struct ring *r);

/* ring_write_slow - the steps 2 to 4 when the page ends here, much time has passed, or a
 * writer has come in between. For ring_write() only.
 * @seen: where the tail was before the time @now was read. If that was a closed tail, @now
 *        is later than all events before it. Of another closed tail that is not known, and
 *        the clock is read once more.
 */
void *ring_write_slow(struct ring *r, size_t len, uint64_t seen, uint64_t now);
/* ring_publish - step 5 when the tail is on another page than published, as @where says.
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

/* ring_slot_page - addresses have 48 bits, of which the highest is repeated above. */
static inline struct ring_page *ring_slot_page(uint64_t word)
{
    return (struct ring_page *)(uintptr_t)((int64_t)word >> 16 & ~(int64_t)0xfff);
}

/* ring_size - bytes that a record of @len bytes takes, with its header. */
static inline uint32_t ring_size(size_t len)
{
    uint32_t words = (uint32_t)(len + 3) / 4;

    return (words + (words > RING_TYPE_DATA_MAX ? 2 : 1)) * 4;
}

/* ring_cmpxchg16b - if *@at is @old, make it @new. Only this CPU writes there.
 * Return: it was.
 */
static ALWAYS_INLINE bool ring_cmpxchg16b(struct ring_tail *at, struct ring_tail old,
                                          struct ring_tail new)
{
    bool same;

    __asm__ volatile("cmpxchg16b %1"
                     : "=@ccz"(same), "+m"(*at), "+a"(old.where), "+d"(old.time)
                     : "b"(new.where), "c"(new.time)
                     : "memory");
    return same;
}

/* ring_event_start - write the header of an event of @len bytes at @at.
 * Return: where its record begins.
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

/* ring_write - begin a record. Until ring_commit() the caller fills it in, and stays on the
 * CPU. @r: that of the executing CPU
 * @len: bytes, 1..RING_EVENT_MAX
 *
 * Context: any, preemption off.  Locks: none, safe against all that interrupts.
 * Return:  @len bytes, aligned to 4; NULL: dropped and counted, and there is nothing to
 * commit.
 */
static ALWAYS_INLINE void *ring_write(struct ring *r, size_t len)
{
    uint32_t size = ring_size(len);
    struct ring_tail old, new;
    uint64_t delta, word;

    WRITE_ONCE(r->depth, READ_ONCE(r->depth) + 1);
    barrier();
    old.where = READ_ONCE(r->tail.where);
    old.time = READ_ONCE(r->tail.time);
    new.time = r->clock();
    delta = new.time - old.time;
    if (unlikely((old.where & RING_CLOSED) || delta >> RING_DELTA_BITS ||
                 ring_off(old.where) + size > RING_DATA_LEN))
        return ring_write_slow(r, len, old.where, new.time);
    new.where = old.where + size / 4 + (UINT64_C(1) << RING_COUNT_SHIFT);
    if (unlikely(!ring_cmpxchg16b(&r->tail, old, new)))
        return ring_write_slow(r, len, old.where, new.time);
    word =
        __atomic_load_n(&ring_slot_of(r, ring_place(old.where))->word, __ATOMIC_RELAXED);
    return ring_event_start(ring_slot_page(word)->data + ring_off(old.where), len,
                            (uint32_t)delta);
}

/* ring_commit - the record is complete: steps 5 and 6. Context: as ring_write(). */
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

/* What ring_read() is to leave. */
#define RING_WHOLE 1u /* the page that is being written */
#define RING_LOOK 2u  /* everything: each page is copied into the spare one */

/* ring_read - read the next page that the cursor @at has not read.
 * @at:     &r->read, or with RING_LOOK a copy of it; moves behind the page that is
 *          returned
 * @spare:  a page from ring_ops.page_new(). The ring may keep it and return another page.
 * @flags:  RING_WHOLE, RING_LOOK
 *
 * Context: thread; one reader of @r at a time.
 * Return:  a page that belongs to the caller: @spare itself, or a page for which the ring
 *          keeps @spare. Its events are complete. Its commit says whether events were
 *          lost before it, and at->missed how many.
 *          NULL: there is nothing to read, and @spare still belongs to the caller.
 */
struct ring_page *ring_read(struct ring *r, struct ring_cursor *at,
                            struct ring_page *spare, unsigned flags);

/* ring_reset - what was written up to now counts as read. @spare: as for ring_read().
 * Context: as ring_read().  Return: what is the caller's in the place of @spare.
 */
struct ring_page *ring_reset(struct ring *r, struct ring_page *spare);

/* ring_lost_behind - events that were lost behind all that @at has read, because of which
 * there may be no page to tell it yet. Context: thread.
 */
uint64_t ring_lost_behind(const struct ring *r, const struct ring_cursor *at);

/* ring_lost_last - those of them that were lost behind the last one that can be read.
 * Context: as ring_read(), without a writer.
 */
uint64_t ring_lost_last(const struct ring *r);

/* ring_unread - events that r->read has not come to: those that can be read, and those that
 * were lost. Context: as ring_read(), without a writer.
 */
uint64_t ring_unread(const struct ring *r);

/* ring_lost_before - @count events were lost before those that r->read comes to next.
 * Context: as ring_read().
 */
void ring_lost_before(struct ring *r, uint64_t count);

struct ring_stats {
    uint64_t entries;     /* that can be read */
    uint64_t overwritten; /* unread */
    uint64_t overrun;     /* dropped: a writer that was interrupted held the page */
    uint64_t dropped;     /* the ring was full */
    uint64_t read;
    uint64_t bytes;  /* that can be read */
    uint64_t oldest; /* time of the oldest page that can be read, ns; 0: none */
};

/* ring_stats_get - Context: as ring_read(). */
void ring_stats_get(struct ring *r, struct ring_stats *out);
