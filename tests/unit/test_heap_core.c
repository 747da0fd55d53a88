/* test_heap_core.c - tests of the heap: the content of blocks, the checks of blocks, and
 * the memory that a block takes. If the heap finds damage, the kernel panics; here
 * longjmp() ends the call.
 */
#include "kernel/mm/heap_core.h"
#include "tests/unit/unit.h"

#include <setjmp.h>

#define SPANS_MAX 2000
#define KEPT_MAX 64

static struct heap heap;
static void *spans[SPANS_MAX]; /* spans that the heap has got from the source */
static size_t spans_len;       /* bytes of these spans */
static void *kept[KEPT_MAX];   /* spans that the heap has given back, not freed yet */
static long spans_allowed;     /* calls of span_get() that succeed; < 0: all */
static jmp_buf on_damage;
static const char *damage;
static const void *damage_at;

static void **span_slot(const void *span)
{
    for (size_t i = 0; i < SPANS_MAX; i++) {
        if (spans[i] == span)
            return &spans[i];
    }
    abort();
}

static void *span_get(size_t len)
{
    size_t rounded = (len + HEAP_SPAN_LEN - 1) & -(size_t)HEAP_SPAN_LEN;
    void *span;

    if (spans_allowed == 0)
        return NULL;
    spans_allowed--;
    span = aligned_alloc(HEAP_SPAN_LEN, rounded);
    memset(span, 0, len);
    *span_slot(NULL) = span;
    spans_len += len;
    return span;
}

/* span_put - take back @span, but free it later. The heap looks at the header of a span
 * that it has given back, to find blocks that are freed twice; in the kernel frames stay
 * readable.
 */
static void span_put(void *span, size_t len)
{
    static unsigned next;

    *span_slot(span) = NULL;
    spans_len -= len;
    free(kept[next]);
    kept[next] = span;
    next = (next + 1) % KEPT_MAX;
}

static void spans_drop(void)
{
    for (size_t i = 0; i < SPANS_MAX; i++) {
        free(spans[i]);
        spans[i] = NULL;
    }
    for (size_t i = 0; i < KEPT_MAX; i++) {
        free(kept[i]);
        kept[i] = NULL;
    }
    spans_len = 0;
}

static void damaged(const char *what, const void *block UNUSED, const void *at)
{
    damage = what;
    damage_at = at;
    longjmp(on_damage, 1);
}

static const struct heap_source source = { span_get, span_put, damaged };

static void fresh_heap(void)
{
    static bool registered;

    if (!registered)
        atexit(spans_drop);
    registered = true;
    spans_drop();
    heap_core_init(&heap, &source);
    spans_allowed = -1;
}

/* free_says, alloc_says - return the damage that the heap finds when @p is freed, or when
 * a block of @len bytes is allocated; "nothing": it finds none.
 */
static const char *free_says(void *p)
{
    damage = "nothing";
    if (setjmp(on_damage) == 0)
        heap_core_free(&heap, p);
    return damage;
}

static const char *alloc_says(size_t len)
{
    damage = "nothing";
    if (setjmp(on_damage) == 0)
        heap_core_alloc(&heap, len);
    return damage;
}

static bool holds(const uint8_t *p, uint8_t value, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i] != value)
            return false;
    }
    return true;
}

UNIT_TEST(fresh_block_holds_a5_and_a_freed_one_6b)
{
    static const size_t lens[] = { 0, 1, 24, 25, 100, 4000, 8152 };

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        uint8_t *p = heap_core_alloc(&heap, lens[i]);

        CHECK(holds(p, 0xa5, lens[i]));
        CHECK_EQ((uintptr_t)p % 16, 0);
        CHECK_EQ(heap_core_len(&heap, p), lens[i]);
        heap_core_free(&heap, p);
        CHECK(holds(p, 0x6b, lens[i]));
    }
    CHECK_EQ(heap.in_use, 0);
    CHECK_EQ(heap.blocks, 0);
}

UNIT_TEST(every_length_has_its_bytes_to_itself)
{
    for (size_t len = 0; len < 20000; len += len < 9000 ? 1 : 997) {
        uint8_t *a = heap_core_alloc(&heap, len);
        uint8_t *b = heap_core_alloc(&heap, len);

        memset(a, 1, len);
        memset(b, 2, len);
        CHECK(holds(a, 1, len) && holds(b, 2, len));
        heap_core_free(&heap, a);
        heap_core_free(&heap, b);
    }
    CHECK_EQ(heap.blocks, 0);
}

UNIT_TEST(double_free_is_found)
{
    void *small, *other, *large;

    fresh_heap();
    small = heap_core_alloc(&heap, 40);
    other = heap_core_alloc(&heap, 40);
    large = heap_core_alloc(&heap, 40000);
    CHECK_STR(free_says(small), "nothing");
    CHECK_STR(free_says(small), "used after it was freed, or freed twice");
    CHECK_STR(free_says(other), "nothing");
    CHECK_STR(free_says(other), "used after it was freed, or freed twice");
    CHECK_STR(free_says(large), "nothing");
    CHECK_STR(free_says(large), "used after it was freed, or freed twice");
}

UNIT_TEST(a_write_one_byte_behind_the_end_is_found)
{
    static const size_t lens[] = { 0, 1, 23, 24, 25, 100, 8152, 8153, 12220, 100000 };

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        uint8_t *p = heap_core_alloc(&heap, lens[i]);

        p[lens[i]] = 0;
        CHECK_STR(free_says(p), "written over its end");
        CHECK(damage_at == p + lens[i]);
    }
}

UNIT_TEST(a_long_overflow_that_hits_the_trailer_is_found)
{
    uint8_t *p = heap_core_alloc(&heap, 24);

    memset(p, 0xbb, 32);
    CHECK_STR(free_says(p), "written over its end");
}

/* The last byte that is looked at is in front of the trailer: 4 bytes of red zone or more lie
 * between it and the block's own bytes.
 */
UNIT_TEST(a_write_after_free_is_found_on_reuse)
{
    static const size_t lens[] = { 1, 24, 60, 61, 100, 184, 1000 };

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        uint8_t *p = heap_core_alloc(&heap, lens[i]);

        heap_core_free(&heap, p);
        for (size_t at = 0; at < lens[i] + 4; at++) {
            p[at] ^= 1;
            CHECK_STR(alloc_says(lens[i]), "a free block was written to");
            CHECK(damage_at == p + at);
            p[at] ^= 1;
        }
        CHECK_STR(alloc_says(lens[i]), "nothing");
    }
}

/* The heap keeps one free span of each size class, and gives all other free spans back to
 * where it got its memory. Before it gives a span back, it checks all blocks of the span.
 * The test damages a block of the first span, and frees the blocks from the last one on. So
 * the heap already keeps another span when the first one becomes free.
 */
UNIT_TEST(a_write_after_free_is_found_when_its_span_goes)
{
    enum { COUNT = 400 };
    uint8_t *p[COUNT];
    const char *said = "nothing";

    for (int i = 0; i < COUNT; i++)
        p[i] = heap_core_alloc(&heap, 60);
    heap_core_free(&heap, p[0]);
    p[0][5] = 0;
    for (int i = 1; i < COUNT && !strcmp(said, "nothing"); i++)
        said = free_says(p[COUNT - i]);
    CHECK_STR(said, "a free block was written to");
}

UNIT_TEST(what_is_no_block_is_refused)
{
    uint8_t *p = heap_core_alloc(&heap, 100), *large, *foreign;

    large = heap_core_alloc(&heap, 20000);
    foreign = aligned_alloc(HEAP_SPAN_LEN, HEAP_SPAN_LEN);
    memset(foreign, 0, HEAP_SPAN_LEN);
    CHECK_STR(free_says(p + 8), "not the start of a block");
    CHECK_STR(free_says(p - 16), "not the start of a block");
    CHECK_STR(free_says(large + 64), "not the start of a block");
    CHECK_STR(free_says(foreign + 64), "no block of the heap");
    free(foreign);
}

UNIT_TEST(without_memory_there_is_no_block)
{
    spans_allowed = 0;
    CHECK(heap_core_alloc(&heap, 10) == NULL);
    CHECK(heap_core_alloc(&heap, 100000) == NULL);
    CHECK(heap_core_alloc(&heap, SIZE_MAX - 10) == NULL);
    CHECK_EQ(heap.in_use, 0);
    CHECK_EQ(heap.blocks, 0);
    spans_allowed = -1;
    CHECK(heap_core_alloc(&heap, 10) != NULL);
    CHECK(heap_core_alloc(&heap, SIZE_MAX - 10) == NULL);
}

UNIT_TEST(all_spans_but_one_per_class_go_back)
{
    enum { COUNT = 5000 };
    static void *p[COUNT];

    for (int i = 0; i < COUNT; i++)
        p[i] = heap_core_alloc(&heap, 200);
    for (int i = 0; i < COUNT; i++)
        heap_core_free(&heap, p[(i * 7) % COUNT]);
    CHECK_EQ(spans_len, HEAP_SPAN_LEN);
    heap_core_free(&heap, heap_core_alloc(&heap, 200));
    CHECK_EQ(spans_len, HEAP_SPAN_LEN);
}

/* ---- at random, each block filled with a random byte ---- */

#define SLOTS 300

struct owned {
    uint8_t *p;
    size_t len;
    uint8_t byte;
};

static void owned_toggle(struct owned *o)
{
    if (o->p) {
        CHECK(holds(o->p, o->byte, o->len));
        heap_core_free(&heap, o->p);
        o->p = NULL;
        return;
    }
    o->len = unit_random() % (unit_random() % 8 ? 300 : 30000);
    o->byte = (uint8_t)unit_random();
    o->p = heap_core_alloc(&heap, o->len);
    memset(o->p, o->byte, o->len);
}

UNIT_TEST(blocks_keep_their_content)
{
    static struct owned owned[SLOTS];
    size_t in_use = 0, blocks = 0;

    for (int i = 0; i < 50000; i++)
        owned_toggle(&owned[unit_random() % SLOTS]);
    for (int i = 0; i < SLOTS; i++) {
        in_use += owned[i].p ? owned[i].len : 0;
        blocks += owned[i].p != NULL;
    }
    CHECK_EQ(heap.in_use, in_use);
    CHECK_EQ(heap.blocks, blocks);
    for (int i = 0; i < SLOTS; i++) {
        if (owned[i].p)
            owned_toggle(&owned[i]);
    }
    CHECK_EQ(heap.in_use, 0);
}

UNIT_TESTS_BETWEEN(fresh_heap, NULL)
