/* page.h - reads the events on a page of the ring, one after the other. Pure. */
#pragma once

#include "probes/trace/ring/ring.h"

struct page_event {
    uint64_t time;    /* ns */
    const void *data; /* the record, on the page */
    uint32_t len;     /* bytes, rounded up to 4 */
    uint32_t end;     /* offset in the page's data where the event ends */
};

/* A position on a page. */
struct page_iter {
    const struct ring_page *page;
    uint32_t off;  /* of the next header */
    uint32_t end;  /* bytes of data */
    uint64_t time; /* of the last event */
};

/* page_iter_init - go before the first event of @page, which belongs to the reader. */
void page_iter_init(struct page_iter *it, const struct ring_page *page);

/* page_next - read the next event.
 * Return: true; false at the end, and at bytes that are not an event of this layout.
 */
bool page_next(struct page_iter *it, struct page_event *event);

/* page_events - count the events of @page. */
uint32_t page_events(const struct ring_page *page);

/* page_cut - remove the events before offset @off, which is a page_event.end, or 0. The
 * remaining events keep their times.
 */
void page_cut(struct ring_page *page, uint32_t off);

/* page_set_missed - note on @page that @missed events were lost before it. If the page
 * has no room for the number, only the fact is noted. @missed may be 0.
 */
void page_set_missed(struct ring_page *page, uint64_t missed);

/* page_missed - return how many events were lost before @page; PAGE_MISSED_SOME: there
 * were such events, but the page has no number.
 */
uint64_t page_missed(const struct ring_page *page);
#define PAGE_MISSED_SOME (~UINT64_C(0))
