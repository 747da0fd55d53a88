/* page_merge.c - merges the records of several rings into one sequence, by time. */
#include "probes/trace/ring/page_merge.h"

static bool merge_next_page(struct merge *m, struct merge_ring *r)
{
    struct ring_cursor *at = m->how == MERGE_TAKE ? &r->ring->read : &r->look;
    struct ring_page *page;

    if (!r->pages_left--)
        return false;
    page = ring_read(r->ring, at, r->page, m->how == MERGE_TAKE ? 0 : RING_LOOK);
    if (!page)
        return false;
    r->page = page;
    r->missed += at->missed;
    page_iter_init(&r->it, page);
    return true;
}

/* merge_advance - go to the next event of @r, on this page or on a later one. */
static void merge_advance(struct merge *m, struct merge_ring *r)
{
    while (r->has_event && !page_next(&r->it, &r->event))
        r->has_event = merge_next_page(m, r);
}

void merge_init(struct merge *m, struct merge_ring *rings, unsigned count,
                enum merge_how how)
{
    m->rings = rings;
    m->count = count;
    m->how = how;
    m->given = NULL;
    for (struct merge_ring *r = rings; r < rings + count; r++) {
        r->missed = 0;
        r->has_event = false;
        if (!r->ring)
            continue;
        r->look = r->ring->read;
        r->pages_left = r->ring->count + 1;
        r->has_event = merge_next_page(m, r);
        merge_advance(m, r);
    }
}

bool merge_next(struct merge *m, struct merged *out)
{
    struct merge_ring *first = NULL;

    if (m->given)
        merge_advance(m, m->given);
    m->given = NULL;
    for (struct merge_ring *r = m->rings; r < m->rings + m->count; r++)
        if (r->has_event && (!first || r->event.time < first->event.time))
            first = r;
    if (!first)
        return false;
    out->event = first->event;
    out->ring = (unsigned)(first - m->rings);
    out->missed = first->missed;
    first->missed = 0;
    m->given = first;
    return true;
}

uint64_t merge_lost_behind(const struct merge *m, unsigned ring)
{
    const struct merge_ring *r = &m->rings[ring];

    if (!r->ring)
        return 0;
    return r->missed +
           ring_lost_behind(r->ring, m->how == MERGE_TAKE ? &r->ring->read : &r->look);
}
