/* leftover.h - pads, detours and copies of regions whose jumps have gone. They stay as long
 * as a thread may be inside.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;

/* Pads of jumps that have got another one. */
struct leftover_pads {
    struct leftover_pads *next;
    size_t count;
    uintptr_t pads[];
};

/* leftover_pads_new - room for @max.  Return: NULL without memory.
 * leftover_keep - no jump leads to them any more; with none in it, it is freed.
 * leftover_pending - are there any?
 * Locks: PLAT_PROBES held.
 */
struct leftover_pads *leftover_pads_new(size_t max);
void leftover_keep(struct leftover_pads *pads);
bool leftover_pending(void);

/* leftover_at - has @site anything of an earlier jump that cannot be used again?
 * leftover_release_spent - free the pads that were kept, and what of that kind @count sites
 *                          have that are no jumps any more; no thread can be inside.
 * leftover_release - all that they have.
 * Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
bool leftover_at(const struct site *site);
void leftover_release_spent(struct site **sites, size_t count);
void leftover_release(struct site **sites, size_t count);
