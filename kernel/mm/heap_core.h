/* heap_core.h - manages the blocks of the heap, without locks. Pure; tested on the host.
 *
 * Memory comes in spans, aligned to 16 KiB. A span holds either blocks of one size class
 * or one large block; its header says which, and a block's span is found by rounding its
 * address down.
 *
 *   span of small blocks:  | header 64 | block | block | ...          | (rest)
 *   block:                 | len bytes | red zone, 4 and more | trailer 4 |
 *   span of a large block: | header 64 | len bytes | red zone, to the end |
 *
 * So a small block costs 8 bytes more than its length, and what rounding adds. Each
 * operation works on one block, one span and the ends of lists: its time does not depend
 * on the number of blocks.
 */
#pragma once

#include "kernel/base/list.h"

#include <stddef.h>
#include <stdint.h>

#define HEAP_SPAN_LEN 16384u
#define HEAP_SMALL_MAX 8152u /* bytes; more becomes a large block */
#define HEAP_CLASSES 25u

#define HEAP_FRESH 0xa5   /* what a new block holds */
#define HEAP_FREED 0x6b   /* what a freed block holds */
#define HEAP_REDZONE 0xbb /* what follows a block's bytes */

/* Where spans come from, and where damage is reported. */
struct heap_source {
    /* @len bytes, a multiple of 4 KiB, aligned to HEAP_SPAN_LEN; NULL without memory */
    void *(*get)(size_t len);
    void (*put)(void *span, size_t len);
    /* @at: the first byte found wrong; does not return */
    void (*damaged)(const char *what, const void *block, const void *at);
};

struct heap_class {
    uint16_t stride;    /* bytes from block to block */
    uint16_t count;     /* blocks in a span */
    struct list spans;  /* with free blocks and used blocks */
    struct span *spare; /* a span with all blocks free; or NULL. It is kept so that a
                         * single block, allocated and freed again and again, does not
                         * get and put a span each time */
};

struct heap {
    const struct heap_source *source;
    size_t in_use; /* bytes asked for */
    size_t blocks;
    struct heap_class classes[HEAP_CLASSES];
    uint8_t class_of[HEAP_SPAN_LEN / 2 / 16]; /* index: bytes needed / 16, rounded up */
};

void heap_core_init(struct heap *h, const struct heap_source *source);

/* heap_core_alloc - allocate a block of @len bytes, filled with HEAP_FRESH, aligned to
 * 16; NULL without memory.
 */
void *heap_core_alloc(struct heap *h, size_t len);

/* heap_core_free - free @p, from heap_core_alloc(). */
void heap_core_free(struct heap *h, void *p);

/* heap_core_len - get the length with which the block @p was allocated. */
size_t heap_core_len(const struct heap *h, const void *p);
