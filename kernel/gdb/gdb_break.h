/* gdb_break.h - the debugger's breakpoints: kprobes, which become jumps; and debug
 * registers, for data and for what cannot carry a probe.
 */
#pragma once

#include "kernel/base/regs.h"
#include "kernel/gdb/gdb_session.h"

#include <stdbool.h>

/* gdb_break_insert, gdb_break_remove - Z and z, behind that letter.
 * Context: serving.
 */
void gdb_break_insert(struct gdb_request *r);
void gdb_break_remove(struct gdb_request *r);

/* gdb_break_remove_all - the debugger says good-bye. Context: serving. */
void gdb_break_remove_all(void);

/* gdb_break_arm - register @kp, whose handler is filled in, at @addr, while all CPUs stand.
 * Return: NULL; or why not, in words. Context: serving.
 */
struct kprobe;
const char *gdb_break_arm(struct kprobe *kp, uintptr_t addr);

/* gdb_break_settle - the debugger lets all CPUs run: what it has taken out and not put back
 * is really taken out, soon. Context: serving.
 */
void gdb_break_settle(void);

/* gdb_break_trap - #DB: a debug register of the debugger's? Context: trap. */
bool gdb_break_trap(struct pt_regs *regs);

/* gdb_break_has_work - is there anything to take out? Context: any. */
bool gdb_break_has_work(void);

/* gdb_break_work - take out what is not wanted any more. Context: the stub's thread. */
void gdb_break_work(void);
