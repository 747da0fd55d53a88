/* heap.c - kmalloc(): heap_core.c under a lock, with frames as memory.
 *
 * Large blocks are runs of frames in the direct map, not mappings of their own: freeing
 * them needs no shootdown, so kfree() is allowed with interrupts off.
 */
#include "kernel/mm/heap.h"

#include "kernel/debug/marker.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap_core.h"
#include "kernel/sync/spinlock.h"

#include <string.h>

static void *span_get(size_t len)
{
    uint64_t phys = frame_alloc_run_aligned(len / PAGE_SIZE, HEAP_SPAN_LEN / PAGE_SIZE);

    return phys == FRAME_NONE ? NULL : phys_to_virt(phys);
}

static void span_put(void *span, size_t len)
{
    frame_free_run(virt_to_phys(span), len / PAGE_SIZE);
}

static void heap_damaged(const char *what, const void *block, const void *at)
{
    panic("heap: block %p: %s (found at %p)", block, what, at);
}

static const struct heap_source frames = { span_get, span_put, heap_damaged };

static struct {
    struct spinlock lock;
    struct heap heap; /* [lock] */
    long fail_after;  /* [lock] the n-th allocation from now on fails; <= 0: none */
} kernel_heap = { .lock = SPINLOCK_INIT };

static bool must_fail_locked(void)
{
    if (kernel_heap.fail_after <= 0)
        return false;
    return --kernel_heap.fail_after == 0;
}

static void *alloc_locked(size_t len)
{
    if (!kernel_heap.heap.source)
        heap_core_init(&kernel_heap.heap, &frames);
    if (must_fail_locked())
        return NULL;
    return heap_core_alloc(&kernel_heap.heap, len);
}

void *kmalloc(size_t len)
{
    unsigned long flags;
    void *p;

    spin_lock_irqsave(&kernel_heap.lock, &flags);
    p = alloc_locked(len);
    spin_unlock_irqrestore(&kernel_heap.lock, flags);
    MARK(kmalloc, "len %zu at %p", len, p);
    return p;
}

void *kzalloc(size_t len)
{
    void *p = kmalloc(len);

    return p ? memset(p, 0, len) : NULL;
}

/* Addresses outside the direct map are no blocks, and may not even be readable. */
static void check_is_direct(const void *p)
{
    uintptr_t va = (uintptr_t)p;

    if (va < DIRECT_MAP_BASE || va >= STACK_AREA_BASE)
        heap_damaged("no block of the heap", p, p);
}

void kfree(void *p)
{
    unsigned long flags;

    if (!p)
        return;
    check_is_direct(p);
    MARK(kfree, "at %p", p);
    spin_lock_irqsave(&kernel_heap.lock, &flags);
    heap_core_free(&kernel_heap.heap, p);
    spin_unlock_irqrestore(&kernel_heap.lock, flags);
}

static size_t heap_block_len(const void *p)
{
    unsigned long flags;
    size_t len;

    check_is_direct(p);
    spin_lock_irqsave(&kernel_heap.lock, &flags);
    len = heap_core_len(&kernel_heap.heap, p);
    spin_unlock_irqrestore(&kernel_heap.lock, flags);
    return len;
}

void *krealloc(void *p, size_t len)
{
    void *grown = kmalloc(len);
    size_t keep;

    if (!grown || !p)
        return grown;
    keep = heap_block_len(p);
    memcpy(grown, p, keep < len ? keep : len);
    kfree(p);
    return grown;
}

size_t heap_in_use(void)
{
    return READ_ONCE(kernel_heap.heap.in_use);
}

size_t heap_block_count(void)
{
    return READ_ONCE(kernel_heap.heap.blocks);
}

void heap_fail_after(long n)
{
    unsigned long flags;

    spin_lock_irqsave(&kernel_heap.lock, &flags);
    kernel_heap.fail_after = n;
    spin_unlock_irqrestore(&kernel_heap.lock, flags);
}
