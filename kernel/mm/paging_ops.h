/* paging_ops.h - changes single pages, and leaves the flush of the TLBs to the caller: so
 * a caller that changes many pages can flush once. Private to kernel/mm.
 */
#pragma once

#include "kernel/memmap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Entry bits. Source: SDM vol. 3A, "4-Level Paging and 5-Level Paging". */
#define PTE_PRESENT BIT(0)
#define PTE_WRITE BIT(1)
#define PTE_WRITE_THROUGH BIT(3)
#define PTE_CACHE_OFF BIT(4)
#define PTE_ACCESSED BIT(5)
#define PTE_DIRTY BIT(6)
#define PTE_LARGE BIT(7) /* in a page directory: maps 2 MiB itself */
#define PTE_NX BIT(63)
#define PTE_ADDR UINT64_C(0x000ffffffffff000)
#define PTE_TABLE (PTE_PRESENT | PTE_WRITE) /* rights are decided at the last level */

#define TABLE_ENTRIES 512u

/* pte_make - make the entry that maps @phys with @prot. Accessed and dirty are set in
 * advance, so that no CPU ever writes to a table.
 */
uint64_t pte_make(uint64_t phys, unsigned prot);
/* pte_prot - get the rights in an entry of the last level. */
unsigned pte_prot(uint64_t pte);

/* table_new - make a table of absent entries; NULL without memory.
 * table_at - get the table that @entry points at.
 */
uint64_t *table_new(void);
uint64_t *table_at(uint64_t entry);

/* paging_root - the top table, which all functions use. */
extern uint64_t *paging_root;

/* paging_slot - find the entry that maps @va, or that would map it.
 * @level:  1 for 4 KiB pages, 2 for 2 MiB, 3 for the entry of a page directory
 *
 * Makes missing tables, and splits a 2 MiB page on the way.
 * Locks:  the paging lock held. In `boot` none.
 * Return: NULL without memory.
 */
uint64_t *paging_slot(uintptr_t va, unsigned level);

/* paging_slot_find - find the entry that maps @va now; NULL: nothing is mapped there.
 * @level: gets 1 for a 4 KiB page, 2 for a 2 MiB page
 * @pte:   gets the content of the entry, with the rights of all levels combined
 * Context: any.
 */
uint64_t *paging_slot_find(uintptr_t va, unsigned *level, uint64_t *pte);

/* paging_slot_peek - find the entry of the 4 KiB page at @va, present or not; NULL: there
 * is no table for it. Context: any.
 */
uint64_t *paging_slot_peek(uintptr_t va);

/* page_set_prot - do as page_protect(), but do not flush. */
int page_set_prot(uintptr_t va, unsigned prot);

/* page_hide, page_forget - unmap a page in two steps. page_hide() makes the page absent
 * but keeps its frame in the entry; after a flush, page_forget() empties the entry.
 * Return: page_hide(): false: the page was not mapped.
 *         page_forget(): the frame; FRAME_NONE: there was none.
 */
bool page_hide(uintptr_t va);
uint64_t page_forget(uintptr_t va);

/* direct_map_protect - change the rights of @count frames in the direct map; no flush.
 * Return: 0; -ENOMEM; -ENOENT a frame is not in it.
 */
int direct_map_protect(uint64_t phys, size_t count, unsigned prot);
