/* gdb_define.h - owns the tracepoints and trace variables that the debugger has defined.
 */
#pragma once

#include "probes/gdb/gdb_tracepoint.h"

/* gdb_point - return tracepoint @i, in the order of definition. Context: held.
 * Return: NULL: @i is too large.
 */
struct gdb_tracepoint *gdb_point(size_t i);

/* gdb_take_point - read NUMBER:ADDR from a packet, and find that tracepoint.
 * Context: held.
 * Return: NULL: there is no such tracepoint.
 */
struct gdb_tracepoint *gdb_take_point(struct gdb_request *r);

/* gdb_define_point - answer QTDP: define a tracepoint, or add actions to it. While a
 * trace runs, the tracepoint is armed after its last action.
 * gdb_define_source - answer QTDPsrc: keep text of the source.
 * gdb_define_variable - answer QTDV: define a trace variable. Context: held.
 */
void gdb_define_point(struct gdb_request *r);
void gdb_define_source(struct gdb_request *r);
void gdb_define_variable(struct gdb_request *r);

/* gdb_define_init - allocate memory for definitions. Context: boot. Return: false: there
 * is none.
 */
bool gdb_define_init(void);

/* gdb_define_forget - forget all definitions. No tracepoint may be armed. Context: held.
 * gdb_define_restart - reset counters and variables for a new trace.
 */
void gdb_define_forget(void);
void gdb_define_restart(void);

/* gdb_tell_points, gdb_tell_next_point - answer qTfP, qTsP: tell the definitions of
 * tracepoints.
 * gdb_tell_variables, gdb_tell_next_variable - answer qTfV, qTsV: tell those of
 * variables. Context: held.
 */
void gdb_tell_points(struct gdb_request *r);
void gdb_tell_next_point(struct gdb_request *r);
void gdb_tell_variables(struct gdb_request *r);
void gdb_tell_next_variable(struct gdb_request *r);

/* gdb_define_greet - note that a new debugger has come. Context: held. */
void gdb_define_greet(void);
