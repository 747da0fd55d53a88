/* gdb_transfer.h - what is longer than a packet. */
#pragma once

#include "kernel/gdb/gdb_session.h"

/* gdb_query_threads, gdb_query_more_threads - qfThreadInfo, qsThreadInfo.
 * gdb_query_thread_text - qThreadExtraInfo.
 * gdb_query_target, gdb_query_thread_document, gdb_query_collected - qXfer, of target.xml, of
 * the threads, of what the selected trace frame has.
 * Context: serving.
 */
void gdb_query_threads(struct gdb_request *r);
void gdb_query_more_threads(struct gdb_request *r);
void gdb_query_thread_text(struct gdb_request *r);
void gdb_query_target(struct gdb_request *r);
void gdb_query_thread_document(struct gdb_request *r);
void gdb_query_collected(struct gdb_request *r);
