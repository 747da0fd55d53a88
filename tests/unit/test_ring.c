/* test_ring.c - tests of the ring with one writer after the other, with writers that
 * interrupt writers, and with a reader between any two of them.
 */
#include "probes/trace/ring/page.h"
#include "probes/trace/ring/ring.h"
#include "tests/unit/ring_memory.h"
#include "tests/unit/unit.h"

/* ---- a ring with a clock that calls an interrupt ---- */

static uint64_t now;
static void (*interrupt)(void); /* runs between a writer's read and move of the tail */
static size_t blocks;

static uint64_t clock_and_interrupt(void)
{
    uint64_t time = now;

    if (interrupt)
        interrupt();
    return time;
}

static struct ring_page *page_new(void)
{
    struct ring_page *page = host_page_new();

    memset(page, 0xa5, sizeof(*page));
    blocks++;
    return page;
}

static void block_free(void *p)
{
    blocks -= p != NULL;
    free(p);
}

static void page_free(struct ring_page *page)
{
    block_free(page);
}

static long allocs_left = -1;

static void *block_new(size_t len)
{
    if (!allocs_left)
        return NULL;
    allocs_left -= allocs_left > 0;
    blocks++;
    return host_block_new(len);
}

static const struct ring_ops ops = { clock_and_interrupt, page_new, page_free, block_new,
                                     block_free };

static struct ring *ring;
static struct ring_page *spare;
static uint64_t next_id;

static void start(size_t pages, bool overwrite)
{
    now = 1000;
    next_id = 0;
    interrupt = NULL;
    ring = ring_new(pages, overwrite, &ops);
    spare = page_new();
}

static void end(void)
{
    if (ring) {
        ring_free(ring);
        page_free(spare);
    }
    ring = NULL;
    CHECK_EQ(blocks, 0);
}

/* begin - begin a record of @len bytes: first its number, then bytes with the low byte of
 * the number.
 */
static void *begin(size_t len)
{
    uint64_t *record = ring_write(ring, len);
    uint64_t id = next_id++;

    if (!record)
        return NULL;
    memset(record, (int)id, len);
    memcpy(record, &id, sizeof(id));
    return record;
}

static bool put(size_t len)
{
    if (!begin(len))
        return false;
    ring_commit(ring);
    return true;
}

/* ---- the reader: it finds each record once, complete and in order ---- */

static uint64_t expected; /* id of the next record, if none is lost */
static uint64_t lost, seen, last_time;

static bool is_whole(const struct page_event *event, uint64_t id)
{
    const uint8_t *bytes = event->data;

    for (uint32_t i = 8; i + 4 <= event->len; i++)
        if (bytes[i] != (uint8_t)id)
            return false;
    return event->len >= 8;
}

static void check_page(const struct ring_page *page, uint64_t missed)
{
    struct page_event event;
    struct page_iter it;
    bool first = true;

    page_iter_init(&it, page);
    while (page_next(&it, &event)) {
        uint64_t id;

        memcpy(&id, event.data, sizeof(id));
        CHECK_EQ(id, expected + (first ? missed : 0));
        CHECK(is_whole(&event, id));
        CHECK(event.time >= last_time && event.time <= now);
        last_time = event.time;
        expected = id + 1;
        first = false;
        seen++;
    }
    CHECK(!first);
    CHECK_EQ(it.off, it.end);
    lost += missed;
}

static bool read_one(unsigned flags)
{
    struct ring_page *page = ring_read(ring, &ring->read, spare, flags);

    if (!page)
        return false;
    spare = page;
    check_page(page, ring->read.missed);
    return true;
}

static void read_start(void)
{
    expected = lost = seen = last_time = 0;
}

static void read_all(void)
{
    while (read_one(0))
        ;
}

/* ---- tests ---- */

UNIT_TEST(a_page_is_as_linux_has_it)
{
    start(2, true);
    now = 0x1122334455667788;
    put(8);
    now += 5;
    put(12);
    spare = ring_read(ring, &ring->read, spare, 0);
    CHECK_BYTES((uint8_t *)spare, "88 77 66 55 44 33 22 11  1c 00 00 00 00 00 00 00 "
                                  "02 00 00 00  00 00 00 00 00 00 00 00 "
                                  "a3 00 00 00  01 00 00 00 00 00 00 00 01 01 01 01");
}

UNIT_TEST(long_silence_is_an_event_of_its_own)
{
    start(2, true);
    put(8);
    now += (UINT64_C(1) << 27) - 1;
    put(8);
    now += UINT64_C(1) << 27;
    put(8);
    now += UINT64_C(0x123456789abc);
    put(8);
    spare = ring_read(ring, &ring->read, spare, 0);
    CHECK_BYTES(spare->data + 12, "e2 ff ff ff");
    CHECK_BYTES(spare->data + 24, "1e 00 00 00  01 00 00 00  02 00 00 00");
    read_start();
    check_page(spare, 0);
    CHECK_EQ(last_time, now);
    CHECK_EQ(seen, 4);
}

UNIT_TEST(time_that_runs_backwards_stands_still)
{
    start(2, true);
    put(8);
    now -= 500;
    put(8);
    spare = ring_read(ring, &ring->read, spare, 0);
    CHECK_EQ(spare->commit, 24);
    CHECK_BYTES(spare->data + 12, "02 00 00 00");
}

UNIT_TEST(it_stands_still_over_the_end_of_a_page)
{
    struct page_event event;
    struct page_iter it;
    uint64_t last = 0;

    start(4, true);
    for (int i = 0; i < 3000; i++) {
        now = i % 300 ? now + 3 : now - 400;
        put(24);
        spare = ring_read(ring, &ring->read, spare, 0);
        page_iter_init(&it, spare);
        while (page_next(&it, &event)) {
            CHECK(event.time >= last);
            last = event.time;
        }
    }
}

UNIT_TEST(the_oldest_pages_make_room)
{
    struct ring_stats s;

    start(4, true);
    read_start();
    for (int i = 0; i < 10000; i++)
        CHECK(put(8));
    ring_stats_get(ring, &s);
    CHECK_EQ(s.entries + s.overwritten, 10000);
    CHECK_EQ(s.entries, 3 * 340 + 10000 % 340);
    read_all();
    CHECK_EQ(seen, s.entries);
    CHECK_EQ(lost, s.overwritten);
    ring_stats_get(ring, &s);
    CHECK_EQ(s.read, seen);
    CHECK_EQ(s.overwritten, lost);
    CHECK_EQ(s.entries, 0);
}

/* A long record is lost, because the page has no room for it. A short record that fits is
 * lost after that, too: otherwise the reader would find the loss behind it, at a wrong
 * place.
 */
UNIT_TEST(a_loss_is_shown_where_it_happened)
{
    start(2, false);
    read_start();
    put(2000);
    put(2000);
    put(2000);
    CHECK(!put(3000));
    CHECK(!put(8));
    read_all();
    CHECK_EQ(seen, 3);
    CHECK(put(8));
    read_all();
    CHECK_EQ(lost, 2);
    CHECK_EQ(page_missed(spare), 2);
}

UNIT_TEST(a_loss_behind_the_last_record_is_known)
{
    struct ring_cursor at;

    start(2, false);
    read_start();
    put(2000);
    put(3000);
    CHECK_EQ(ring_unread(ring), 2);
    CHECK(!put(3000) && !put(8) && !put(8));
    CHECK_EQ(ring_unread(ring), 5);
    CHECK_EQ(ring_lost_last(ring), 3);
    at = ring->read;
    while (ring_read(ring, &at, spare, RING_LOOK))
        continue;
    CHECK_EQ(ring_lost_behind(ring, &at), 3);
    read_all();
    CHECK_EQ(ring_lost_behind(ring, &ring->read), 3);
    CHECK(put(8));
    CHECK_EQ(ring_lost_last(ring), 0);
    ring_lost_before(ring, 10);
    CHECK_EQ(ring_unread(ring), 14);
    spare = ring_read(ring, &ring->read, spare, 0);
    CHECK_EQ(ring->read.missed, 13);
    CHECK_EQ(ring_lost_behind(ring, &ring->read), 0);
}

UNIT_TEST(a_full_page_has_no_room_for_the_number)
{
    start(2, true);
    for (int i = 0; i < 4; i++)
        put(RING_EVENT_MAX);
    spare = ring_read(ring, &ring->read, spare, 0);
    CHECK_EQ(ring->read.missed, 2);
    CHECK_EQ(spare->commit, RING_DATA_LEN | RING_MISSED);
    CHECK_EQ(page_missed(spare), PAGE_MISSED_SOME);
}

UNIT_TEST(whole_pages_only)
{
    start(4, true);
    read_start();
    for (int i = 0; i < 340; i++)
        put(8);
    CHECK(!read_one(RING_WHOLE));
    put(8);
    CHECK(read_one(RING_WHOLE));
    CHECK(!read_one(RING_WHOLE));
    CHECK_EQ(seen, 340);
}

UNIT_TEST(a_look_takes_nothing)
{
    start(4, true);
    for (int i = 0; i < 1000; i++)
        put(8);
    for (int round = 0; round < 2; round++) {
        struct ring_cursor at = ring->read;

        read_start();
        while (ring_read(ring, &at, spare, RING_LOOK))
            check_page(spare, at.missed);
        CHECK_EQ(seen, 1000);
    }
    read_start();
    read_all();
    CHECK_EQ(seen, 1000);
}

UNIT_TEST(reset_forgets_all)
{
    struct ring_stats s;

    start(4, false);
    while (put(8)) /* the last one, and no other, is dropped */
        ;
    spare = ring_reset(ring, spare);
    CHECK(!ring_read(ring, &ring->read, spare, 0));
    ring_stats_get(ring, &s);
    CHECK_EQ(s.entries + s.dropped + s.overwritten + s.read + s.bytes, 0);
    put(8);
    spare = ring_read(ring, &ring->read, spare, 0);
    CHECK_EQ(ring->read.missed, 0);
}

/* ---- writers that interrupt writers ---- */

static void once(void)
{
    interrupt = NULL;
    now += 5;
    put(16);
}

UNIT_TEST(one_that_comes_between_is_first)
{
    start(4, true);
    read_start();
    put(8);
    now += 10;
    interrupt = once;
    put(8);
    read_all();
    CHECK_EQ(seen, 3);
}

static void in_each_reading_of_the_clock(void)
{
    void (*self)(void) = interrupt;

    interrupt = NULL; /* a hit inside a hit is a miss, and writes no record */
    now += 5;
    put(16);
    interrupt = self;
}

/* A probe on the clock writes a record each time that a writer reads the clock. */
UNIT_TEST(the_clock_may_be_what_is_recorded)
{
    for (size_t len = 8; len <= RING_EVENT_MAX; len += len < 400 ? 16 : 1200) {
        struct ring_stats s;

        start(4, true);
        read_start();
        interrupt = in_each_reading_of_the_clock;
        for (int i = 0; i < 500; i++) {
            CHECK(put(len));
            CHECK(next_id <= (uint64_t)i * 3 + 3);
            read_all();
        }
        interrupt = NULL;
        CHECK_EQ(seen, next_id);
        ring_stats_get(ring, &s);
        CHECK_EQ(s.dropped + s.overrun + s.overwritten, 0);
        end();
    }
}

UNIT_TEST(nothing_is_read_behind_what_is_not_complete)
{
    start(4, true);
    read_start();
    put(8);
    begin(8);
    put(8);
    read_all();
    CHECK_EQ(seen, 1);
    ring_commit(ring);
    read_all();
    CHECK_EQ(seen, 3);
}

/* An NMI reads while the writer that it has interrupted has marked the empty first page as
 * closed, and has not published the next page.
 */
UNIT_TEST(a_reader_does_not_wait_for_the_writer_that_it_interrupts)
{
    uint64_t word;

    start(2, false);
    read_start();
    word = ring->slots[0].word;
    ring->slots[0].word = (word & ~UINT64_C(3)) | RING_FREE;
    CHECK(ring_read(ring, &ring->read, spare, 0) == NULL);
    ring->slots[0].word = word;
    put(8);
    read_all();
    CHECK_EQ(seen, 1);
}

/* Writers that interrupt the outermost one fill the whole ring. They do not overwrite the
 * page that the outermost writer still writes to.
 */
UNIT_TEST(a_page_that_is_held_is_not_overwritten)
{
    struct ring_stats s;
    unsigned kept = 0;

    start(4, true);
    read_start();
    put(8);
    begin(8);
    for (int i = 0; i < 10000; i++)
        kept += put(8);
    ring_commit(ring);
    CHECK_EQ(kept, 4 * 340 - 2);
    ring_stats_get(ring, &s);
    CHECK_EQ(s.overrun, 10000 - kept);
    CHECK_EQ(s.entries, kept + 2);
    put(8);
    read_all();
    CHECK_EQ(lost, 10000 - kept + 340);
    CHECK_EQ(seen + lost, next_id);
}

static void fills_what_is_left(void)
{
    interrupt = NULL;
    do
        now++;
    while (put(8));
    CHECK(read_one(0)); /* as a reader on another CPU would */
}

UNIT_TEST(a_page_is_not_older_than_the_one_before)
{
    start(2, false);
    read_start();
    for (int i = 0; i < 400; i++)
        put(8);
    interrupt = fills_what_is_left;
    CHECK(put(8));
    read_all();
    CHECK_EQ(seen + lost, next_id);
    CHECK_EQ(lost, 1);
}

static unsigned nested;

static size_t some_len(void)
{
    return unit_random() % 16 ? 8 + unit_random() % 60 : 8 + unit_random() % 3000;
}

static void at_random(void)
{
    if (nested >= 3 || unit_random() % 4)
        return;
    nested++;
    for (uint64_t n = unit_random() % 64 ? unit_random() % 3 : unit_random() % 600; n;
         n--)
        if (begin(some_len())) {
            if (unit_random() % 4 == 0)
                at_random();
            ring_commit(ring);
        }
    nested--;
    now += unit_random() % 64 ? 3 : UINT64_C(1) << 28;
}

UNIT_TEST(in_any_order_each_is_read_or_lost)
{
    for (int round = 0; round < 200; round++) {
        struct ring_stats s;

        start(2 + unit_random() % 6, round % 2);
        read_start();
        interrupt = at_random;
        for (int i = 0; i < 500; i++) {
            if (begin(some_len())) {
                at_random();
                ring_commit(ring);
            }
            while (unit_random() % 8 == 0 && read_one(unit_random() % 2))
                ;
        }
        interrupt = NULL;
        read_all();
        ring_stats_get(ring, &s);
        CHECK_EQ(s.read, seen);
        CHECK_EQ(s.read + s.overwritten + s.dropped + s.overrun, next_id);
        CHECK_EQ(s.entries, 0);
        end();
    }
}

UNIT_TEST(without_memory_there_is_no_ring)
{
    for (allocs_left = 0; allocs_left < 2; allocs_left++) {
        long left = allocs_left;

        CHECK(!ring_new(4, true, &ops));
        allocs_left = left;
        CHECK_EQ(blocks, 0);
    }
    allocs_left = -1;
    CHECK(!ring_new(1, true, &ops));
    CHECK(!ring_new(RING_PAGES_MAX + 1, true, &ops));
}

UNIT_TESTS_BETWEEN(NULL, end)
