/* entry.h - the place of a jprobe or a return probe: it must be the entry of a function. */
#pragma once

#include "probes/kprobe.h"

/* entry_resolve - find the address that @p means, and refuse it unless a function begins
 * there.
 * Locks: none. No other thread changes @p.  Return: 0; a reason's errno, with @why filled.
 */
int entry_resolve(const struct kprobe *p, uintptr_t *addr, struct probe_reject *why);
