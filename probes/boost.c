/* boost.c - stage 8: the copy in the slot runs as the program's own, and jumps back. No
 * second trap, interrupts as the program has them.
 */
#include "probes/life.h"
#include "probes/registry.h"

/* The shadow of STI must cover the instruction behind it, so both run in one copy, unless
 * the second carries a probe of its own, which has to be hit, or the program wants a trap
 * between the two.
 */
uint8_t *boost_sti(const struct site *site, const struct pt_regs *regs)
{
    const struct site *successor = registry_find(site->addr + site->len);

    if (regs->flags & FLAGS_TF || (successor && successor->state == SITE_ARMED))
        return site->boost_slot;
    return site->pair_slot;
}
NOKPROBE(boost_sti);

/* The shadow has ended at the trap behind the copy. What it was to cover runs with another
 * STI in front of it.
 */
void boost_sti_again(const struct site *site, struct pt_regs *regs)
{
    if (regs->ip != site->addr + site->len || !(regs->flags & FLAGS_IF) ||
        regs->flags & FLAGS_TF)
        return;
    regs->flags &= ~FLAGS_IF;
    regs->ip = (uintptr_t)boost_sti(site, regs);
}
NOKPROBE(boost_sti_again);
