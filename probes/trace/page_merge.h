/* page_merge.h - the records of several rings as one, by time. */
#pragma once

#include "probes/trace/page.h"

/* One ring's place in it; for page_merge.c only. */
struct merge_ring {
    struct ring *ring;
    struct ring_cursor look; /* of MERGE_LOOK */
    struct ring_page *page;  /* the caller's; exchanged for others */
    struct page_iter it;
    struct page_event event; /* the next one */
    uint64_t missed;         /* lost right before it */
    uint64_t pages_left;     /* so that an end comes, however fast writers are */
    bool has_event;
};

enum merge_how { MERGE_LOOK, MERGE_TAKE };

struct merge {
    struct merge_ring *rings;
    unsigned count;
    enum merge_how how;
    struct merge_ring *given; /* whose event the caller has */
};

struct merged {
    struct page_event event;
    unsigned ring;   /* which */
    uint64_t missed; /* lost there right before it */
};

/* merge_init - before the first record.
 * @rings: @count of them with .ring and .page set, the latter from ring_ops.page_new(); a
 * NULL
 *         ring has no records
 * @how:   MERGE_TAKE: pages are taken out, the open ones as far as they are complete
 *
 * Behind it each .page is the caller's again, maybe another one.
 * Context: as ring_read().
 */
void merge_init(struct merge *m, struct merge_ring *rings, unsigned count,
                enum merge_how how);

/* merge_next - the next record; of two with the same time that of the lower ring first.
 * What is written after merge_init() may be there or not.
 * @out: valid until the next call
 *
 * Return: true; false at the end.
 */
bool merge_next(struct merge *m, struct merged *out);

/* merge_lost_behind - after the last record: events that were lost behind those of @ring. */
uint64_t merge_lost_behind(const struct merge *m, unsigned ring);
