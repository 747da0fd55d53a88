/* area.c - keeps track of the pages of an area that are free. */
#include "kernel/mm/area.h"

#include "kernel/base/compiler.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"

INIT void area_init(struct area *area, uintptr_t start, size_t count)
{
    size_t len = free_set_storage(count);
    uint64_t storage = frame_alloc_run(align_up(len, PAGE_SIZE) / PAGE_SIZE);

    if (storage == FRAME_NONE)
        panic("area: no %zu bytes of memory", len);
    *area = (struct area){ .start = start };
    free_set_init(&area->pages, count, phys_to_virt(storage));
    free_set_add(&area->pages, 0, count);
}

uintptr_t area_get(struct area *area, size_t count)
{
    unsigned long flags;
    uintptr_t va = 0;
    size_t first;

    spin_lock_irqsave(&area->lock, &flags);
    first = free_set_find_run(&area->pages, 0, count, 1);
    if (first != FREE_SET_NONE) {
        free_set_remove(&area->pages, first, count);
        va = area->start + first * PAGE_SIZE;
    }
    spin_unlock_irqrestore(&area->lock, flags);
    return va;
}

void area_put(struct area *area, uintptr_t va, size_t count)
{
    size_t first = (va - area->start) / PAGE_SIZE;
    unsigned long flags;

    BUG_ON(va < area->start || count > area->pages.count ||
           first > area->pages.count - count);
    spin_lock_irqsave(&area->lock, &flags);
    BUG_ON(free_set_has_any(&area->pages, first, count));
    free_set_add(&area->pages, first, count);
    spin_unlock_irqrestore(&area->lock, flags);
}

static bool page_fill(uintptr_t va, unsigned prot)
{
    uint64_t phys = frame_alloc();

    if (phys == FRAME_NONE)
        return false;
    if (page_map(va, phys, prot) == 0)
        return true;
    frame_free(phys);
    return false;
}

bool area_fill(uintptr_t va, size_t count, unsigned prot)
{
    for (size_t i = 0; i < count; i++) {
        if (!page_fill(va + i * PAGE_SIZE, prot)) {
            page_unmap_range(va, i, frame_free);
            return false;
        }
    }
    return true;
}

size_t area_free_pages(struct area *area)
{
    unsigned long flags;
    size_t count;

    spin_lock_irqsave(&area->lock, &flags);
    count = area->pages.free;
    spin_unlock_irqrestore(&area->lock, flags);
    return count;
}
