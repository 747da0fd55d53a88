/* gdb_break.h - sets and removes the debugger's breakpoints. They are kprobes, which
 * become jumps; or debug registers, for data and for instructions that cannot carry a
 * probe.
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/gdb/gdb_packet.h"

#include <stdbool.h>

/* gdb_break_insert, gdb_break_remove - answer Z and z. @r begins behind that letter.
 * Context: held.
 */
void gdb_break_insert(struct gdb_request *r);
void gdb_break_remove(struct gdb_request *r);

/* gdb_break_remove_all - remove all breakpoints, since the debugger detaches.
 * Context: held.
 */
void gdb_break_remove_all(void);

/* gdb_break_arm - register @kp at @addr while all CPUs stand. The caller has filled in
 * the handler.
 * Return: NULL; or why not, in words. Context: held.
 */
struct kprobe;
const char *gdb_break_arm(struct kprobe *kp, uintptr_t addr);

/* gdb_break_is_armed - can @kp, which gdb_break_arm() has registered, still be hit? It
 * cannot if its text has gone, or if the user has switched probes off. Context: held.
 */
bool gdb_break_is_armed(const struct kprobe *kp);

/* gdb_break_settle - the debugger lets all CPUs run: let the stub's thread take out the
 * probes of breakpoints that the debugger has removed and not set again. Context: held.
 */
void gdb_break_settle(void);

/* gdb_break_has_work - has gdb_break_work() anything to do? Context: any. */
bool gdb_break_has_work(void);

/* gdb_break_work - take out the probes of breakpoints that are not wanted any more.
 * Context: thread. It is that of the stub.
 */
void gdb_break_work(void);
