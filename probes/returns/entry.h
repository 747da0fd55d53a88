/* entry.h - where jprobes and return probes are: at the entries of functions. */
#pragma once

#include "probes/kprobe.h"

/* entry_resolve - the address that @p means, if a function begins there.
 * Locks: none; @p is the caller's.  Return: 0; a reason's errno, with @why filled.
 */
int entry_resolve(const struct kprobe *p, uintptr_t *addr, struct probe_reject *why);
