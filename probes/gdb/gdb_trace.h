/* gdb_trace.h - answers the packets of tracepoints: QT and qT. */
#pragma once

#include "probes/gdb/gdb_packet.h"

/* gdb_trace_init - allocate memory for frames. Context: boot. Return: false: there are no
 * tracepoints, for want of memory, or because of more than MAX_CPUS_TRACED CPUs.
 */
bool gdb_trace_init(void);

/* gdb_trace_packet - answer a packet that begins with QT. @r begins behind these letters.
 * gdb_trace_query - do the same for qT. Context: held.
 */
void gdb_trace_packet(struct gdb_request *r);
void gdb_trace_query(struct gdb_request *r);

/* gdb_trace_detach - the debugger detaches: end the trace, unless the debugger has said
 * that the trace goes on then. Context: held.
 */
void gdb_trace_detach(void);
