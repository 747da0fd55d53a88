/* posix.h - the engine in an ordinary process: what its tests use besides probes/kprobe.h.
 *
 * A thread stands for a CPU: it has an area of its own, and traps that are signals on a
 * stack of its own. SIGTRAP is #BP when an int3 raised it and #DB when TF did; while its
 * handler runs, all signals but SIGPROF are blocked, as interrupts are in the kernel.
 * SIGPROF stands for an NMI: it comes at any moment, also inside the engine.
 *
 * The program's text can be written through an alias, so every function of it can carry
 * probes, the engine's own included. What it cannot do: change IF, IOPL, NT or ID by popf or
 * cli, since no signal handler may.
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* posix_init - once, at any time; the calling thread is entered. A second call does nothing.
 * Ends the program as skipped where the kernel lacks what it needs.
 */
void posix_init(void);

/* posix_rounds - how often to do what is repeated: @usual, or with LONG=1 @when_long; a tenth
 * of that with sanitizers, which make it slow, and it is not their bugs that it looks for.
 */
unsigned long posix_rounds(unsigned long usual, unsigned long when_long);

/* posix_thread_enter, posix_thread_leave - only a thread between the two may run into
 * probes. A thread that has left may be entered again.
 */
void posix_thread_enter(void);
void posix_thread_leave(void);

/* posix_text_new - executable memory that counts as text; full of int3, never given back.
 * @len: bytes, at most 16 MiB in all
 * posix_text_set - change it, or other text, before anything runs there.
 */
uint8_t *posix_text_new(size_t len);
void posix_text_set(uintptr_t addr, const void *bytes, size_t len);
/* posix_text_alias - where the same bytes can be written at any time, with no care taken. */
uint8_t *posix_text_alias(uintptr_t addr);

/* posix_text_entered - the caller has looked at all of [start, end): code is entered there
 * where targets_add() says, and at the beginnings of its functions. Of other text nothing is
 * known.
 */
void posix_text_entered(uintptr_t start, uintptr_t end);

/* posix_debug_hook - told of single steps that are the program's own; may change the image.
 * Context: trap.
 */
extern void (*posix_debug_hook)(struct pt_regs *regs);

/* posix_traps - #BP and #DB that were taken, the program's own included. */
extern _Atomic unsigned long posix_traps;

/* posix_nmi_hook - called on SIGPROF, in the NMI that it stands for. */
extern void (*posix_nmi_hook)(void);

/* posix_blocks - blocks of plat_alloc() and pages of plat_exec_alloc() not given back. */
size_t posix_blocks(void);
