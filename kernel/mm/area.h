/* area.h - private to kernel/mm: a range of addresses, handed out in runs of pages. */
#pragma once

#include "kernel/memmap.h"
#include "kernel/mm/free_set.h"
#include "kernel/sync/spinlock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct area {
    struct spinlock lock;
    uintptr_t start;       /* [I] */
    struct free_set pages; /* [lock] */
};

/* area_init - @start..@start + @count pages, all free. Context: boot; panics without
 * memory for the bookkeeping.
 */
void area_init(struct area *area, uintptr_t start, size_t count);

/* area_get - addresses of @count free pages in a row, the lowest there are.
 * Context: as frame_alloc().  Return: the first; 0 when there is no such run.
 */
uintptr_t area_get(struct area *area, size_t count);

/* area_put - give them back; nothing is mapped there. */
void area_put(struct area *area, uintptr_t va, size_t count);

/* area_fill - map fresh, zeroed frames at @count pages of a run.
 * Context: as frame_alloc(); thread or boot when it fails.
 * Return:  false without memory, and none is mapped.
 */
bool area_fill(uintptr_t va, size_t count, unsigned prot);

/* area_pages - pages that hold @len bytes. */
static inline size_t area_pages(size_t len)
{
    return len / PAGE_SIZE + (len % PAGE_SIZE != 0);
}

/* area_free_pages - Context: as area_get(). */
size_t area_free_pages(struct area *area);
