/* paging_change.c - maps and unmaps pages, changes their rights and frames, flushes TLBs.
 *
 * One lock guards all changes. It is never held while other CPUs are called: so an entry
 * first changes, and is then flushed. In between, a CPU may still use the page as it was
 * before.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"
#include "kernel/mm/paging_ops.h"
#include "kernel/sync/spinlock.h"

#define FLUSH_SINGLY_MAX 64 /* more pages than this: flush all translations at once */

static struct spinlock paging_lock = SPINLOCK_INIT;
void (*paging_shootdown)(uintptr_t start, size_t pages);

void paging_flush_local(uintptr_t start, size_t pages)
{
    if (pages > FLUSH_SINGLY_MAX) {
        write_cr3(read_cr3()); /* no page is global, so this flushes all */
        return;
    }
    for (size_t i = 0; i < pages; i++)
        invlpg(start + i * PAGE_SIZE);
}

/* CPUs that a debugger has stopped flush all translations before they go on. */
void paging_flush(uintptr_t start, size_t pages)
{
    if (paging_shootdown && cpu_context() != CTX_HELD)
        paging_shootdown(start, pages);
    else
        paging_flush_local(start, pages);
}

/* A frame may be executable only while the direct map does not map it writable. */
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

/* Finds the entry of a mapped 4 KiB page; splits a 2 MiB page for it if needed. */
static int slot_mapped(uintptr_t va, uint64_t **entry)
{
    unsigned level;
    uint64_t pte;

    if (!paging_slot_find(va, &level, &pte))
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
    entry = paging_slot_find(va, &level, &pte);
    if (entry) {
        BUG_ON(level != 1);
        WRITE_ONCE(*entry, *entry & ~PTE_PRESENT);
    }
    spin_unlock_irqrestore(&paging_lock, flags);
    return entry;
}

uint64_t page_forget(uintptr_t va)
{
    uint64_t phys = FRAME_NONE;
    unsigned long flags;
    uint64_t *entry;

    spin_lock_irqsave(&paging_lock, &flags);
    entry = paging_slot_peek(va);
    if (entry && *entry && !(*entry & PTE_PRESENT)) {
        phys = *entry & PTE_ADDR;
        WRITE_ONCE(*entry, 0);
    }
    spin_unlock_irqrestore(&paging_lock, flags);
    return phys;
}

/* An entry keeps its frame until no CPU has the mapping in its TLB. So no list of the
 * frames to be released is needed, and no memory for such a list.
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
