/* test_page.c - tests that read pages of the ring: correct pages, and pages of random
 * bytes.
 */
#include "probes/trace/ring/page.h"
#include "tests/unit/unit.h"

static struct ring_page page;

/* word - append @value to the data of the page. */
static void word(uint32_t value)
{
    memcpy(page.data + page.commit, &value, 4);
    page.commit += 4;
}

static void start(void)
{
    memset(&page, 0xa5, sizeof(page));
    page.time = 100;
    page.commit = 0;
}

/* three_events - fill the page with events at the times 103, 110 and, behind entries that
 * are no events, 2^27 + 112.
 */
static void three_events(void)
{
    start();
    word(3 << 5 | 1);
    word(11);
    word(7 << 5 | 0);
    word(12);
    word(22);
    word(22);
    word(1 << 5 | RING_TYPE_PADDING);
    word(12);
    word(0);
    word(0);
    word(2 << 5 | RING_TYPE_EXTEND);
    word(1);
    word(0 << 5 | 1);
    word(33);
}

UNIT_TEST(events_have_their_times)
{
    static const uint64_t times[] = { 103, 110, (UINT64_C(1) << 27) + 112 };
    static const uint32_t lens[] = { 4, 8, 4 }, values[] = { 11, 22, 33 };
    struct page_event event;
    struct page_iter it;

    three_events();
    page_iter_init(&it, &page);
    for (int i = 0; i < 3; i++) {
        uint32_t value;

        CHECK(page_next(&it, &event));
        memcpy(&value, event.data, 4);
        CHECK_EQ(event.time, times[i]);
        CHECK_EQ(event.len, lens[i]);
        CHECK_EQ(value, values[i]);
    }
    CHECK(!page_next(&it, &event));
    CHECK_EQ(page_events(&page), 3);
}

UNIT_TEST(a_stamp_is_the_time_itself)
{
    struct page_event event;
    struct page_iter it;

    start();
    word(5 << 5 | RING_TYPE_STAMP);
    word(2);
    word(1 << 5 | 1);
    word(0);
    page_iter_init(&it, &page);
    CHECK(page_next(&it, &event));
    CHECK_EQ(event.time, (UINT64_C(2) << 27) + 6);
}

UNIT_TEST(padding_without_a_delta_goes_to_the_end)
{
    three_events();
    page.data[24] = RING_TYPE_PADDING;
    page.data[25] = 0;
    CHECK_EQ(page_events(&page), 2);
}

UNIT_TEST(what_was_read_is_cut_off)
{
    struct page_event event;
    struct page_iter it;

    three_events();
    page_cut(&page, 24);
    CHECK_EQ(page.time, 110);
    CHECK_EQ(page.commit, 32);
    page_iter_init(&it, &page);
    CHECK(page_next(&it, &event));
    CHECK_EQ(event.time, (UINT64_C(1) << 27) + 112);
    three_events();
    page_cut(&page, 0);
    CHECK_EQ(page_events(&page), 3);
    CHECK_EQ(page.time, 100);
}

UNIT_TEST(a_page_says_how_many_were_lost)
{
    three_events();
    CHECK_EQ(page_missed(&page), 0);
    page_set_missed(&page, 17);
    CHECK_EQ(page.commit, 56 | RING_MISSED | RING_MISSED_COUNT);
    CHECK_BYTES(page.data + 56, "11 00 00 00 00 00 00 00");
    CHECK_EQ(page_missed(&page), 17);
    CHECK_EQ(page_events(&page), 3);
    page_set_missed(&page, 0);
    CHECK_EQ(page.commit, 56);
    page.commit = RING_DATA_LEN - 4;
    page_set_missed(&page, 17);
    CHECK_EQ(page.commit, (RING_DATA_LEN - 4) | RING_MISSED);
    CHECK_EQ(page_missed(&page), PAGE_MISSED_SOME);
}

/* Whatever the data of a page is, nothing behind it is read. */
UNIT_TEST(any_bytes_come_to_an_end)
{
    for (int round = 0; round < 20000; round++) {
        struct ring_page *p = malloc(sizeof(*p));
        struct page_event event;
        struct page_iter it;
        uint32_t before = 0;

        for (size_t i = 0; i < sizeof(*p) / 8; i++)
            ((uint64_t *)p)[i] = unit_random() & unit_random() & unit_random();
        p->commit = unit_random() % 5000;
        page_iter_init(&it, p);
        while (page_next(&it, &event)) {
            CHECK(event.end > before && event.end <= it.end);
            CHECK((const uint8_t *)event.data + event.len == p->data + event.end);
            before = event.end;
        }
        page_cut(p, before);
        free(p);
    }
}

UNIT_TESTS()
