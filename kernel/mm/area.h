/* area.h - hands out a range of addresses in runs of pages. Private to kernel/mm. */
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

/* area_init - make an area of @count free pages from @start on. Panics without memory for
 * the bookkeeping. Context: boot.
 */
void area_init(struct area *area, uintptr_t start, size_t count);

/* area_get - take the lowest run of @count free pages.
 * Context: as frame_alloc().  Return: the address of the run; 0: there is no such run.
 */
uintptr_t area_get(struct area *area, size_t count);

/* area_put - give @count pages back. Nothing may be mapped there any more. */
void area_put(struct area *area, uintptr_t va, size_t count);

/* area_fill - map new, zeroed frames at @count pages of a run.
 * Context: as frame_alloc(). If it fails, it is that of page_unmap().
 * Return:  false without memory; then no page is mapped.
 */
bool area_fill(uintptr_t va, size_t count, unsigned prot);

/* area_pages - compute how many pages @len bytes need. */
static inline size_t area_pages(size_t len)
{
    return len / PAGE_SIZE + (len % PAGE_SIZE != 0);
}

/* area_free_pages - count the free pages. Context: as area_get(). */
size_t area_free_pages(struct area *area);
