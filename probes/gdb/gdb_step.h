/* gdb_step.h - lets one thread execute one instruction, or a range such as a line, and
 * stops it.
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* gdb_step_start - let @t, which is on a CPU, stop after its next instruction. If @t is
 * then in [@start, @end), it goes on, and stops after the instruction that leaves the
 * range.
 * @alone: no other CPU runs meanwhile, and the CPU of @t takes no interrupts
 * @done:  receives true if the step is complete already, and no CPU has to run for it
 * Return: NULL; or why not, in words. Context: held.
 */
const char *gdb_step_start(struct thread *t, uintptr_t start, uintptr_t end, bool alone,
                           bool *done);

/* gdb_step_cancel - end the step that is under way, if any: the kernel has stopped for
 * another reason first. @stopped: the thread that has stopped. Context: held.
 */
void gdb_step_cancel(const struct thread *stopped);

/* gdb_step_image - return the image of the program, if @t has left a step over in it; else
 * NULL. TF in this image is not the program's.
 * gdb_step_drop - give up what @t has left over. Context: held.
 */
struct pt_regs *gdb_step_image(const struct thread *t);
void gdb_step_drop(const struct thread *t);

/* gdb_step_irqs - this CPU stands from now on, or @runs: then it takes interrupts unless its
 * thread makes a step alone. Context: any, interrupts off.
 */
void gdb_step_irqs(bool runs);

/* gdb_step_trap - handle #DB: go on with the debugger's step, or end it. Context: trap.
 * Return: false: the trap is not of a step of the debugger.
 */
bool gdb_step_trap(struct pt_regs *regs);

/* gdb_step_lost - end each step of code whose stack lies between @sp and that of @regs: it is
 * code of a handler that has faulted, and that the engine has given up. The fault may be a
 * later one than that of the stepped instruction: one of the fault handler.
 * @regs: how the thread goes on. Context: trap.
 */
void gdb_step_lost(struct pt_regs *regs, uintptr_t sp);

/* gdb_step_pushes - does the instruction at @ip push the flags?
 * gdb_step_fix_pushed - take TF out of the flags that such an instruction has just pushed.
 * Context: any.
 */
bool gdb_step_pushes(uintptr_t ip);
void gdb_step_fix_pushed(const struct pt_regs *regs);

/* The same in two parts, for a #DB that may have another reason to stop.
 * gdb_step_end - is this #DB the trap of a step of the debugger? If so, give the program its
 * own flags, and clear DR6_BS in the image.
 * Return: the step, for gdb_step_go_on(); NULL: none, or a step that was cancelled.
 * gdb_step_go_on - step once more, or stop. @stopped: the kernel has stopped in between
 * Context: trap.
 */
struct gdb_step;
struct gdb_step *gdb_step_end(struct pt_regs *regs);
void gdb_step_go_on(struct gdb_step *step, struct pt_regs *regs, bool stopped);
