/* link.h - from one detour straight into the next, past the text between the two. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;

/* link_make_around - let the detours of @site, and of the one before it, go straight on in
 *             that of the instruction behind, where both are jumps, or become some in the
 *             batch that is being written, and have detours that all cores know. A CPU may
 *             go there by the text for a while yet.
 * link_cut - @site, a jump, is about to be none; the synchronisations that come with that
 *            are this one's, too. Links between two that are both leaving stay: nobody comes
 *            in, and who is inside is waited for before either is freed.
 * link_forget - @site is no jump, and is about to be armed: where it leads to, if it does,
 *               may be gone. Before it is armed the cores must be synchronised.
 * link_drop - @site's detour is about to be freed, and nobody can be inside.
 * Locks:  PLAT_PROBES and PLAT_TEXT held.
 */
void link_make_around(struct site *site);
void link_cut(struct site *site);
void link_forget(struct site *site);
void link_drop(struct site *site);

/* link_into - the address of the jump that leads straight to the detour of the site at
 * @addr; 0: there is none. Locks: PLAT_PROBES held.
 */
uintptr_t link_into(uintptr_t addr);
/* link_count - how many there are. Context: any. */
size_t link_count(void);

/* link_jump_fits - can the displacement of a jump at @at be changed by one store?
 * link_room_before - bytes to leave in front of a jump that would be at @at, so that it can.
 */
bool link_jump_fits(uintptr_t at);
size_t link_room_before(uintptr_t at);
