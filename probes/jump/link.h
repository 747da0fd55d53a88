/* link.h - makes and cuts links: a link leads from one detour straight into the detour of
 * the next instruction, past the text between them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;

/* link_make_around - link the detour of @site to the detour of the next instruction, and
 *            the detour of the instruction before to that of @site. Both sites must be
 *            jumps, or become jumps in the batch that is being written, and the cores
 *            must have been synchronised since their detours were written. A CPU may
 *            still go through the text between them for a while.
 * link_cut - @site is a jump, and the jump is about to be removed: cut its links, to its
 *            detour and from there. The synchronisations of that change also serve the cut.
 */
void link_make_around(struct site *site);
void link_cut(struct site *site);

/* link_into - the address of the jump that is the link to the detour of the site at
 * @addr; 0: there is no such link. Locks: PLAT_PROBES held.
 */
uintptr_t link_into(uintptr_t addr);
/* link_count - how many links there are. Context: any. */
extern size_t link_total;
static inline size_t link_count(void)
{
    return link_total;
}

/* link_jump_fits - can one store change the displacement of a jump at @at?
 * link_room_before - how many bytes the caller must leave free at @at, so that one store
 * can change the displacement of a jump behind these bytes.
 */
bool link_jump_fits(uintptr_t at);
size_t link_room_before(uintptr_t at);
