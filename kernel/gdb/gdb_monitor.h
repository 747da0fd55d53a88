/* gdb_monitor.h - `monitor COMMAND`: the console's commands, from gdb. */
#pragma once

#include "kernel/gdb/gdb_session.h"

/* gdb_monitor_command - qRcmd, behind its comma. A command that only reads is run at once,
 * while all CPUs stand; any other one when the kernel runs. Context: serving.
 */
void gdb_monitor_command(struct gdb_request *r);

/* gdb_monitor_has_work - is a command waiting for the kernel to run? Context: any.
 * gdb_monitor_work - run them. Context: the stub's thread.
 */
bool gdb_monitor_has_work(void);
void gdb_monitor_work(void);
