/* gdb_transfer.h - sends answers that may be longer than a packet. */
#pragma once

#include "probes/gdb/gdb_packet.h"

/* gdb_query_threads, gdb_query_more_threads - answer qfThreadInfo, qsThreadInfo: list the
 * threads.
 * gdb_query_thread_text - answer qThreadExtraInfo: describe a thread.
 * gdb_query_target, gdb_query_thread_document, gdb_query_collected - answer qXfer: send a
 * piece of target.xml, of the threads, or of what the selected trace frame has.
 * Context: held.
 */
void gdb_query_threads(struct gdb_request *r);
void gdb_query_more_threads(struct gdb_request *r);
void gdb_query_thread_text(struct gdb_request *r);
void gdb_query_target(struct gdb_request *r);
void gdb_query_thread_document(struct gdb_request *r);
void gdb_query_collected(struct gdb_request *r);
