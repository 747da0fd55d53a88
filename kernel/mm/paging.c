/* paging.c - finds and reads entries of the page tables.
 *
 * Owns all tables below the one root. They are reached through the direct map, made when
 * needed and never freed. Readers take no lock, because an entry changes in one write and
 * a table, once it is there, stays. paging_change.c changes what pages map to.
 */
#include "kernel/mm/paging.h"

#include "kernel/base/compiler.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging_ops.h"

uint64_t *paging_root; /* [I] after paging_init() */

uint64_t *table_at(uint64_t entry)
{
    return phys_to_virt(entry & PTE_ADDR);
}

uint64_t *table_new(void)
{
    uint64_t phys = frame_alloc();

    return phys == FRAME_NONE ? NULL : phys_to_virt(phys);
}

uint64_t paging_cr3(void)
{
    return virt_to_phys(paging_root);
}

uint64_t pte_make(uint64_t phys, unsigned prot)
{
    uint64_t pte = phys | PTE_PRESENT | PTE_ACCESSED | PTE_DIRTY;

    if (prot & PROT_W)
        pte |= PTE_WRITE;
    if (!(prot & PROT_X))
        pte |= PTE_NX;
    if (prot & PROT_NOCACHE)
        pte |= PTE_CACHE_OFF | PTE_WRITE_THROUGH;
    return pte;
}

unsigned pte_prot(uint64_t pte)
{
    unsigned prot = PROT_R;

    if (pte & PTE_WRITE)
        prot |= PROT_W;
    if (!(pte & PTE_NX))
        prot |= PROT_X;
    if (pte & PTE_CACHE_OFF)
        prot |= PROT_NOCACHE;
    return prot;
}

/* @level: 4 for the root's entries ... 1 for the entries of 4 KiB pages */
static unsigned slot_idx(uintptr_t va, unsigned level)
{
    return (va >> (12 + 9 * (level - 1))) % TABLE_ENTRIES;
}

static size_t slot_size(unsigned level)
{
    return PAGE_SIZE << (9 * (level - 1));
}

/* Replaces a 2 MiB page by a table of 512 pages that map the same. CPUs that still have
 * the large page in their TLBs see no difference until an entry of the table is changed,
 * and the function that changes it flushes the TLBs.
 */
static bool large_split(uint64_t *entry)
{
    uint64_t pte = *entry & ~PTE_LARGE;
    uint64_t *table = table_new();

    if (!table)
        return false;
    for (unsigned i = 0; i < TABLE_ENTRIES; i++)
        table[i] = pte + i * PAGE_SIZE;
    WRITE_ONCE(*entry, virt_to_phys(table) | PTE_TABLE);
    return true;
}

static bool table_ensure(uint64_t *entry)
{
    uint64_t *table;

    if (*entry & PTE_LARGE)
        return large_split(entry);
    if (*entry & PTE_PRESENT)
        return true;
    table = table_new();
    if (!table)
        return false;
    WRITE_ONCE(*entry, virt_to_phys(table) | PTE_TABLE);
    return true;
}

uint64_t *paging_slot(uintptr_t va, unsigned level)
{
    uint64_t *entry = &paging_root[slot_idx(va, 4)];

    for (unsigned l = 3; l >= level; l--) {
        if (!table_ensure(entry))
            return NULL;
        entry = &table_at(*entry)[slot_idx(va, l)];
    }
    return entry;
}

uint64_t *paging_slot_find(uintptr_t va, unsigned *level, uint64_t *pte)
{
    uint64_t *table = paging_root;
    uint64_t write = PTE_WRITE, nx = 0;

    if (!paging_root)
        return NULL;
    for (*level = 4;; (*level)--) {
        uint64_t *entry = &table[slot_idx(va, *level)];
        uint64_t e = READ_ONCE(*entry);

        if (!(e & PTE_PRESENT))
            return NULL;
        write &= e;
        nx |= e & PTE_NX;
        if (*level == 1 || e & PTE_LARGE) {
            *pte = (e & ~PTE_WRITE) | write | nx;
            return entry;
        }
        table = table_at(e);
    }
}

uint64_t *paging_slot_peek(uintptr_t va)
{
    uint64_t *table = paging_root;

    for (unsigned l = 4; l > 1; l--) {
        uint64_t e = table[slot_idx(va, l)];

        if (!(e & PTE_PRESENT) || e & PTE_LARGE)
            return NULL;
        table = table_at(e);
    }
    return &table[slot_idx(va, 1)];
}

static bool paging_is_canonical(uintptr_t va)
{
    return (uintptr_t)((intptr_t)(va << 16) >> 16) == va;
}

static void info_fill(struct page_info *info, uint64_t pte, unsigned level, uintptr_t va)
{
    uint64_t mask = slot_size(level) - 1;

    info->phys = ((pte & PTE_ADDR) & ~mask) | (va & mask);
    info->prot = pte_prot(pte);
    info->size = slot_size(level);
}

bool page_lookup(uintptr_t va, struct page_info *out)
{
    unsigned level;
    uint64_t pte;

    if (!paging_is_canonical(va) || !paging_slot_find(va, &level, &pte))
        return false;
    info_fill(out, pte, level, va);
    return true;
}

struct table_walk {
    page_walk_fn fn;
    void *arg;
};

/* @above: the rights of the levels above, combined: PTE_WRITE if all of them have it,
 *         PTE_NX if any of them has it
 */
static void table_walk(const struct table_walk *walk, const uint64_t *table,
                       unsigned level, uintptr_t start, uint64_t above)
{
    for (unsigned i = 0; i < TABLE_ENTRIES; i++) {
        uintptr_t va = start + i * slot_size(level);
        uint64_t e = READ_ONCE(table[i]);
        uint64_t rights = (above & e & PTE_WRITE) | ((above | e) & PTE_NX);
        struct page_info info;

        if (level == 4 && i >= TABLE_ENTRIES / 2)
            va |= ~UINT64_C(0) << 48;
        if (!(e & PTE_PRESENT))
            continue;
        if (level > 1 && !(e & PTE_LARGE)) {
            table_walk(walk, table_at(e), level - 1, va, rights);
            continue;
        }
        info_fill(&info, (e & ~PTE_WRITE) | rights, level, va);
        walk->fn(va, &info, walk->arg);
    }
}

void page_walk(page_walk_fn fn, void *arg)
{
    struct table_walk walk = { fn, arg };

    table_walk(&walk, paging_root, 4, 0, PTE_WRITE);
}
