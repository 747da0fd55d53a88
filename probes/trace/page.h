/* page.h - what is on a page of the ring: its events, one after the other. Pure. */
#pragma once

#include "probes/trace/ring.h"

struct page_event {
    uint64_t time;    /* ns */
    const void *data; /* the record, on the page */
    uint32_t len;     /* bytes, rounded up to 4 */
    uint32_t end;     /* offset in the page's data of what comes behind it */
};

/* Where on a page one is. */
struct page_iter {
    const struct ring_page *page;
    uint32_t off;  /* of the next header */
    uint32_t end;  /* bytes of data */
    uint64_t time; /* of the last event */
};

/* page_iter_init - before the first event of @page, which belongs to the reader. */
void page_iter_init(struct page_iter *it, const struct ring_page *page);

/* page_next - the next event.
 * Return: true; false at the end, and at anything that is no event of that layout.
 */
bool page_next(struct page_iter *it, struct page_event *event);

/* page_events - how many events @page has. */
uint32_t page_events(const struct ring_page *page);

/* page_cut - remove the events before offset @off, which is a page_event.end, or 0. Those
 * that stay keep their times.
 */
void page_cut(struct ring_page *page, uint32_t off);

/* page_set_missed - say in the page's commit that @missed events were lost before it, and
 * how many where there is room for that; 0: none.
 */
void page_set_missed(struct ring_page *page, uint64_t missed);

/* page_missed - how many events were lost before @page; PAGE_MISSED_SOME: it does not say. */
uint64_t page_missed(const struct ring_page *page);
#define PAGE_MISSED_SOME (~UINT64_C(0))
