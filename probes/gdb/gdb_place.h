/* gdb_place.h - arms tracepoints at their addresses, and takes their probes out. */
#pragma once

#include "probes/gdb/gdb_tracepoint.h"

/* gdb_place_arm - let each hit of its address collect for @tp from now on, while a trace
 * runs. Context: held. Return: NULL; or why not, in words.
 */
const char *gdb_place_arm(struct gdb_tracepoint *tp);

/* gdb_place_leave_all - let no hit find a tracepoint any more. Context: held. */
void gdb_place_leave_all(void);

/* gdb_place_work - take out the probes at addresses that have no tracepoint any more.
 * Context: thread. It is that of the stub.
 */
void gdb_place_work(void);
