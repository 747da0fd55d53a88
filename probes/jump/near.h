/* near.h - finds the sites near an address, where most addresses have none. */
#pragma once

#include <stdint.h>

struct site;

/* near_note - let near_next() find the site at @addr, as long as it is in the registry.
 * near_next - return the site with the lowest address in @addr..@end-1 of those that have
 * ever had a stage (jump_stage.h); NULL: there is none. Locks: PLAT_PROBES held.
 */
void near_note(uintptr_t addr);
struct site *near_next(uintptr_t addr, uintptr_t end);
#define near_for_each(site, from, to)                                                    \
    for ((site) = near_next((from), (to)); (site);                                       \
         (site) = near_next((site)->addr + 1, (to)))
