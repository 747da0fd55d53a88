/* gdb_session.h - what the files that answer packets share. */
#pragma once

#include "kernel/gdb/gdb_packet.h"

struct thread;

/* One packet and its answer. */
struct gdb_request {
    const char *at; /* what is left to read */
    const char *end;
    struct gdb_out *out;
};

/* gdb_ok - OK.   gdb_error - E. and @why, one line.   gdb_done - one of the two.
 * Context: serving.
 */
void gdb_ok(struct gdb_request *r);
void gdb_error(struct gdb_request *r, const char *why);
void gdb_done(struct gdb_request *r, const char *why);

/* gdb_selected - the thread that the debugger asks about. Context: serving. */
struct thread *gdb_selected(void);
