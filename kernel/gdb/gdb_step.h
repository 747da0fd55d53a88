/* gdb_step.h - one thread goes on for an instruction, or for a line. */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* gdb_step_start - let @t, which is on a CPU, stop behind its next instruction; and if it
 * is in [@start, @end) then, behind the next one, until it leaves the range.
 * @alone: no other CPU runs meanwhile, and this one takes no interrupts
 * @done:  receives whether it has been made already, without running
 * Return: NULL; or why not, in words. Context: serving.
 */
const char *gdb_step_start(struct thread *t, uintptr_t start, uintptr_t end, bool alone,
                           bool *done);

/* gdb_step_cancel - a stop has come first, for another reason. Context: serving. */
void gdb_step_cancel(void);

/* gdb_step_trap - #DB: does it end a step? Context: trap.
 * Return: false: it is not of the debugger's.
 */
bool gdb_step_trap(struct pt_regs *regs);
