/* extable.c - sorts the table of instructions that may fault, and searches in it.
 *
 * The linker collects the entries in the order of the objects, which is nearly that of the
 * text; boot sorts them in place, while they can still be written.
 */
#include "kernel/mm/extable.h"

#include "kernel/base/compiler.h"

extern struct extable_entry extable_start[], extable_end[];

static uintptr_t insn_of(const struct extable_entry *e)
{
    return (uintptr_t)&e->insn_off + (uintptr_t)(intptr_t)e->insn_off;
}

static uintptr_t entry_fixup(const struct extable_entry *e)
{
    return (uintptr_t)&e->fixup_off + (uintptr_t)(intptr_t)e->fixup_off;
}

/* An offset is relative to its own address, so an entry cannot just be copied. */
static void entry_set(struct extable_entry *e, uintptr_t insn, uintptr_t fixup)
{
    e->insn_off = (int32_t)(insn - (uintptr_t)&e->insn_off);
    e->fixup_off = (int32_t)(fixup - (uintptr_t)&e->fixup_off);
}

void extable_sort(struct extable_entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uintptr_t insn = insn_of(&entries[i]);
        uintptr_t fixup = entry_fixup(&entries[i]);
        size_t to = i;

        for (; to > 0 && insn_of(&entries[to - 1]) > insn; to--)
            entry_set(&entries[to], insn_of(&entries[to - 1]),
                      entry_fixup(&entries[to - 1]));
        if (to != i)
            entry_set(&entries[to], insn, fixup);
    }
}

uintptr_t extable_search(const struct extable_entry *entries, size_t count, uintptr_t ip)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uintptr_t insn = insn_of(&entries[middle]);

        if (insn == ip)
            return entry_fixup(&entries[middle]);
        if (insn < ip)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

static size_t table_count(void)
{
    return (size_t)(extable_end - extable_start);
}

INIT void extable_init(void)
{
    extable_sort(extable_start, table_count());
}

uintptr_t (*extable_more)(uintptr_t ip); /* set at boot */
struct extable_fault extable_fault;

uintptr_t extable_find(uintptr_t ip)
{
    uintptr_t fixup = extable_search(extable_start, table_count(), ip);

    return fixup || !extable_more ? fixup : extable_more(ip);
}

bool extable_fixup(struct pt_regs *regs)
{
    uintptr_t fixup = extable_find(regs->ip);

    if (!fixup)
        return false;
    regs->ip = fixup;
    extable_fault = (struct extable_fault){ regs->vector, regs->flags & FLAGS_RF };
    regs->flags &= ~FLAGS_RF; /* it belongs to the instruction that has faulted */
    return true;
}
