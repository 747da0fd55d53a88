/* explore_ring.c - a thread, an interrupt and an NMI write on one CPU, each record on a page
 * of its own, to a ring of two pages; on another CPU a reader copies a page, and then takes
 * pages.
 */
#include "tests/explore/ring_ops.h"

#define WORDS 260 /* of a record, which is more than half of a page */

static struct ring *ring;
static struct ring_page *spare;
static uint64_t written[EXPLORE_NMI + 1], seen, lost, last;

static void put(void)
{
    uint64_t *record = ring_write(ring, WORDS * 8), number = ++written[explore_level()];

    if (!record)
        return;
    __builtin_memcpy(record, &number, 8);
    __builtin_memcpy(record + WORDS - 1, &number, 8);
    ring_commit(ring);
}

static void look_through(const struct ring_page *page, bool is_taken)
{
    struct page_event event;
    struct page_iter it;

    page_iter_init(&it, page);
    while (page_next(&it, &event)) {
        const uint64_t *record = event.data;

        explore_check(event.len == WORDS * 8, "a record has its length");
        explore_check(record[0] == record[WORDS - 1], "a record is whole");
        if (!is_taken)
            continue;
        explore_check(event.time > last, "records come in their order");
        last = event.time;
        seen++;
    }
}

static void start(void)
{
    ring = ring_new(2, true, &ops);
    spare = page_new();
}

static void writer(void)
{
    put();
    put();
}

static void look(void)
{
    struct ring_cursor at = ring->read;

    if (ring_read(ring, &at, spare, RING_LOOK)) {
        look_through(spare, false);
        explore_seen("a page is copied");
    }
}

static bool take(void)
{
    struct ring_page *page = ring_read(ring, &ring->read, spare, 0);

    if (!page)
        return false;
    spare = page;
    look_through(page, true);
    lost += ring->read.missed;
    return true;
}

static void reader(void)
{
    look();
    if (take())
        explore_seen("a page is taken");
}

static void end(void)
{
    while (take())
        continue;
    put();
    while (take())
        continue;
    explore_check(seen + lost == written[EXPLORE_THREAD] + written[EXPLORE_IRQ] +
                                     written[EXPLORE_NMI],
                  "each record is read once, or counted as lost");
    if (lost)
        explore_seen("a record is lost");
    page_free(spare);
    ring_free(ring);
    explore_check(!explore_blocks(), "all memory is freed");
}

const struct scenario scenario = {
    .start = start,
    .end = end,
    .actors = { { "writer", writer, 0, EXPLORE_THREAD },
                { "irq", put, 0, EXPLORE_IRQ },
                { "nmi", put, 0, EXPLORE_NMI },
                { "reader", reader, 1, EXPLORE_THREAD } },
    .outcomes = { "a page is copied", "a page is taken", "a record is lost" },
};
