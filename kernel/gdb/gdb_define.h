/* gdb_define.h - the tracepoints and trace variables that the debugger has defined. */
#pragma once

#include "kernel/gdb/gdb_tracepoint.h"

/* gdb_point - tracepoint @i, in the order of definition. Context: serving.
 * Return: NULL: there are less.
 */
struct gdb_tracepoint *gdb_point(size_t i);

/* gdb_take_point - NUMBER : ADDR of a packet, of a tracepoint that is there. Context:
 * serving.
 * Return: NULL: it is not.
 */
struct gdb_tracepoint *gdb_take_point(struct gdb_request *r);

/* gdb_define_point - QTDP.   gdb_define_source - QTDPsrc.   gdb_define_variable - QTDV.
 * Where a trace runs, the tracepoint is armed behind its last action. Context: serving.
 */
void gdb_define_point(struct gdb_request *r);
void gdb_define_source(struct gdb_request *r);
void gdb_define_variable(struct gdb_request *r);

/* gdb_define_forget - all definitions. None of them is at a place. Context: serving.
 * gdb_define_restart - counters and variables are as a new trace finds them.
 */
void gdb_define_forget(void);
void gdb_define_restart(void);

/* gdb_tell_points, gdb_tell_next_point - qTfP, qTsP.   gdb_tell_variables,
 * gdb_tell_next_variable - qTfV, qTsV. Context: serving.
 */
void gdb_tell_points(struct gdb_request *r);
void gdb_tell_next_point(struct gdb_request *r);
void gdb_tell_variables(struct gdb_request *r);
void gdb_tell_next_variable(struct gdb_request *r);

/* gdb_define_greet - a debugger has come. Context: serving. */
void gdb_define_greet(void);
