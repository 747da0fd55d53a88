/* ring_ops.h - what a ring asks of its surroundings, for scenarios with a ring. */
#pragma once

#include "probes/trace/ring/page.h"
#include "probes/trace/ring/ring.h"
#include "tests/explore/explore.h"

static uint64_t time;

static uint64_t clock(void)
{
    explore_point();
    return ++time;
}

static struct ring_page *page_new(void)
{
    return explore_alloc(RING_PAGE_LEN);
}

static void page_free(struct ring_page *page)
{
    explore_free(page);
}

static const struct ring_ops ops = { clock, page_new, page_free, explore_alloc,
                                     explore_free };
