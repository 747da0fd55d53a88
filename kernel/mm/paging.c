/* paging.c - the page tables: finding, changing and reading their entries.
 *
 * Owns all tables below the one root. They are reached through the direct map, made when
 * needed and never freed. One lock for all changes; readers take none, because an entry
 * changes in one write and a table, once it is there, stays.
 */
#include "kernel/mm/paging.h"

#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging_ops.h"
#include "kernel/sync/spinlock.h"

#define FLUSH_SINGLY_MAX 64 /* more pages than this: forget everything at once */

static struct spinlock paging_lock = SPINLOCK_INIT;
static uint64_t *root; /* [I] after paging_init() */
static void (*shootdown)(uintptr_t start, size_t pages);

uint64_t *table_at(uint64_t entry)
{
    return phys_to_virt(entry & PTE_ADDR);
}

uint64_t *table_new(void)
{
    uint64_t phys = frame_alloc();

    return phys == FRAME_NONE ? NULL : phys_to_virt(phys);
}

void paging_set_root(uint64_t *table)
{
    root = table;
}

uint64_t paging_cr3(void)
{
    return virt_to_phys(root);
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

static unsigned pte_prot(uint64_t pte)
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

/* @level: 4 for the root's entries ... 1 for those of 4 KiB pages */
static unsigned slot_idx(uintptr_t va, unsigned level)
{
    return (va >> (12 + 9 * (level - 1))) % TABLE_ENTRIES;
}

static size_t slot_size(unsigned level)
{
    return PAGE_SIZE << (9 * (level - 1));
}

/* Replace a 2 MiB page by a table of 512 pages that map the same. CPUs that still have
 * the large one in their TLB see no difference until an entry of the table is changed,
 * and whoever changes it flushes.
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
    uint64_t *entry = &root[slot_idx(va, 4)];

    for (unsigned l = 3; l >= level; l--) {
        if (!table_ensure(entry))
            return NULL;
        entry = &table_at(*entry)[slot_idx(va, l)];
    }
    return entry;
}

/* The entry that maps @va now, of either size, with the rights of all levels in *@pte;
 * NULL when nothing is mapped.
 */
static uint64_t *slot_find(uintptr_t va, unsigned *level, uint64_t *pte)
{
    uint64_t *table = root;
    uint64_t write = PTE_WRITE, nx = 0;

    if (!root)
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

static bool is_canonical(uintptr_t va)
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

    if (!is_canonical(va) || !slot_find(va, &level, &pte))
        return false;
    info_fill(out, pte, level, va);
    return true;
}

/* A frame may be executable only where nobody can write it. */
static int exec_check(uint64_t phys, unsigned prot)
{
    struct page_info direct;

    BUG_ON(prot & PROT_W && prot & PROT_X);
    if (!(prot & PROT_X))
        return 0;
    if (!page_lookup(DIRECT_MAP_BASE + phys, &direct))
        return 0;
    return direct.prot & PROT_W ? -EPERM : 0;
}

static int map_locked(uintptr_t va, uint64_t phys, unsigned prot)
{
    int err = exec_check(phys, prot);
    uint64_t *entry;

    if (err)
        return err;
    entry = paging_slot(va, 1);
    if (!entry)
        return -ENOMEM;
    if (*entry)
        return -EEXIST;
    WRITE_ONCE(*entry, pte_make(phys, prot));
    return 0;
}

int page_map(uintptr_t va, uint64_t phys, unsigned prot)
{
    unsigned long flags;
    int err;

    BUG_ON(!is_aligned(va | phys, PAGE_SIZE));
    spin_lock_irqsave(&paging_lock, &flags);
    err = map_locked(va, phys, prot);
    spin_unlock_irqrestore(&paging_lock, flags);
    return err;
}

/* The entry of a mapped 4 KiB page, made one of a split if need be. */
static int slot_mapped(uintptr_t va, uint64_t **entry)
{
    unsigned level;
    uint64_t pte;

    if (!slot_find(va, &level, &pte))
        return -ENOENT;
    *entry = paging_slot(va, 1);
    return *entry ? 0 : -ENOMEM;
}

static int set_prot_locked(uintptr_t va, unsigned prot)
{
    uint64_t *entry;
    int err = slot_mapped(va, &entry);

    if (err)
        return err;
    err = exec_check(*entry & PTE_ADDR, prot);
    if (err)
        return err;
    WRITE_ONCE(*entry, pte_make(*entry & PTE_ADDR, prot));
    return 0;
}

int page_set_prot(uintptr_t va, unsigned prot)
{
    unsigned long flags;
    int err;

    spin_lock_irqsave(&paging_lock, &flags);
    err = set_prot_locked(va, prot);
    spin_unlock_irqrestore(&paging_lock, flags);
    return err;
}

int direct_map_protect(uint64_t phys, size_t count, unsigned prot)
{
    for (size_t i = 0; i < count; i++) {
        int err = page_set_prot(DIRECT_MAP_BASE + phys + i * PAGE_SIZE, prot);

        if (err)
            return err;
    }
    return 0;
}

int page_protect_range(uintptr_t va, size_t count, unsigned prot)
{
    int err = 0;

    for (size_t i = 0; i < count && !err; i++)
        err = page_set_prot(va + i * PAGE_SIZE, prot);
    paging_flush(va, count);
    return err;
}

int page_protect(uintptr_t va, unsigned prot)
{
    return page_protect_range(va, 1, prot);
}

bool page_hide(uintptr_t va)
{
    unsigned long flags;
    unsigned level;
    uint64_t *entry;
    uint64_t pte;

    spin_lock_irqsave(&paging_lock, &flags);
    entry = slot_find(va, &level, &pte);
    if (entry) {
        BUG_ON(level != 1);
        WRITE_ONCE(*entry, *entry & ~PTE_PRESENT);
    }
    spin_unlock_irqrestore(&paging_lock, flags);
    return entry;
}

/* A hidden page's tables exist, so paging_slot() makes none; for a page that never was
 * mapped it might, which is why such a one is looked for first.
 */
static uint64_t *slot_hidden(uintptr_t va)
{
    uint64_t *table = root;

    for (unsigned l = 4; l > 1; l--) {
        uint64_t e = table[slot_idx(va, l)];

        if (!(e & PTE_PRESENT) || e & PTE_LARGE)
            return NULL;
        table = table_at(e);
    }
    return &table[slot_idx(va, 1)];
}

uint64_t page_forget(uintptr_t va)
{
    uint64_t phys = FRAME_NONE;
    unsigned long flags;
    uint64_t *entry;

    spin_lock_irqsave(&paging_lock, &flags);
    entry = slot_hidden(va);
    if (entry && *entry && !(*entry & PTE_PRESENT)) {
        phys = *entry & PTE_ADDR;
        WRITE_ONCE(*entry, 0);
    }
    spin_unlock_irqrestore(&paging_lock, flags);
    return phys;
}

/* The frame is kept in the entry until no CPU remembers the mapping, so it needs no list
 * of frames to release, and no memory to make one.
 */
void page_unmap_range(uintptr_t va, size_t count, void (*released)(uint64_t phys))
{
    for (size_t i = 0; i < count; i++)
        page_hide(va + i * PAGE_SIZE);
    paging_flush(va, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t phys = page_forget(va + i * PAGE_SIZE);

        if (phys != FRAME_NONE && released)
            released(phys);
    }
}

int page_unmap(uintptr_t va, uint64_t *phys_out)
{
    uint64_t phys;

    if (!page_hide(va))
        return -ENOENT;
    paging_flush(va, 1);
    phys = page_forget(va);
    if (phys_out)
        *phys_out = phys;
    return 0;
}

static int replace_locked(uintptr_t va, uint64_t phys)
{
    uint64_t *entry;
    int err = slot_mapped(va, &entry);

    if (err)
        return err;
    err = exec_check(phys, pte_prot(*entry));
    if (err)
        return err;
    WRITE_ONCE(*entry, pte_make(phys, pte_prot(*entry)));
    return 0;
}

int page_replace(uintptr_t va, uint64_t phys)
{
    unsigned long flags;
    int err;

    spin_lock_irqsave(&paging_lock, &flags);
    err = replace_locked(va, phys);
    spin_unlock_irqrestore(&paging_lock, flags);
    if (!err)
        paging_flush(va, 1);
    return err;
}

struct walk {
    page_walk_fn fn;
    void *arg;
};

/* @above: entry bits that the levels above agree on: writable, and not executable */
static void table_walk(const struct walk *walk, const uint64_t *table, unsigned level,
                       uintptr_t start, uint64_t above)
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
    struct walk walk = { fn, arg };

    table_walk(&walk, root, 4, 0, PTE_WRITE);
}

void paging_set_shootdown(void (*fn)(uintptr_t start, size_t pages))
{
    shootdown = fn;
}

void paging_flush_local(uintptr_t start, size_t pages)
{
    if (pages > FLUSH_SINGLY_MAX) {
        write_cr3(read_cr3()); /* no page is global, so this forgets all */
        return;
    }
    for (size_t i = 0; i < pages; i++)
        invlpg(start + i * PAGE_SIZE);
}

void paging_flush(uintptr_t start, size_t pages)
{
    if (shootdown)
        shootdown(start, pages);
    else
        paging_flush_local(start, pages);
}
