/* trace_table.h - prints what the console's `trace` has counted as a table. */
#pragma once

#include "kernel/fs/seq.h"
#include "probes/console/trace_line.h"
#include "probes/trace/language/hist.h"

/* trace_table_print - print @hist to @out as the table that answer @i of @line asks for.
 * Context: thread.  Locks: the trace lock held.
 */
void trace_table_print(const struct trace_line *line, unsigned i, const struct hist *hist,
                       struct seq *out);
