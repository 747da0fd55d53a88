/* page.c - reads and changes pages that a reader has taken from the ring. */
#include "probes/trace/ring/page.h"

#include <string.h>

void page_iter_init(struct page_iter *it, const struct ring_page *page)
{
    uint64_t len = page->commit & RING_COMMIT_MASK;

    it->page = page;
    it->off = 0;
    it->end = len < RING_DATA_LEN ? (uint32_t)len : RING_DATA_LEN;
    it->time = page->time;
}

static uint32_t page_word(const struct page_iter *it, uint32_t off)
{
    uint32_t word = 0;

    if (off + 4 <= it->end)
        memcpy(&word, it->page->data + off, 4);
    return word;
}

/* page_skip - tell how long a @header is that is not an event, and apply its time.
 * Return: the length; 0: it is the header of an event.
 */
static uint32_t page_skip(struct page_iter *it, uint32_t header)
{
    uint32_t next = page_word(it, it->off + 4), delta = header >> 5;

    switch (header & 31) {
    case RING_TYPE_PADDING:
        return delta ? next + 4 : it->end; /* with delta 0 it fills the rest */
    case RING_TYPE_EXTEND:
        it->time += delta + ((uint64_t)next << RING_DELTA_BITS);
        return 8;
    case RING_TYPE_STAMP:
        it->time = (it->time & ~((UINT64_C(1) << 59) - 1)) |
                   (delta + ((uint64_t)next << RING_DELTA_BITS));
        return 8;
    }
    return 0;
}

static bool event_at(struct page_iter *it, uint32_t header, struct page_event *event)
{
    uint32_t words = header & 31, head = 4;
    uint32_t len = words * 4;

    if (!words) {
        len = page_word(it, it->off + 4) - 4;
        head = 8;
    }
    if (len > it->end - it->off - head || len & 3)
        return false;
    it->time += header >> 5;
    event->time = it->time;
    event->data = it->page->data + it->off + head;
    event->len = len;
    event->end = it->off += head + len;
    return true;
}

bool page_next(struct page_iter *it, struct page_event *event)
{
    while (it->off + 8 <= it->end) {
        uint32_t header = page_word(it, it->off), len = page_skip(it, header);

        if (!len)
            return event_at(it, header, event);
        if (len > it->end - it->off)
            return false;
        it->off += len;
    }
    return false;
}

uint32_t page_events(const struct ring_page *page)
{
    struct page_event event;
    struct page_iter it;
    uint32_t count = 0;

    page_iter_init(&it, page);
    while (page_next(&it, &event))
        count++;
    return count;
}

void page_cut(struct ring_page *page, uint32_t off)
{
    struct page_event event;
    struct page_iter it;

    page_iter_init(&it, page);
    while (it.off < off && page_next(&it, &event))
        ;
    page->time = it.time;
    memmove(page->data, page->data + it.off, it.end - it.off);
    page->commit = it.end - it.off;
}

void page_set_missed(struct ring_page *page, uint64_t missed)
{
    uint64_t len = page->commit & RING_COMMIT_MASK;

    page->commit = len;
    if (!missed)
        return;
    page->commit |= RING_MISSED;
    if (len + sizeof(missed) > RING_DATA_LEN)
        return;
    memcpy(page->data + len, &missed, sizeof(missed));
    page->commit |= RING_MISSED_COUNT;
}

uint64_t page_missed(const struct ring_page *page)
{
    uint64_t len = page->commit & RING_COMMIT_MASK, missed;

    if (!(page->commit & RING_MISSED))
        return 0;
    if (!(page->commit & RING_MISSED_COUNT) || len + sizeof(missed) > RING_DATA_LEN)
        return PAGE_MISSED_SOME;
    memcpy(&missed, page->data + len, sizeof(missed));
    return missed;
}
