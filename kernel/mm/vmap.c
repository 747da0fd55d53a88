/* vmap.c - memory and devices at addresses of their own, a hole behind each. */
#include "kernel/mm/vmap.h"

#include "kernel/memmap.h"
#include "kernel/mm/area.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"

#define VMAP_AREA_LEN (4 * GiB)

static struct area vmap_area;

void vmap_init(void)
{
    area_init(&vmap_area, VMAP_AREA_BASE, VMAP_AREA_LEN / PAGE_SIZE);
}

static size_t pages_for(size_t len)
{
    return len / PAGE_SIZE + (len % PAGE_SIZE != 0);
}

/* Undo what is mapped of @count pages, and what is not. */
static void release(uintptr_t va, size_t count, void (*released)(uint64_t phys))
{
    page_unmap_range(va, count, released);
    area_put(&vmap_area, va, count + 1);
}

static int map_fresh(uintptr_t va, unsigned prot)
{
    uint64_t phys = frame_alloc();
    int err;

    if (phys == FRAME_NONE)
        return -1;
    err = page_map(va, phys, prot);
    if (err)
        frame_free(phys);
    return err;
}

void *vmap_alloc(size_t len, unsigned prot)
{
    size_t count = pages_for(len);
    uintptr_t va = area_get(&vmap_area, count + 1);

    if (!va)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (map_fresh(va + i * PAGE_SIZE, prot)) {
            release(va, count, frame_free);
            return NULL;
        }
    }
    return (void *)va;
}

void vmap_free(void *p, size_t len)
{
    if (p)
        release((uintptr_t)p, pages_for(len), frame_free);
}

void *vmap_device(uint64_t phys, size_t len)
{
    uint64_t start = align_down(phys, PAGE_SIZE);
    size_t count = pages_for(phys - start + len);
    uintptr_t va = area_get(&vmap_area, count + 1);

    if (!va)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (page_map(va + i * PAGE_SIZE, start + i * PAGE_SIZE, PROT_W | PROT_NOCACHE)) {
            release(va, count, NULL);
            return NULL;
        }
    }
    return (void *)(va + (phys - start));
}
