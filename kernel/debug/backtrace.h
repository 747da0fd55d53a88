/* backtrace.h - the chain of callers, by frame pointers. */
#pragma once

#include "kernel/base/regs.h"

#include <stddef.h>
#include <stdint.h>

/* backtrace_collect - return addresses from an image outwards.
 * @regs: where to start; NULL for the caller of this function
 * @out:  the image's ip first, then the callers, innermost first
 * @max:  room in @out
 *
 * Stops at the first frame that is not readable, not aligned or not further up.
 *
 * Context: any.  Return: how many were stored.
 */
size_t backtrace_collect(const struct pt_regs *regs, uintptr_t *out, size_t max);

/* backtrace_set_resolver - @fn turns a return address found at @slot, or the ip of an image
 * (@slot is NULL) with stack pointer @sp, into the one that the program would have there
 * without probes. Context: boot.
 */
typedef uintptr_t (*backtrace_resolver_t)(uintptr_t addr, const uintptr_t *slot,
                                          uintptr_t sp);
void backtrace_set_resolver(backtrace_resolver_t fn);

/* backtrace_original - what the resolver says; @addr itself without one. Context: any. */
uintptr_t backtrace_original(uintptr_t addr, const uintptr_t *slot, uintptr_t sp);

/* backtrace_print - the same as lines "  0x... symbol+0x12/0x40" given to @line. The ip of an
 * image is shown as it is; a caller by the last byte of its call instruction, which is one
 * below the return address and always inside the calling function. Context: any.
 */
void backtrace_print(const struct pt_regs *regs, void (*line)(const char *fmt, ...));
