/* gdb_stepping.h - makes the steps of `while-stepping`, which collect without a stop. */
#pragma once

#include "kernel/base/regs.h"
#include "probes/gdb/gdb_tracepoint.h"

#include <stdbool.h>

/* gdb_stepping_begin - let the thread that has hit @tp collect after each of its next
 * instructions. @regs: the image of the hit
 * Context: any, interrupts off.
 */
void gdb_stepping_begin(struct gdb_tracepoint *tp, struct pt_regs *regs);

/* gdb_stepping_trap - handle the trap of a single step. Context: trap.
 * Return: false: the step is not of `while-stepping`.
 */
bool gdb_stepping_trap(struct pt_regs *regs);

/* gdb_stepping_forget - end all steps. Context: held. */
void gdb_stepping_forget(void);
