/* boost.c - stage 8: the copy in the slot runs as the program's own, and jumps back. No
 * second trap, interrupts as the program has them.
 */
#include "probes/core/life.h"
#include "probes/core/registry.h"

/* is_hit - must a CPU that comes to @addr come by its site? A probe there waits for the
 * instruction, or a region begins there, and what lies behind its first instruction is the
 * rest of the jump. A neighbour that was evicted is a site as well, but without a probe.
 */
NOKPROBE_INLINE bool is_hit(uintptr_t addr)
{
    const struct site *site = registry_find(addr);

    return site && site_is_armed(site) &&
           (READ_ONCE(site->probes) || READ_ONCE(site->asks_resume));
}

/* The shadow of STI must cover the instruction behind it, so both happen at once, unless
 * the second carries a probe of its own, which has to be hit, or the program wants a trap
 * between the two. A successor that can be copied runs in one copy with STI. A successor
 * that is emulated, a call above all, is applied to the image after STI has been:
 * interrupts come on the way back to the program, which is behind both by then.
 */
void boost_sti(const struct site *site, struct pt_regs *regs)
{
    const struct sti_pair *pair = site_pair(site);

    regs->ip = (uintptr_t)site->boost_slot;
    if (regs->flags & FLAGS_TF || is_hit(site->addr + site->len))
        return;
    if (pair->slot)
        regs->ip = (uintptr_t)pair->slot;
    if (!pair->site)
        return;
    regs->flags |= FLAGS_IF;
    emulate_run(pair->site, regs);
}
NOKPROBE(boost_sti);

/* The shadow has ended at the trap behind the copy. The instruction that it was to cover
 * happens together with another STI.
 */
void boost_sti_again(const struct site *site, struct pt_regs *regs)
{
    if (regs->ip != site->addr + site->len || !(regs->flags & FLAGS_IF) ||
        regs->flags & FLAGS_TF)
        return;
    regs->flags &= ~FLAGS_IF;
    boost_sti(site, regs);
}
NOKPROBE(boost_sti_again);
