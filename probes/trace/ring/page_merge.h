/* page_merge.h - merges the records of several rings into one sequence, by time. */
#pragma once

#include "probes/trace/ring/page.h"

/* The position in one ring. The caller sets ring and page, page_merge.c the rest. */
struct merge_ring {
    struct ring *ring;
    struct ring_cursor look; /* MERGE_LOOK: used in place of ring->read */
    struct ring_page *page;  /* belongs to the caller; exchanged for other pages */
    struct page_iter it;
    struct page_event event; /* the next event */
    uint64_t missed;         /* events that were lost right before it */
    uint64_t pages_left; /* a bound: writers may fill pages as fast as they are read */
    bool has_event;
};

/* Leave the pages in the rings, or take them out. */
enum merge_how { MERGE_LOOK, MERGE_TAKE };

struct merge {
    struct merge_ring *rings;
    unsigned count;
    enum merge_how how;
    struct merge_ring *given; /* the ring of the event that merge_next() returned last */
};

struct merged {
    struct page_event event;
    unsigned ring;   /* the index of its ring */
    uint64_t missed; /* events that were lost in that ring right before it */
};

/* merge_init - go before the first record.
 * @rings: @count of them with .ring and .page set, .page from ring_ops.page_new(). A ring
 *         that is NULL has no records.
 * @how:   MERGE_TAKE: take the pages out of the rings; an open page is read as far as it
 *         is complete
 *
 * After the merge the caller frees each .page, which may be another page than before.
 * Context: as ring_read().
 */
void merge_init(struct merge *m, struct merge_ring *rings, unsigned count,
                enum merge_how how);

/* merge_next - find the next record. Of two records with the same time, the record of the
 * lower ring comes first. Records that are written after merge_init() may be missing.
 * @out: valid until the next call
 *
 * Return: true; false at the end.
 */
bool merge_next(struct merge *m, struct merged *out);

/* merge_lost_behind - call it after the last record: return how many events were lost in
 * @ring after its last record.
 */
uint64_t merge_lost_behind(const struct merge *m, unsigned ring);
