/* gdb_session.h - one session with a debugger, and what files share that answer packets. */
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

/* gdb_take_range - ADDRESS , LENGTH. Context: serving. */
bool gdb_take_range(struct gdb_request *r, uint64_t *addr, uint64_t *len);

/* gdb_session - tell the debugger why CPU @cpu, the executing one, has stopped, and answer
 * it until it lets a CPU go. Context: serving.
 */
void gdb_session(unsigned cpu);

/* gdb_session_ends - the status that the next GDB_WHY_EXIT tells. Context: thread. */
void gdb_session_ends(unsigned status);
