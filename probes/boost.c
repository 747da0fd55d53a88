/* boost.c - stage 8: the copy in the slot runs as the program's own, and jumps back. No
 * second trap, interrupts as the program has them.
 */
#include "probes/life.h"
#include "probes/registry.h"

/* The shadow of STI must cover the instruction behind it, so both happen at once, unless
 * the second carries a probe of its own, which has to be hit, or the program wants a trap
 * between the two. What can be copied runs in one copy with STI. What is emulated, a call
 * above all, is applied to the image after STI has been: interrupts come on the way back to
 * the program, which is behind both by then.
 */
void boost_sti(const struct site *site, struct pt_regs *regs)
{
    const struct site *successor = registry_find(site->addr + site->len);

    regs->ip = (uintptr_t)site->boost_slot;
    if (regs->flags & FLAGS_TF || (successor && site_is_armed(successor)))
        return;
    if (site->pair.slot)
        regs->ip = (uintptr_t)site->pair.slot;
    if (!site->pair.site)
        return;
    regs->flags |= FLAGS_IF;
    emulate_run(site->pair.site, regs);
}
NOKPROBE(boost_sti);

/* The shadow has ended at the trap behind the copy. What it was to cover happens together
 * with another STI. Behind #DB an emulated call pushes over the SS of the frame, for want of
 * a gap; the way back without TF does not look at it.
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
