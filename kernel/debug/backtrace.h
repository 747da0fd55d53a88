/* backtrace.h - finds the chain of callers, by frame pointers. */
#pragma once

#include "kernel/base/regs.h"

#include <stddef.h>
#include <stdint.h>

/* backtrace_collect - collect return addresses, from an image outwards.
 * @regs: where to start; NULL for the caller of this function
 * @out:  the image's ip first, then the callers, innermost first. A caller that was
 *        interrupted at the start of its function is stored as the address behind: so the
 *        byte in front of each return address and of this one is in the function to name
 * @max:  room in @out
 *
 * Stops at the first frame that cannot be read, is not aligned, or is not further up.
 *
 * Context: any.  Return: how many addresses were stored.
 */
size_t backtrace_collect(const struct pt_regs *regs, uintptr_t *out, size_t max);

/* backtrace_calls - collect all return addresses of a thread that has given its CPU up.
 * @bp:  the frame pointer with which the thread will go on
 * @out: the return addresses, innermost first
 * @max: room in @out
 *
 * The result is complete: each function that has called another one has a frame. Code that
 * was interrupted may have none yet, and generated code has none. So if there is an image
 * on the way, no result is better than one that may lack a caller.
 *
 * Context: any.  Return: how many addresses were stored; 0: there is an image on the way,
 * or not enough room, or the chain does not lead to the function in which a thread begins.
 */
size_t backtrace_calls(uintptr_t bp, uintptr_t *out, size_t max);

/* backtrace_resolver - a socket: turns a return address that was found at
 * @slot, or the ip of an image with the stack pointer @sp (then @slot is NULL), into the
 * address that the program would have there without probes. Set at boot.
 */
typedef uintptr_t (*backtrace_resolver_t)(uintptr_t addr, const uintptr_t *slot,
                                          uintptr_t sp);
extern backtrace_resolver_t backtrace_resolver;

/* backtrace_original - call the resolver; without one, return @addr. Context: any. */
uintptr_t backtrace_original(uintptr_t addr, const uintptr_t *slot, uintptr_t sp);

/* backtrace_print - print a backtrace, as lines "  0x... symbol+0x12/0x40", with @line.
 * The ip of an image is shown as it is. A caller is shown by the last byte of its call
 * instruction, which is one below the return address and always inside the calling
 * function. Context: any.
 */
void backtrace_print(const struct pt_regs *regs, void (*line)(const char *fmt, ...));
