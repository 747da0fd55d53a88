/* vmap.c - maps memory and devices at addresses of their own, with a hole behind each. */
#include "kernel/mm/vmap.h"

#include "kernel/base/compiler.h"
#include "kernel/memmap.h"
#include "kernel/mm/area.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"

#define VMAP_AREA_LEN (4 * GiB)

static struct area vmap_area;

INIT void vmap_init(void)
{
    area_init(&vmap_area, VMAP_AREA_BASE, VMAP_AREA_LEN / PAGE_SIZE);
}

void *vmap_alloc(size_t len, unsigned prot)
{
    size_t count = area_pages(len);
    uintptr_t va = area_get(&vmap_area, count + 1);

    if (!va)
        return NULL;
    if (!area_fill(va, count, prot)) {
        area_put(&vmap_area, va, count + 1);
        return NULL;
    }
    return (void *)va;
}

void vmap_free(void *p, size_t len)
{
    size_t count = area_pages(len);

    if (!p)
        return;
    page_unmap_range((uintptr_t)p, count, frame_free);
    area_put(&vmap_area, (uintptr_t)p, count + 1);
}

static bool device_map(uintptr_t va, uint64_t phys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t off = i * PAGE_SIZE;

        if (page_map(va + off, phys + off, PROT_W | PROT_NOCACHE)) {
            page_unmap_range(va, i, NULL);
            return false;
        }
    }
    return true;
}

void *vmap_device(uint64_t phys, size_t len)
{
    uint64_t start = align_down(phys, PAGE_SIZE);
    size_t count = area_pages(phys - start + len);
    uintptr_t va = area_get(&vmap_area, count + 1);

    if (!va)
        return NULL;
    if (!device_map(va, start, count)) {
        area_put(&vmap_area, va, count + 1);
        return NULL;
    }
    return (void *)(va + (phys - start));
}
