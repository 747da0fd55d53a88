/* holder.h - kretprobe holders: made, taken out of use, freed.
 *
 * Context of all: thread.  Locks of all: PLAT_PROBES held.
 */
#pragma once

#include "probes/returns/shadow.h"

/* holder_new - make the holder of @rp, with the data size and the limit that @rp has now.
 * Return: NULL without memory.
 */
struct kretprobe_holder *holder_new(struct kretprobe *rp);
/* holder_retire - take @h out of use; holder_sweep() will free it. @h->rp is NULL already,
 * and no hit makes shadow entries that point at @h any more.
 */
void holder_retire(struct kretprobe_holder *h);
/* holder_sweep - free the retired holders that no shadow entry points at. */
void holder_sweep(void);
