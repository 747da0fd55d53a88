/* link.h - from one detour straight into the next, past the text between the two. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;

/* link_make_around - link the detour of @site to that of the instruction behind it, and the
 *             one of the instruction before to that of @site. Both must be jumps, or become
 *             jumps in the batch that is being written, and all cores must know their
 *             detours. A CPU may go by the text for a while yet.
 * link_cut - @site, a jump, is about to be none. The synchronisations of that change are
 *            for the cut, too. A link between two sites that both leave stays: no CPU comes
 *            in, and threads that are inside are waited for before either detour is freed.
 * link_forget - @site is no jump, and is about to be armed: a link of its detour may lead
 *               to memory that was freed, and is cut. The cores must be synchronised before
 *               @site is armed.
 * link_drop - @site's detour is about to be freed, and no thread can be inside.
 * Locks:  PLAT_PROBES and PLAT_TEXT held.
 */
void link_make_around(struct site *site);
void link_cut(struct site *site);
void link_forget(struct site *site);
void link_drop(struct site *site);

/* link_forbid - from now on no link leads to the instruction at @addr: CPUs come to it by its
 * own address. A link that is there is cut by making a jump there a breakpoint first.
 * @forbid: false: links are allowed again
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM, and nothing has changed.
 */
int link_forbid(uintptr_t addr, bool forbid);

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
