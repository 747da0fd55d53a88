/* gdb_session.h - runs a session with a debugger; and what all files need that answer
 * packets.
 */
#pragma once

#include "probes/gdb/gdb_packet.h"

struct thread;

/* A packet and its answer. */
struct gdb_request {
    const char *at; /* [at, end): the part that is not read yet */
    const char *end;
    struct gdb_out *out;
};

/* gdb_ok - answer OK.
 * gdb_error - answer "E." and @why, a sentence of one line.
 * gdb_done - answer as gdb_ok() if @why is NULL, else as gdb_error().
 * Context: serving.
 */
void gdb_ok(struct gdb_request *r);
void gdb_error(struct gdb_request *r, const char *why);
void gdb_done(struct gdb_request *r, const char *why);

/* gdb_selected - return the thread that the debugger asks about. Context: serving. */
struct thread *gdb_selected(void);

/* gdb_take_range - read ADDRESS,LENGTH from the packet.
 * Return: false: the packet has something else there. Context: serving.
 */
bool gdb_take_range(struct gdb_request *r, uint64_t *addr, uint64_t *len);

/* gdb_session - tell the debugger why CPU @cpu, the executing CPU, has stopped, and
 * answer its packets until it lets a CPU go. Context: serving.
 */
void gdb_session(unsigned cpu);

/* gdb_session_ends - set the exit status that is told at the next GDB_WHY_EXIT.
 * Context: thread.
 */
void gdb_session_ends(unsigned status);
