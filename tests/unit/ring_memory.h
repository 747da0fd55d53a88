/* ring_memory.h - gives memory of the C library to a ring. */
#pragma once

#include "probes/trace/ring/ring.h"

#include <stdlib.h>
#include <string.h>

static inline struct ring_page *host_page_new(void)
{
    return aligned_alloc(RING_PAGE_LEN, RING_PAGE_LEN);
}

static inline void host_page_free(struct ring_page *page)
{
    free(page);
}

static inline void *host_block_new(size_t len)
{
    void *p = aligned_alloc(64, (len + 63) / 64 * 64);

    return memset(p, 0, len);
}
