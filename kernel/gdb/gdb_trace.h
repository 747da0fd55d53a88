/* gdb_trace.h - the packets of tracepoints: QT and qT. */
#pragma once

#include "kernel/gdb/gdb_session.h"

/* gdb_trace_init - Context: boot. Return: false: no memory for frames, so no tracepoints. */
bool gdb_trace_init(void);

/* gdb_trace_packet - a packet that begins with QT, behind these letters.
 * gdb_trace_query - the same for qT.
 * Context: serving.
 */
void gdb_trace_packet(struct gdb_request *r);
void gdb_trace_query(struct gdb_request *r);

/* gdb_trace_is_constant - is the memory never written? As the debugger has said by QTro.
 * Context: serving.
 */
bool gdb_trace_is_constant(uintptr_t addr, size_t len);

/* gdb_trace_detach - the debugger says good-bye. Context: serving. */
void gdb_trace_detach(void);
