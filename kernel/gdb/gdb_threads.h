/* gdb_threads.h - kernel threads as the debugger sees them.
 *
 * The number of a thread is its tid; the idle thread of CPU n, which has none, is
 * GDB_IDLE + n. The list of threads is read as it stands, maybe in the middle of a
 * change: each read may fail, and the walk has an end.
 */
#pragma once

#include "kernel/gdb/gdb_packet.h"
#include "kernel/thread/thread.h"

#define GDB_IDLE 1000000u

/* gdb_thread_id - the debugger's number of @t. */
unsigned gdb_thread_id(const struct thread *t);

/* gdb_thread_put - the same, into a packet. Context: serving. */
void gdb_thread_put(struct gdb_out *to, const struct thread *t);

/* gdb_thread_find - the thread with this number; NULL: there is none. Context: serving.
 */
struct thread *gdb_thread_find(unsigned id);

/* gdb_thread_for_each - call @fn for each, until it answers false. Context: serving. */
void gdb_thread_for_each(bool (*fn)(struct thread *t, void *arg), void *arg);

/* gdb_thread_describe - "optimizer, waiting". Context: serving. */
void gdb_thread_describe(const struct thread *t, char *text, size_t len);
