/* stack.c - allocates stacks, each above a guard page that is never mapped.
 *
 * A stack takes a run of pages of its area; the lowest page of the run is the guard. So
 * the page below any mapped page of the area is either mapped, too, or is a guard.
 */
#include "kernel/mm/stack.h"

#include "kernel/base/compiler.h"
#include "kernel/memmap.h"
#include "kernel/mm/area.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"

#define STACK_AREA_LEN (4 * GiB)

static struct area stack_area;

INIT void stack_init(void)
{
    area_init(&stack_area, STACK_AREA_BASE, STACK_AREA_LEN / PAGE_SIZE);
}

void *stack_alloc(size_t len)
{
    size_t count = area_pages(len);
    uintptr_t guard = area_get(&stack_area, count + 1);

    if (!guard)
        return NULL;
    if (!area_fill(guard + PAGE_SIZE, count, PROT_W)) {
        area_put(&stack_area, guard, count + 1);
        return NULL;
    }
    return (void *)(guard + (count + 1) * PAGE_SIZE);
}

void stack_free(void *top, size_t len)
{
    size_t count = area_pages(len);
    uintptr_t guard = (uintptr_t)top - (count + 1) * PAGE_SIZE;

    if (!top)
        return;
    page_unmap_range(guard + PAGE_SIZE, count, frame_free);
    area_put(&stack_area, guard, count + 1);
}

bool stack_guard_hit(uintptr_t addr, uintptr_t *base)
{
    uintptr_t guard = align_down(addr, PAGE_SIZE);
    struct page_info info;

    if (addr < STACK_AREA_BASE || addr >= STACK_AREA_BASE + STACK_AREA_LEN)
        return false;
    if (page_lookup(guard, &info) || !page_lookup(guard + PAGE_SIZE, &info))
        return false;
    if (base)
        *base = guard + PAGE_SIZE;
    return true;
}
