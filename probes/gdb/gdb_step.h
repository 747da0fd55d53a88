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
 * Return: NULL; or why not, in words. Context: serving.
 */
const char *gdb_step_start(struct thread *t, uintptr_t start, uintptr_t end, bool alone,
                           bool *done);

/* gdb_step_cancel - end the step that is under way, if any: the kernel has stopped for
 * another reason first. Context: serving.
 */
void gdb_step_cancel(void);

/* gdb_step_trap - handle #DB: go on with the debugger's step, or end it. Context: trap.
 * Return: false: the trap is not of a step of the debugger.
 */
bool gdb_step_trap(struct pt_regs *regs);
