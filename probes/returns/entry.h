/* entry.h - the place of a jprobe or a return probe: it must be the entry of a function. */
#pragma once

#include "probes/kprobe.h"

/* entry_check - may @p, if it is no plain probe, be armed at @addr? It is asked each time
 * when text comes, because a name may mean another function then.
 * Locks: PLAT_PROBES held.  Return: 0; a reason's errno, with @why filled.
 */
int entry_check(const struct kprobe *p, uintptr_t addr, struct probe_reject *why);
