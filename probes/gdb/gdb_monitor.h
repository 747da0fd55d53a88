/* gdb_monitor.h - runs commands of the console for gdb's `monitor COMMAND`. */
#pragma once

#include "probes/gdb/gdb_packet.h"

/* gdb_monitor_command - answer qRcmd. @r begins behind its comma. A command that only
 * reads is run at once, while all CPUs stand, if no lock is in its way. Any other command
 * is run when the kernel runs. Context: held.
 */
void gdb_monitor_command(struct gdb_request *r);

/* gdb_monitor_has_work - is a command waiting for the kernel to run? Context: any.
 * gdb_monitor_work - run all commands that wait. Context: thread. It is that of the stub.
 */
bool gdb_monitor_has_work(void);
void gdb_monitor_work(void);
