/* posix.h - the engine in an ordinary process: the functions for its tests, besides
 * probes/kprobe.h.
 *
 * A thread stands for a CPU. It has an area of its own, and signals on a stack of its own
 * stand for traps. SIGTRAP is #BP if an int3 raised it, and #DB if TF did. While its
 * handler runs, all signals are blocked, as interrupts are in the kernel, except for
 * SIGPROF and the signals that an instruction raises. SIGPROF stands for an NMI: it comes
 * at any moment, also inside the engine.
 *
 * The program's text can be written through an alias, so every function of it can carry
 * probes, also those of the engine. In a process, popf and cli cannot change IF, IOPL, NT
 * or ID, because no signal handler may change them.
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* posix_init - start the port, in the first call, and enter the calling thread. A later
 * call only switches jumps off. If Linux cannot synchronise cores, the program ends as
 * skipped.
 */
void posix_init(void);

/* posix_rounds - return how often a test repeats its work: @usual times, or with LONG=1
 * @when_long times if that is more. With sanitizers @when_long counts for a tenth: they
 * are slow, and many repetitions find other bugs than they do.
 */
unsigned long posix_rounds(unsigned long usual, unsigned long when_long);

/* posix_thread_enter, posix_thread_leave - let the calling thread become a CPU, and end
 * that. A thread may hit probes only between the two calls. A thread that has left may
 * enter again.
 */
void posix_thread_enter(void);
void posix_thread_leave(void);

/* posix_text_new - return executable memory that counts as text. It is full of int3, and
 * is never freed.
 * @len: bytes; all calls together get 16 MiB at most
 * posix_text_set - write to this or other text, before any thread runs there.
 */
uint8_t *posix_text_new(size_t len);
void posix_text_set(uintptr_t addr, const void *bytes, size_t len);
/* posix_text_alias - return the address at which the text at @addr can be written at any
 * time, without the engine's protocol.
 */
uint8_t *posix_text_alias(uintptr_t addr);

/* posix_text_entered - declare that all targets in [start, end) are known: they are the
 * starts of its functions, and the addresses that the caller gives to targets_add(). All
 * other text counts as opaque.
 */
void posix_text_entered(uintptr_t start, uintptr_t end);

/* posix_debug_hook - called at each single step of a program that has TF set; may change
 * the image.
 * Context: trap.
 */
extern void (*posix_debug_hook)(struct pt_regs *regs);

/* posix_traps - the number of #BP and #DB, also those that are for the program. */
extern _Atomic unsigned long posix_traps;

/* posix_nmi_hook - called at each SIGPROF, which stands for an NMI. */
extern void (*posix_nmi_hook)(void);

/* posix_blocks - return the number of blocks of plat_alloc() and pages of
 * plat_exec_alloc() that are not freed yet.
 */
size_t posix_blocks(void);
