/* heap_core.c - blocks, spans and size classes, and the checks that find damage.
 *
 * Pure. While a block is free, its bytes hold HEAP_FREED, and its trailer holds the
 * number of the next free block. So a write to a freed block is found later, and does not
 * damage the list: the list does not use the bytes of the block.
 */
#include "kernel/mm/heap_core.h"

#include "kernel/base/bits.h"

#include <string.h>

#define SPAN_SMALL 0x5ba11b10u
#define SPAN_LARGE 0x1a59eb10u
#define SPAN_GONE 0x90e5ba70u

#define TAG_USED 0xa110u
#define TAG_FREE 0xf4eeu

#define NO_BLOCK 0xffffu
#define REDZONE_MIN 4u
#define SPAN_HEADER 64u

struct span {
    uint32_t magic;
    uint16_t class_idx;  /* small blocks only, as the next three */
    uint16_t free_count; /* blocks that are free */
    uint16_t first_free; /* block number, or NO_BLOCK */
    struct list link;    /* in the list of its class, unless full or spare */
    size_t len;          /* large: bytes asked for */
    size_t span_len;     /* large: bytes of the span */
};

struct trailer {
    uint16_t len; /* used: bytes asked for; free: number of the next free block */
    uint16_t tag;
};

_Static_assert(sizeof(struct span) <= SPAN_HEADER, "blocks begin behind the header");
_Static_assert(sizeof(struct trailer) == 4, "a small block costs 8 bytes");

/* Up to 1280, strides grow in steps of 16, then of a seventh to a quarter. The larger
 * strides divide a span without a rest, or nearly so.
 */
static const uint16_t strides[HEAP_CLASSES] = {
    32,  48,  64,  80,  96,  112,  128,  160,  192,  224,  256,  320,  384,
    448, 512, 640, 768, 896, 1024, 1280, 1632, 2032, 2720, 4080, 8160,
};

_Static_assert(HEAP_SMALL_MAX + REDZONE_MIN + sizeof(struct trailer) == 8160,
               "the largest small block fills the largest class");

void heap_core_init(struct heap *h, const struct heap_source *source)
{
    uint8_t c = 0;

    *h = (struct heap){ .source = source };
    for (unsigned i = 0; i < HEAP_CLASSES; i++) {
        h->classes[i].stride = strides[i];
        h->classes[i].count = (uint16_t)((HEAP_SPAN_LEN - SPAN_HEADER) / strides[i]);
        list_init(&h->classes[i].spans);
    }
    for (unsigned i = 0; i <= strides[HEAP_CLASSES - 1] / 16; i++) {
        while (strides[c] < i * 16)
            c++;
        h->class_of[i] = c;
    }
}

static struct span *span_of(const void *p)
{
    return (struct span *)align_down((uintptr_t)p, HEAP_SPAN_LEN);
}

static uint8_t *block_at(const struct heap_class *class, struct span *span, unsigned i)
{
    return (uint8_t *)span + SPAN_HEADER + i * class->stride;
}

static struct trailer *trailer_of(const struct heap_class *class, uint8_t *block)
{
    return (struct trailer *)(block + class->stride - sizeof(struct trailer));
}

static uint64_t heap_word(const uint8_t *p)
{
    uint64_t word;

    __builtin_memcpy(&word, p, sizeof(word));
    return word;
}

/* The first of @len bytes from @p on that is not @value; NULL if all bytes are @value. The
 * code of the heap may carry probes, and each of its instructions traps then: so the loop
 * over most of the bytes takes four words at a time.
 */
static const uint8_t *find_other_byte(const uint8_t *p, uint8_t value, size_t len)
{
    const uint64_t same = value * UINT64_C(0x0101010101010101);
    const uint8_t *end = p + len;

    while (end - p >= 32 && !((heap_word(p) ^ same) | (heap_word(p + 8) ^ same) |
                              (heap_word(p + 16) ^ same) | (heap_word(p + 24) ^ same)))
        p += 32;
    while (end - p >= 8 && heap_word(p) == same)
        p += 8;
    while (p < end && *p == value)
        p++;
    return p < end ? p : NULL;
}

/* ---- spans of small blocks ---- */

static void block_free_fill(const struct heap_class *class, uint8_t *block, unsigned next)
{
    memset(block, HEAP_FREED, class->stride - sizeof(struct trailer));
    *trailer_of(class, block) = (struct trailer){ (uint16_t)next, TAG_FREE };
}

static void block_free_check(const struct heap *h, const struct heap_class *class,
                             uint8_t *block)
{
    struct trailer *trailer = trailer_of(class, block);
    const uint8_t *at =
        find_other_byte(block, HEAP_FREED, (size_t)((uint8_t *)trailer - block));

    if (at)
        h->source->damaged("a free block was written to", block, at);
    if (trailer->tag != TAG_FREE)
        h->source->damaged("the end of a free block was overwritten", block, trailer);
}

static struct span *span_new(struct heap *h, unsigned class_idx)
{
    const struct heap_class *class = &h->classes[class_idx];
    struct span *span = h->source->get(HEAP_SPAN_LEN);

    if (!span)
        return NULL;
    *span = (struct span){ .magic = SPAN_SMALL,
                           .class_idx = (uint16_t)class_idx,
                           .free_count = class->count };
    list_init(&span->link);
    for (unsigned i = 0; i < class->count; i++)
        block_free_fill(class, block_at(class, span, i),
                        i + 1 < class->count ? i + 1 : NO_BLOCK);
    return span;
}

/* Gives @span back to the source. First checks its blocks, which are all free: else a
 * write to a freed block in it would never be found.
 */
static void span_release(struct heap *h, struct heap_class *class, struct span *span)
{
    for (unsigned i = 0; i < class->count; i++)
        block_free_check(h, class, block_at(class, span, i));
    span->magic = SPAN_GONE;
    h->source->put(span, HEAP_SPAN_LEN);
}

/* Finds or makes a span with a free block; it is in the list of its class then. */
static struct span *span_with_room(struct heap *h, unsigned class_idx)
{
    struct heap_class *class = &h->classes[class_idx];
    struct span *span = class->spare;

    if (!list_empty(&class->spans))
        return list_first(&class->spans, struct span, link);
    class->spare = NULL;
    if (!span)
        span = span_new(h, class_idx);
    if (span)
        list_insert(&class->spans, &span->link);
    return span;
}

static void *small_alloc(struct heap *h, size_t len)
{
    unsigned class_idx =
        h->class_of[(len + REDZONE_MIN + sizeof(struct trailer) + 15) / 16];
    const struct heap_class *class = &h->classes[class_idx];
    struct span *span = span_with_room(h, class_idx);
    struct trailer *trailer;
    uint8_t *block;

    if (!span)
        return NULL;
    block = block_at(class, span, span->first_free);
    block_free_check(h, class, block);
    trailer = trailer_of(class, block);
    span->first_free = trailer->len;
    span->free_count--;
    if (span->free_count == 0)
        list_remove(&span->link);
    memset(block, HEAP_FRESH, len);
    memset(block + len, HEAP_REDZONE, (size_t)((uint8_t *)trailer - (block + len)));
    *trailer = (struct trailer){ (uint16_t)len, TAG_USED };
    return block;
}

/* Reports a write past the end of the block at @p, which has changed the red zone. */
static void redzone_check(const struct heap *h, const void *p, size_t len,
                          const void *end)
{
    const uint8_t *start = (const uint8_t *)p + len;
    const uint8_t *at =
        find_other_byte(start, HEAP_REDZONE, (size_t)((uint8_t *)end - start));

    if (at)
        h->source->damaged("written over its end", p, at);
}

/* Checks the block at @p. Returns its number in @span. */
static unsigned small_block_check(const struct heap *h, struct span *span, const void *p)
{
    const struct heap_class *class = &h->classes[span->class_idx];
    size_t off = (size_t)((uintptr_t)p - (uintptr_t)span) - SPAN_HEADER;
    unsigned i = (unsigned)(off / class->stride);
    struct trailer *trailer;

    if (off % class->stride != 0 || i >= class->count)
        h->source->damaged("not the start of a block", p, p);
    trailer = trailer_of(class, block_at(class, span, i));
    if (trailer->tag == TAG_FREE)
        h->source->damaged("used after it was freed, or freed twice", p, p);
    if (trailer->tag != TAG_USED ||
        trailer->len > class->stride - REDZONE_MIN - sizeof(*trailer))
        h->source->damaged("written over its end", p, trailer);
    redzone_check(h, p, trailer->len, trailer);
    return i;
}

static void small_free(struct heap *h, struct span *span, void *p)
{
    struct heap_class *class = &h->classes[span->class_idx];
    unsigned i = small_block_check(h, span, p);

    h->in_use -= trailer_of(class, p)->len;
    block_free_fill(class, p, span->first_free);
    span->first_free = (uint16_t)i;
    span->free_count++;
    if (span->free_count == 1)
        list_insert(&class->spans, &span->link);
    if (span->free_count < class->count)
        return;
    list_remove(&span->link);
    if (class->spare)
        span_release(h, class, span);
    else
        class->spare = span;
}

/* ---- large blocks ---- */

static void *large_alloc(struct heap *h, size_t len)
{
    size_t span_len = align_up(SPAN_HEADER + len + REDZONE_MIN, 4 * KiB);
    struct span *span = span_len > len ? h->source->get(span_len) : NULL;
    uint8_t *block = (uint8_t *)span + SPAN_HEADER;

    if (!span)
        return NULL;
    *span = (struct span){ .magic = SPAN_LARGE, .len = len, .span_len = span_len };
    memset(block, HEAP_FRESH, len);
    memset(block + len, HEAP_REDZONE, span_len - SPAN_HEADER - len);
    return block;
}

static void large_check(const struct heap *h, struct span *span, const void *p)
{
    if ((uintptr_t)p != (uintptr_t)span + SPAN_HEADER)
        h->source->damaged("not the start of a block", p, p);
    redzone_check(h, p, span->len, (const uint8_t *)span + span->span_len);
}

static void large_free(struct heap *h, struct span *span, void *p)
{
    large_check(h, span, p);
    h->in_use -= span->len;
    memset(p, HEAP_FREED, span->len);
    span->magic = SPAN_GONE;
    h->source->put(span, span->span_len);
}

/* ---- any block ---- */

void *heap_core_alloc(struct heap *h, size_t len)
{
    void *block = len <= HEAP_SMALL_MAX ? small_alloc(h, len) : large_alloc(h, len);

    if (!block)
        return NULL;
    h->in_use += len;
    h->blocks++;
    return block;
}

/* The span of the block at @p. Reports an address that is no block. */
static struct span *span_checked(const struct heap *h, const void *p)
{
    struct span *span = span_of(p);

    if (span->magic == SPAN_GONE)
        h->source->damaged("used after it was freed, or freed twice", p, p);
    if (span->magic != SPAN_SMALL && span->magic != SPAN_LARGE)
        h->source->damaged("no block of the heap", p, p);
    return span;
}

void heap_core_free(struct heap *h, void *p)
{
    struct span *span = span_checked(h, p);

    if (span->magic == SPAN_SMALL)
        small_free(h, span, p);
    else
        large_free(h, span, p);
    h->blocks--;
}

size_t heap_core_len(const struct heap *h, const void *p)
{
    struct span *span = span_checked(h, p);
    const struct heap_class *class = &h->classes[span->class_idx];

    if (span->magic == SPAN_LARGE) {
        large_check(h, span, p);
        return span->len;
    }
    return trailer_of(class, block_at(class, span, small_block_check(h, span, p)))->len;
}
