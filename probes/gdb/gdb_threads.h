/* gdb_threads.h - shows kernel threads to the debugger.
 *
 * The number of a thread is its tid. The idle thread of CPU n has no tid: its number is
 * GDB_IDLE + n.
 */
#pragma once

#include "kernel/thread/thread.h"
#include "probes/gdb/gdb_packet.h"

#define GDB_IDLE 1000000u

/* gdb_thread_id - return the debugger's number of @t. */
unsigned gdb_thread_id(const struct thread *t);

/* gdb_thread_put - put the debugger's number of @t into a packet. Context: held. */
void gdb_thread_put(struct gdb_out *to, const struct thread *t);

/* gdb_thread_find - return the thread with number @id; NULL: there is none.
 * Context: held.
 */
struct thread *gdb_thread_find(unsigned id);

/* gdb_thread_state - write into @text what @t does: "waiting", "on CPU 1". Context: held. */
void gdb_thread_state(const struct thread *t, char *text, size_t len);
