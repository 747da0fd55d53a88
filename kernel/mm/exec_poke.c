/* exec_poke.c - writes executable memory; no other code does.
 *
 * Each CPU has two pages of addresses of its own for it, its poke alias. Interrupts are
 * off while they are mapped: so no other code on the CPU uses them, and other CPUs have
 * pages of their own. So the pages need neither a lock nor a shootdown. There is one
 * exception: a debugger may stop the CPU in the middle of a write, and then write text
 * itself. So each write shows again what the alias has shown before.
 */
#include "kernel/base/err.h"
#include "kernel/base/store.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/paging.h"
#include "kernel/mm/paging_ops.h"

#include <string.h>

#define ALIAS_PAGES 2

/* Finds the frames of the pages of @addr..@addr+@len-1. frames[1] is not written if there
 * is only one page.
 */
static int frames_find(uintptr_t addr, size_t len, uint64_t frames[ALIAS_PAGES])
{
    uintptr_t first = align_down(addr, PAGE_SIZE);
    uintptr_t last = align_down(addr + len - 1, PAGE_SIZE);

    for (uintptr_t i = 0; i <= (last - first) / PAGE_SIZE; i++) {
        struct page_info info;

        if (!page_lookup(first + i * PAGE_SIZE, &info) || !(info.prot & PROT_X))
            return -EFAULT;
        frames[i] = info.phys;
    }
    return 0;
}

_Static_assert(POKE_AREA_BASE % (ALIAS_PAGES * PAGE_SIZE) == 0 &&
                   POKE_AREA_STRIDE % (ALIAS_PAGES * PAGE_SIZE) == 0,
               "the entries of an alias stand side by side in one table");

/* alias_exchange - let the poke alias show @frames, 0 for no frame. @frames receives what
 * it has shown before.
 * @entries: the page table's entries of the alias
 */
static void alias_exchange(uintptr_t alias, uint64_t entries[ALIAS_PAGES],
                           uint64_t frames[ALIAS_PAGES])
{
    for (unsigned i = 0; i < ALIAS_PAGES; i++, alias += PAGE_SIZE) {
        uint64_t before = entries[i] & PTE_ADDR;

        WRITE_ONCE(entries[i], frames[i] ? pte_make(frames[i], PROT_W) : 0);
        if (before)
            invlpg(alias);
        frames[i] = before;
    }
}

/* Reads the bytes where they are executed; they were written at another address. */
static void bytes_verify(const uint8_t *at, const uint8_t *want, size_t len)
{
    barrier();
    if (memcmp(at, want, len) == 0)
        return;
    for (size_t i = 0; i < len; i++) {
        if (at[i] != want[i])
            panic("poke: %p holds %#x instead of %#x after it was written",
                  (const void *)&at[i], at[i], want[i]);
    }
}

int text_poke_alias_write(void *addr, const void *bytes, size_t len)
{
    uint64_t frames[ALIAS_PAGES] = { 0 }, *entries;
    unsigned long flags;
    uintptr_t alias;
    int err;

    if (len == 0 || len > PAGE_SIZE)
        return -EINVAL;
    err = frames_find((uintptr_t)addr, len, frames);
    if (err)
        return err;
    flags = irq_save();
    alias = POKE_AREA_BASE + cpu_id() * POKE_AREA_STRIDE;
    entries = paging_slot(alias, 1);
    alias_exchange(alias, entries, frames);
    store_bytes((void *)(alias + (uintptr_t)addr % PAGE_SIZE), bytes, len);
    barrier();
    alias_exchange(alias, entries, frames);
    irq_restore(flags);
    bytes_verify(addr, bytes, len);
    return 0;
}
