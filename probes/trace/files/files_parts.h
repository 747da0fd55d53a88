/* files_parts.h - what the files of the tracer share. For probes/trace/files only. */
#pragma once

#include "kernel/fs/seq.h"
#include "probes/trace/page_merge.h"

/* trace_show_cpu - the records of @cpu, or of all with -1, as text; with MERGE_LOOK a
 * header is in front of them.  Return: 0; -ENOMEM.
 */
int trace_show_cpu(struct seq *s, int cpu, enum merge_how how);

/* trace_show_snapshot - the snapshot, which is there, as `trace` shows the buffer.
 * Locks: the trace lock held.  Return: 0; -ENOMEM.
 */
int trace_show_snapshot(struct seq *s);

/* trace_word - what was written, without the blanks around it.  @len: its length, both ways.
 */
const char *trace_word(const char *text, size_t *len);
/* trace_number - a written number, as Linux's kstrtoul() takes it: decimal, one newline
 * behind it.  Return: 0; -EINVAL, -ERANGE.
 * trace_switch - 0 or 1, the same way.  Return: 0; -EINVAL, -ERANGE.
 */
int trace_number(const char *text, size_t len, uint64_t *out);
int trace_switch(const char *text, size_t len, bool *on);

/* trace_add_pages - the console's `trace-pages`. Return: as shell_add_developer_command(). */
int trace_add_pages(void);

/* trace_describe - keep the format of @e, which is new, for a host that records, if there is
 * one: it may go, or the kernel panic, before the host can ask for it.
 * Locks: the trace lock held.
 */
struct live_event;
void trace_describe(const struct live_event *e);

/* trace_add_control - set_event_pid, tracing_cpumask and so on. Return: as vfs_add_tree(). */
int trace_add_control(void);

/* trace_add_tracer - current_tracer, available_tracers. Return: as vfs_add_tree(). */
int trace_add_tracer(void);
