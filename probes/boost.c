/* boost.c - stage 8: the copy in the slot runs as the program's own, and jumps back. No
 * second trap, interrupts as the program has them.
 */
#include "probes/life.h"
#include "probes/registry.h"

/* The shadow of STI must cover the instruction behind it, so both run in one copy, unless
 * the second carries a probe of its own, which has to be hit.
 */
uint8_t *boost_sti(const struct site *site)
{
    const struct site *successor = registry_find(site->addr + site->len);

    return successor && successor->state == SITE_ARMED ? site->boost_slot
                                                       : site->pair_slot;
}
NOKPROBE(boost_sti);
