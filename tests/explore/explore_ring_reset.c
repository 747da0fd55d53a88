/* explore_ring_reset.c - a thread and an interrupt write while a reader on another CPU takes
 * pages, and makes all that was written count as read. The ring has room for all.
 */
#include "tests/explore/ring_ops.h"

#define LEN 2500 /* bytes: each record has a page of its own */

static struct ring *ring;
static struct ring_page *spare;
static uint64_t seen, passed;
static uint32_t written[EXPLORE_NMI + 1], complete;

static uint32_t all(void)
{
    return written[EXPLORE_THREAD] + written[EXPLORE_IRQ];
}

static void put(void)
{
    uint32_t *record = ring_write(ring, LEN);

    explore_check(record, "a ring with room takes each record");
    *record = 1;
    ring_commit(ring);
    written[explore_level()]++;
    if (!ring->depth) /* else the writer that this one has interrupted publishes it */
        complete = all();
}

static void start(void)
{
    ring = ring_new(5, false, &ops);
    spare = page_new();
}

static void writer(void)
{
    put();
    put();
}

static bool take(void)
{
    struct ring_page *page = ring_read(ring, &ring->read, spare, 0);

    if (!page)
        return false;
    spare = page;
    explore_check(!ring->read.missed, "nothing is lost");
    explore_check(*(uint32_t *)(page->data + 8) == 1, "a record is complete");
    seen++;
    return true;
}

static void reader(void)
{
    uint32_t before;

    if (take())
        explore_seen("a page is taken");
    before = complete;
    spare = ring_reset(ring, spare);
    passed = ring->read.events - seen;
    explore_check(seen + passed >= before, "what was written before counts as read");
}

static void end(void)
{
    while (take())
        explore_seen("a record comes after the reset");
    explore_check(seen + passed == all(), "each record is read or passed");
    page_free(spare);
    ring_free(ring);
    explore_check(!explore_blocks(), "all memory is freed");
}

const struct scenario scenario = {
    .start = start,
    .end = end,
    .actors = { { "writer", writer, 0, EXPLORE_THREAD },
                { "irq", put, 0, EXPLORE_IRQ },
                { "reader", reader, 1, EXPLORE_THREAD } },
    .outcomes = { "a page is taken", "a record comes after the reset" },
};
