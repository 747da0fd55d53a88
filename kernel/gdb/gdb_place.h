/* gdb_place.h - the addresses at which tracepoints are armed. */
#pragma once

#include "kernel/gdb/gdb_tracepoint.h"

/* gdb_place_arm - from now on a hit of its address collects for @tp, while a trace runs.
 * Context: serving. Return: NULL, or why not.
 */
const char *gdb_place_arm(struct gdb_tracepoint *tp);

/* gdb_place_leave_all - no hit finds a tracepoint any more. Context: serving. */
void gdb_place_leave_all(void);

/* gdb_place_work - take out the probes of places that were left.
 * Context: the stub's thread.
 */
void gdb_place_work(void);
