/* ring.c - opens and closes pages for writers, and reads a ring. ring.h has the steps. */
#include "probes/trace/ring/ring.h"
#include "kernel/base/bits.h"
#include "probes/trace/ring/page.h"

#include <string.h>

/* ---- places and words ---- */

static uint64_t place_next(const struct ring *r, uint64_t place)
{
    if ((place & (RING_PAGES_MAX - 1)) + 1 < r->count)
        return place + 1;
    return (((place >> RING_LAP_SHIFT) + 1) & RING_LAP_MASK) << RING_LAP_SHIFT;
}

static uint64_t lap_place(const struct ring *r, uint64_t seq)
{
    return (seq / r->count & RING_LAP_MASK) << RING_LAP_SHIFT | seq % r->count;
}

static uint64_t seq_of(const struct ring *r, uint64_t place)
{
    return (place >> RING_LAP_SHIFT) * r->count + (place & (RING_PAGES_MAX - 1));
}

static uint64_t word_make(const struct ring_page *page, uint64_t lap,
                          enum ring_state state)
{
    return (uint64_t)(uintptr_t)page << 16 | (lap & RING_LAP_MASK) << 2 | state;
}

static enum ring_state word_state(uint64_t word)
{
    return (enum ring_state)(word & 3);
}

static uint64_t word_lap(uint64_t word)
{
    return word >> 2 & RING_LAP_MASK;
}

static bool word_change(struct ring_slot *slot, uint64_t old, uint64_t new)
{
    return __atomic_compare_exchange_n(&slot->word, &old, new, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

static uint64_t word_read(const struct ring_slot *slot)
{
    return __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);
}

/* ---- making and freeing ---- */

static bool pages_new(struct ring *r)
{
    for (size_t i = 0; i < r->count; i++) {
        struct ring_page *page = r->ops->page_new();

        if (!page)
            return false;
        r->slots[i].word = word_make(page, RING_LAP_MASK, RING_FREE);
    }
    return true;
}

struct ring *ring_new(size_t count, bool overwrite, const struct ring_ops *ops)
{
    struct ring *r;

    if (count < RING_PAGES_MIN || count > RING_PAGES_MAX)
        return NULL;
    r = ops->alloc(sizeof(*r));
    if (!r)
        return NULL;
    r->ops = ops;
    r->clock = ops->clock;
    r->overwrite = overwrite;
    r->count = (uint32_t)count;
    r->slots = ops->alloc(count * sizeof(*r->slots));
    if (!r->slots || !pages_new(r)) {
        ring_free(r);
        return NULL;
    }
    /* Slot 0 is open but empty, and the tail is closed: the first event opens slot 1. */
    r->page = ring_slot_page(r->slots[0].word);
    r->page->commit = 0;
    r->slots[0].word = word_make(r->page, 0, RING_OPEN);
    r->tail.where = RING_CLOSED;
    return r;
}

void ring_free(struct ring *r)
{
    for (size_t i = 0; r->slots && i < r->count; i++)
        if (r->slots[i].word)
            r->ops->page_free(ring_slot_page(r->slots[i].word));
    r->ops->free(r->slots);
    r->ops->free(r);
}

/* ---- writers: steps 2 and 3 ---- */

enum claim { CLAIMED, CLAIM_FULL, CLAIM_HELD };

/* ring_claim - claim the slot of @place for writing. The writer that this one has interrupted
 * may have claimed it already.
 */
static enum claim ring_claim(struct ring *r, uint64_t place)
{
    uint64_t lap = place >> RING_LAP_SHIFT;
    struct ring_slot *slot = ring_slot_of(r, place);

    for (;;) {
        uint64_t word = word_read(slot);
        enum ring_state state = word_state(word);

        if (state == RING_OPEN)
            return word_lap(word) == lap ? CLAIMED : CLAIM_HELD;
        if (state == RING_UNREAD && !READ_ONCE(r->overwrite))
            return CLAIM_FULL;
        if (word_change(slot, word, word_make(ring_slot_page(word), lap, RING_OPEN)))
            return CLAIMED;
    }
}

/* ring_drop - count a dropped event at the closed tail @old.
 * Return: false: the tail has changed, and nothing was counted.
 */
static bool ring_drop(struct ring *r, struct ring_tail old, enum claim why)
{
    struct ring_tail new = { old.where, old.time + 1 };

    if (!ring_cmpxchg16b(&r->tail, old, new))
        return false;
    __atomic_fetch_add(why == CLAIM_FULL ? &r->dropped : &r->overrun, 1,
                       __ATOMIC_RELAXED);
    ring_commit(r);
    return true;
}

static struct ring_tail tail_read(const struct ring *r)
{
    struct ring_tail tail = { READ_ONCE(r->tail.where), 0 };

    tail.time = READ_ONCE(r->tail.time);
    return tail;
}

static struct ring_page *page_at(const struct ring *r, uint64_t where)
{
    return ring_slot_page(word_read(ring_slot_of(r, ring_place(where))));
}

/* open_page - move the closed tail @old to the claimed page at @place, and begin the page
 * with an event of @len bytes at time @now. Return: its record; NULL: the tail has
 * changed.
 */
static void *open_page(struct ring *r, struct ring_tail old, uint64_t place, size_t len,
                       uint64_t now)
{
    uint64_t where = place << RING_PLACE_SHIFT | UINT64_C(1) << RING_COUNT_SHIFT;
    struct ring_slot *before = ring_slot_of(r, ring_place(old.where));
    struct ring_tail new = { where + ring_size(len) / 4, now };
    struct ring_page *page;

    if (!ring_cmpxchg16b(&r->tail, old, new))
        return NULL;
    WRITE_ONCE(before->end, ring_off(old.where));
    WRITE_ONCE(before->count, ring_count(old.where));
    ring_slot_of(r, place)->dropped = old.time;
    page = page_at(r, where);
    page->time = now;
    __atomic_store_n(&page->commit, 0, __ATOMIC_RELAXED);
    return ring_event_start(page->data, len, 0);
}

static bool close_tail(struct ring *r, struct ring_tail old)
{
    return ring_cmpxchg16b(&r->tail, old,
                           (struct ring_tail){ old.where | RING_CLOSED, 0 });
}

/* extended - begin an event of @len bytes at time @now on the page of the tail @old. If
 * the time since the last event does not fit in a header, a RING_TYPE_EXTEND comes first.
 * @room: set to false if the page has no room for the event
 *
 * Return: its record; NULL: there is no room, or the tail has changed.
 */
static void *extended(struct ring *r, struct ring_tail old, size_t len, uint64_t now,
                      bool *room)
{
    uint64_t delta = now - old.time;
    uint32_t extend = delta >> RING_DELTA_BITS ? 8 : 0, size = ring_size(len) + extend;
    struct ring_tail new = { old.where + size / 4 + (UINT64_C(1) << RING_COUNT_SHIFT),
                             now };
    uint32_t *at;

    *room = ring_off(old.where) + size <= RING_DATA_LEN && delta < UINT64_C(1) << 59;
    if (!*room || !ring_cmpxchg16b(&r->tail, old, new))
        return NULL;
    at = (uint32_t *)(page_at(r, old.where)->data + ring_off(old.where));
    if (!extend)
        return ring_event_start((uint8_t *)at, len, (uint32_t)delta);
    at[0] = (uint32_t)(delta & ((1u << RING_DELTA_BITS) - 1)) << 5 | RING_TYPE_EXTEND;
    at[1] = (uint32_t)(delta >> RING_DELTA_BITS);
    return ring_event_start((uint8_t *)(at + 2), len, 0);
}

void *ring_write_slow(struct ring *r, size_t len, uint64_t seen, uint64_t now)
{
    for (;;) {
        struct ring_tail old = tail_read(r);
        void *record;
        enum claim c;
        bool room;

        if (!(old.where & RING_CLOSED)) {
            if (now < old.time)
                now = old.time;
            record = extended(r, old, len, now, &room);
            if (record)
                return record;
            if (!room && close_tail(r, old))
                seen = old.where | RING_CLOSED;
            continue;
        }
        if (old.where != seen) {
            seen = old.where;
            now = r->clock();
            continue;
        }
        c = ring_claim(r, place_next(r, ring_place(old.where)));
        if (c != CLAIMED) {
            if (ring_drop(r, old, c))
                return NULL;
            continue;
        }
        record = open_page(r, old, place_next(r, ring_place(old.where)), len, now);
        if (record)
            return record;
    }
}

/* ---- writers: step 5 ---- */

/* close_page - close the published page, which is complete, and publish the next one. */
static void close_page(struct ring *r, uint64_t next_place)
{
    struct ring_slot *slot = ring_slot_of(r, r->published);
    struct ring_slot *next = ring_slot_of(r, next_place);
    uint64_t word = word_read(slot);

    WRITE_ONCE(next->first, slot->first + slot->count);
    WRITE_ONCE(next->lost, slot->lost + next->dropped);
    __atomic_store_n(&r->page->commit, slot->end, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->word,
                     (word & ~UINT64_C(3)) | (slot->end ? RING_UNREAD : RING_FREE),
                     __ATOMIC_RELEASE);
    WRITE_ONCE(r->page, ring_slot_page(word_read(next)));
    __atomic_store_n(&r->published, next_place, __ATOMIC_RELEASE);
}

void ring_publish(struct ring *r, uint64_t where)
{
    while (r->published != ring_place(where))
        close_page(r, place_next(r, r->published));
    __atomic_store_n(&r->page->commit, ring_off(where), __ATOMIC_RELEASE);
}

/* ---- the reader ---- */

/* The values that the reader has read from a slot. */
struct slot_look {
    struct ring_slot *slot;
    uint64_t word;
    uint32_t end, events; /* events: 0: they have to be counted on the page */
    uint64_t first, lost;
};

/* copy - copy a page. A writer may change @from meanwhile: the caller checks that
 * afterwards, by still_there().
 */
__attribute__((no_sanitize("thread"))) static void copy(struct ring_page *to,
                                                        const struct ring_page *from,
                                                        uint32_t len)
{
    const volatile uint64_t *words = (const volatile uint64_t *)from;

    for (size_t i = 0; i < (len + 16 + 7) / 8; i++)
        ((uint64_t *)to)[i] = words[i];
    to->commit = len;
}

static void slot_look_at(const struct ring *r, uint64_t place, struct slot_look *l)
{
    l->slot = ring_slot_of(r, place);
    l->word = word_read(l->slot);
    l->first = READ_ONCE(l->slot->first);
    l->lost = READ_ONCE(l->slot->lost);
    l->end = READ_ONCE(l->slot->end);
    l->events = READ_ONCE(l->slot->count);
}

/* still_there - tell whether the slot has the same page and lap as in @l. Its state may
 * have changed: closing a page does not change its events.
 */
static bool still_there(const struct slot_look *l)
{
    barrier(); /* for the compiler; the CPU itself reads in the order of the program */
    return !((word_read(l->slot) ^ l->word) & ~UINT64_C(3));
}

/* ring_give - prepare @page, which belongs to the caller of ring_read(): leave only the
 * events that @at has not read, note the losses before them, and move @at over them.
 */
static struct ring_page *ring_give(struct ring *r, struct ring_cursor *at,
                                   const struct slot_look *l, struct ring_page *page)
{
    bool consume = at == &r->read;
    uint64_t events;

    if (!at->off) {
        at->missed += l->first - at->events + l->lost - at->lost;
        if (consume)
            r->overwritten += l->first - at->events;
        at->events = l->first;
        at->lost = l->lost;
    }
    page->commit = l->end;
    page_cut(page, at->off);
    events = l->events ? l->first + l->events - at->events : page_events(page);
    page_set_missed(page, at->missed);
    at->events += events;
    if (consume)
        r->read_events += events;
    return page;
}

/* read_open - copy the page at @place, to which writers may add events, into @spare.
 * Return: false: the page has no event that @at has not read, or it is not there any more.
 */
static bool read_open(struct ring *r, struct ring_cursor *at, uint64_t place,
                      struct ring_page *spare)
{
    struct slot_look l;

    slot_look_at(r, place, &l);
    if (word_lap(l.word) != place >> RING_LAP_SHIFT || word_state(l.word) == RING_FREE)
        return false;
    l.end = (uint32_t)__atomic_load_n(&ring_slot_page(l.word)->commit, __ATOMIC_ACQUIRE);
    l.events = 0;
    if (l.end <= at->off)
        return false;
    copy(spare, ring_slot_page(l.word), l.end);
    if (!still_there(&l))
        return false;
    ring_give(r, at, &l, spare);
    at->off = l.end;
    return true;
}

/* slot_take - take the page of @l out of the ring, and put @spare in its place. Return:
 * false: the slot has changed.
 */
static bool slot_take(const struct slot_look *l, struct ring_page *spare)
{
    return word_change(l->slot, l->word, word_make(spare, word_lap(l->word), RING_FREE));
}

/* read_closed - take, or copy, the page at @at, which is closed.
 * @page: the spare page; after success the page that belongs to the caller
 * Return: false: the page is not there any more, or has no event that @at has not read.
 */
static bool read_closed(struct ring *r, struct ring_cursor *at, struct ring_page **page,
                        unsigned flags)
{
    uint64_t place = lap_place(r, at->seq);
    struct slot_look l;

    slot_look_at(r, place, &l);
    if (word_lap(l.word) != place >> RING_LAP_SHIFT || word_state(l.word) != RING_UNREAD)
        return false;
    if (l.end == at->off) {
        if (!(flags & RING_LOOK))
            slot_take(&l, ring_slot_page(l.word));
        return false;
    }
    if (flags & RING_LOOK) {
        copy(*page, ring_slot_page(l.word), l.end);
        if (!still_there(&l))
            return false;
    } else {
        if (!slot_take(&l, *page))
            return false;
        *page = ring_slot_page(l.word);
    }
    ring_give(r, at, &l, *page);
    return true;
}

static void cursor_next_page(struct ring_cursor *at, uint64_t seq)
{
    at->seq = seq;
    at->off = 0;
}

struct ring_page *ring_read(struct ring *r, struct ring_cursor *at,
                            struct ring_page *spare, unsigned flags)
{
    at->missed = 0;
    for (;;) {
        uint64_t place = __atomic_load_n(&r->published, __ATOMIC_ACQUIRE);
        uint64_t seq = seq_of(r, place);
        bool is_found;

        if (at->seq + r->count <= seq)
            cursor_next_page(at, seq - r->count + 1); /* older pages were overwritten */
        if (at->seq == seq) {
            if (flags & RING_WHOLE)
                return NULL;
            if (read_open(r, at, place, spare))
                return spare;
            /* If no later page is published, the reader must not wait for one: it may be
             * an NMI on top of the writer that is just closing this page.
             */
            if (place == __atomic_load_n(&r->published, __ATOMIC_ACQUIRE))
                return NULL;
            continue;
        }
        is_found = read_closed(r, at, &spare, flags);
        cursor_next_page(at, at->seq + 1);
        if (is_found)
            return spare;
    }
}

/* lost_at_tail - return how many events were dropped up to now, with those at the closed
 * tail, which no page records yet.
 */
static uint64_t lost_at_tail(const struct ring *r)
{
    struct ring_tail tail;
    uint64_t lost;

    do {
        tail = tail_read(r);
        lost = READ_ONCE(ring_slot_of(r, ring_place(tail.where))->lost);
        barrier();
    } while (READ_ONCE(r->tail.where) != tail.where);
    return tail.where & RING_CLOSED ? lost + tail.time : lost;
}

uint64_t ring_lost_last(const struct ring *r)
{
    struct ring_tail tail = tail_read(r);

    return tail.where & RING_CLOSED ? tail.time : 0;
}

uint64_t ring_lost_behind(const struct ring *r, const struct ring_cursor *at)
{
    return lost_at_tail(r) - at->lost;
}

void ring_lost_before(struct ring *r, uint64_t count)
{
    r->read.lost -= count;
}

struct ring_page *ring_reset(struct ring *r, struct ring_page *spare)
{
    uint64_t lost = lost_at_tail(r);

    /* The loop has a bound, because writers may fill pages as fast as it reads them. */
    for (size_t i = 0; i <= r->count; i++) {
        struct ring_page *page = ring_read(r, &r->read, spare, 0);

        if (!page)
            break;
        spare = page;
    }
    /* The events that were dropped before this call count as read. If the loop has read a
     * page that was opened since, read.lost includes these events already.
     */
    if ((int64_t)(lost - r->read.lost) > 0)
        r->read.lost = lost;
    r->read_events = r->overwritten = 0;
    r->dropped_before = READ_ONCE(r->dropped);
    r->overrun_before = READ_ONCE(r->overrun);
    return spare;
}

/* oldest - move @at to the oldest page that it can read, and fill in @l for that page.
 * Return: false: only the page that is being written is left.
 */
static bool oldest(const struct ring *r, struct ring_cursor *at, struct slot_look *l)
{
    uint64_t published = seq_of(r, __atomic_load_n(&r->published, __ATOMIC_ACQUIRE));

    if (at->seq + r->count <= published)
        cursor_next_page(at, published - r->count + 1);
    for (; at->seq < published; cursor_next_page(at, at->seq + 1)) {
        uint64_t place = lap_place(r, at->seq);

        slot_look_at(r, place, l);
        if (word_lap(l->word) == place >> RING_LAP_SHIFT &&
            word_state(l->word) == RING_UNREAD)
            return true;
    }
    slot_look_at(r, lap_place(r, published), l);
    return false;
}

/* bytes_from - count the unread bytes on the pages from @at up to page @published. */
static uint64_t bytes_from(const struct ring *r, const struct ring_cursor *at,
                           uint64_t published)
{
    uint64_t bytes = READ_ONCE(READ_ONCE(r->page)->commit) - at->off;

    for (uint64_t seq = at->seq; seq < published; seq++)
        bytes += READ_ONCE(ring_slot_of(r, lap_place(r, seq))->end);
    return bytes;
}

/* written - return how many events were written up to now, incomplete events included.
 * @place: that of the published page
 */
static uint64_t written(const struct ring *r, uint64_t place)
{
    const struct ring_slot *slot = ring_slot_of(r, place);
    uint64_t where = READ_ONCE(r->tail.where);

    return READ_ONCE(slot->first) +
           (ring_place(where) == place ? ring_count(where) : READ_ONCE(slot->count));
}

uint64_t ring_unread(const struct ring *r)
{
    return written(r, r->published) - r->read.events + ring_lost_behind(r, &r->read);
}

void ring_stats_get(struct ring *r, struct ring_stats *out)
{
    uint64_t place = __atomic_load_n(&r->published, __ATOMIC_ACQUIRE), end, from;
    struct ring_cursor at = r->read;
    struct slot_look l;

    oldest(r, &at, &l);
    end = written(r, place);
    from = l.first > at.events ? l.first : at.events;
    *out = (struct ring_stats){
        .entries = end > from ? end - from : 0,
        .overwritten = r->overwritten + from - at.events,
        .overrun = READ_ONCE(r->overrun) - r->overrun_before,
        .dropped = READ_ONCE(r->dropped) - r->dropped_before,
        .read = r->read_events,
        .bytes = bytes_from(r, &at, seq_of(r, place)),
    };
    if (out->entries)
        out->oldest = READ_ONCE(ring_slot_page(l.word)->time);
}
