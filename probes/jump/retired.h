/* retired.h - pads, detours and copies of regions whose jumps have gone. They stay until no
 * thread can be inside.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;

/* Pads of jumps that have got another one. */
struct retired_pads {
    struct retired_pads *next;
    size_t count;
    uintptr_t pads[];
};

/* retired_pads_new - a list with room for @max pads.  Return: NULL without memory.
 * retired_keep - no jump leads to the pads of the list any more. An empty list is freed.
 * retired_pending - are there pads that wait for quiescence?
 * Locks: PLAT_PROBES held.
 */
struct retired_pads *retired_pads_new(size_t max);
void retired_keep(struct retired_pads *pads);
bool retired_pending(void);

/* retired_at - has @site something of an earlier jump that it cannot use again?
 * retired_release_spent - free the pads that were kept, and of @count sites that are no jumps
 *                         any more the pads, detours and copies that they cannot use again.
 * retired_release - the same, and the detours and copies that the sites could use again.
 * No thread can be inside any of them.
 * Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
bool retired_at(const struct site *site);
void retired_release_spent(struct site **sites, size_t count);
void retired_release(struct site **sites, size_t count);
