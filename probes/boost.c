/* boost.c - stage 8: the copy in the slot runs as the program's own, and jumps back. No
 * second trap, interrupts as the program has them.
 */
#include "probes/life.h"
#include "probes/registry.h"

/* The shadow of STI must cover the instruction behind it, so both run in one copy, unless
 * the second carries a probe of its own, which has to be hit.
 */
NOKPROBE_INLINE uint8_t *sti_slot(const struct site *site)
{
    const struct site *successor = registry_find(site->addr + site->len);

    return successor && successor->state == SITE_ARMED ? site->boost_slot
                                                       : site->pair_slot;
}

void boost_run(struct site *site, struct pt_regs *regs)
{
    const uint8_t *slot = site->pair_slot ? sti_slot(site) : site->boost_slot;

    regs->ip = (uintptr_t)slot;
}
NOKPROBE(boost_run);
