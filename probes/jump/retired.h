/* retired.h - keeps pads, detours and copies of regions whose jumps are gone, until no
 * thread can be inside; then it frees them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;

/* Pads of jumps that use another pad now. */
struct retired_pads {
    struct retired_pads *next;
    size_t count;
    uintptr_t pads[];
};

/* retired_pads_new - make a list with room for @max pads.  Return: NULL: no memory.
 * retired_keep - no jump leads to the pads in @pads any more: keep them until the next
 * retired_release_spent() or retired_release(). Takes @pads; an empty list is freed at
 * once.
 * retired_pending - are there pads that wait to be freed?
 * Locks: PLAT_PROBES held.
 */
struct retired_pads *retired_pads_new(size_t max);
void retired_keep(struct retired_pads *pads);
extern struct retired_pads *retired_kept;
static inline bool retired_pending(void)
{
    return retired_kept;
}

/* retired_at - has @site a pad, a detour or copies of an earlier jump, which it cannot
 * use again?
 * retired_release_spent - free the pads that retired_keep() has kept. Free also the pads,
 *                         detours and copies that @count sites cannot use again; these
 *                         sites are not jumps any more.
 * retired_release - free all of this, and also the detours and copies that the sites
 *                   could use again.
 * The caller of the last two has waited until no thread can be inside the freed memory.
 * Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
bool retired_at(const struct site *site);
void retired_release_spent(struct site **sites, size_t count);
void retired_release(struct site **sites, size_t count);
