/* paging.h - maps pages, in one set of page tables that all CPUs share.
 *
 * Page tables are made when needed and never freed, and their entries change with single
 * writes: so page_lookup() needs no lock, in any context.
 *
 * The functions here keep two rules: no page is writable and executable; a frame can be
 * mapped executable only while its page of the direct map is read-only.
 * tests/kernel/test_paging.c states the other rules, and checks all tables.
 */
#pragma once

#include "kernel/base/boot_info.h"
#include "kernel/memmap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROT_R 0u
#define PROT_W 1u
#define PROT_X 2u
#define PROT_NOCACHE 4u /* for devices */

struct page_info {
    uint64_t phys; /* what the address asked for maps to, its offset included */
    unsigned prot; /* PROT_ bits, all levels of the tables combined */
    size_t size;   /* of the page: 4 KiB or 2 MiB */
};

/* paging_init - make the final tables, and switch to them from the early tables.
 *
 * Image: text R+X, rodata and tables R, data and bss R+W; the 2 MiB below it unmapped.
 * Direct map: all RAM, and below 4 GiB all other memory that the firmware listed, R+W in
 * 2 MiB pages; but frames of text, rodata and tables read-only. No identity map.
 *
 * Context: boot, after frame_init() and features_init_cpu(). Nothing may be in
 *          use that only the identity map showed.
 */
void paging_init(const struct boot_info *info);

/* paging_cr3 - get the value for CR3, the same on every CPU; may be above 4 GiB.
 * Context: any, after paging_init().
 */
uint64_t paging_cr3(void);

/* page_map - map one page that is not mapped. Needs no shootdown: CPUs do not cache that
 * a page was absent.
 * @va, @phys:  multiples of 4 KiB
 * @prot:       PROT_ bits; not PROT_W with PROT_X
 *
 * Context: as frame_alloc().  Locks: takes the paging lock.
 * Return:  0; -EEXIST the page is mapped; -ENOMEM no frame for a page table;
 *          -EPERM PROT_X, and @phys is writable in the direct map.
 */
int page_map(uintptr_t va, uint64_t phys, unsigned prot);

/* page_unmap - unmap a page. On return no CPU can use it, and its frame may be reused.
 * @phys_out:  gets the frame; may be NULL
 *
 * Context: thread, interrupts on; boot. It sends IPIs.
 * Return:  0; -ENOENT not mapped.
 */
int page_unmap(uintptr_t va, uint64_t *phys_out);

/* page_unmap_range - unmap @count pages, as far as they are mapped; one shootdown.
 * @released:  called for each frame, after the shootdown; may be NULL
 *
 * Context: as page_protect().
 */
void page_unmap_range(uintptr_t va, size_t count, void (*released)(uint64_t phys));

/* page_protect, page_protect_range - change rights of mapped pages; split 2 MiB pages.
 * Context: thread, interrupts on; boot; held.
 * Return:  0; -ENOENT a page is not mapped; -ENOMEM no frame for a split;
 *          -EPERM as page_map(). On error, a part of the pages may be changed.
 */
int page_protect(uintptr_t va, unsigned prot);
int page_protect_range(uintptr_t va, size_t count, unsigned prot);

/* page_replace - show another frame at a mapped page with the same rights, in one step:
 * a CPU that uses the page sees the old or the new frame, never a hole.
 * Context: thread, interrupts on; boot.
 * Return:  0, and no CPU sees the old frame there any more; else as page_protect().
 */
int page_replace(uintptr_t va, uint64_t phys);

/* page_lookup - find what @va maps to. Context: any.
 * Return: true: *@out is filled; false: nothing is mapped at @va.
 */
bool page_lookup(uintptr_t va, struct page_info *out);

/* page_walk - show every mapped page to @fn, in ascending order of addresses.
 * Context: thread. Pages mapped or unmapped meanwhile may be seen or not.
 */
typedef void (*page_walk_fn)(uintptr_t va, const struct page_info *info, void *arg);
void page_walk(page_walk_fn fn, void *arg);

/* paging_shootdown - a socket: flushes the TLBs of all CPUs. It must run
 * paging_flush_local() on every CPU, and return when all have done so. Until it is set,
 * only the executing CPU is flushed.
 * Set at boot. The first other CPU is about to use the tables.
 */
extern void (*paging_shootdown)(uintptr_t start, size_t pages);

#define PAGING_FLUSH_ALL SIZE_MAX /* as @pages: flush all translations */

/* paging_flush_local - flush @pages pages from the TLB of the executing CPU.
 * Context: any.
 * paging_flush - flush them from the TLB of every CPU.
 * Context: thread, interrupts on; boot; held.
 */
void paging_flush_local(uintptr_t start, size_t pages);
void paging_flush(uintptr_t start, size_t pages);

/* paging_ap_tables - make tables for CPUs that come from real mode. They map the whole
 * kernel half, and the trampoline page at its physical address, R+X.
 * @trampoline:  frame below 4 GiB, already written; read-only until paging_ap_tables_free()
 *
 * Return:  physical address for CR3, below 4 GiB; FRAME_NONE without memory. The CPU sets
 *          EFER.NXE before it uses them, and loads paging_cr3() once it runs in the image.
 */
uint64_t paging_ap_tables(uint64_t trampoline);
/* paging_ap_tables_free - free these tables; no CPU may use them any more. The
 * trampoline's frame still belongs to the caller, and is writable again.
 */
void paging_ap_tables_free(void);

#include "kernel/mm/stack.h"
#include "kernel/mm/vmap.h"
