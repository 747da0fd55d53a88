/* holder.h - kretprobe holders: made, taken out of use, freed.
 *
 * Context of all: thread.  Locks: PLAT_PROBES held.
 */
#pragma once

#include "probes/returns/shadow.h"

/* holder_new - for @rp, by what it asks for now. Return: NULL without memory. */
struct kretprobe_holder *holder_new(struct kretprobe *rp);
/* holder_retire - @h->rp is NULL, and no hit makes entries of it any more. */
void holder_retire(struct kretprobe_holder *h);
/* holder_sweep - free those retired ones that no entry points at. */
void holder_sweep(void);
