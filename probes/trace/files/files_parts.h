/* files_parts.h - functions that probes/trace/files shares. */
#pragma once

#include "kernel/fs/seq.h"
#include "probes/trace/ring/page_merge.h"

/* trace_show_cpu - print the records of @cpu; -1: of all CPUs. With MERGE_LOOK it prints
 * a header first.  Return: 0; -ENOMEM.
 */
int trace_show_cpu(struct seq *s, int cpu, enum merge_how how);

/* trace_show_snapshot - print the snapshot as `trace` prints the buffer. There must be a
 * snapshot. Locks: the trace lock held.  Return: 0; -ENOMEM.
 */
int trace_show_snapshot(struct seq *s);

/* trace_room - append @len bytes to @s. Return: them, and a NUL; NULL: no memory, or an
 * earlier error.
 * PRINT_SIZED - print the text of a function that returns the length of the whole text.
 * @call is the call, which writes to sized_buf of sized_size bytes: the first call only
 * measures.
 */
char *trace_room(struct seq *s, size_t len);
#define PRINT_SIZED(s, call)                                                             \
    do {                                                                                 \
        char *sized_buf = NULL;                                                          \
        size_t sized_size = 0, sized_len = (call);                                       \
                                                                                         \
        sized_size = sized_len + 1;                                                      \
        sized_buf = trace_room(s, sized_len);                                            \
        if (sized_buf)                                                                   \
            (void)(call);                                                                \
    } while (0)

/* trace_word - return a written text without the blanks around it.
 * @len: its length; set to the length without the blanks
 */
const char *trace_word(const char *text, size_t *len);
/* trace_number - read a written number as Linux's kstrtoul() does: it is decimal, and one
 * newline may follow.  Return: 0; -EINVAL, -ERANGE.
 * trace_switch - read 0 or 1 in the same way.  Return: 0; -EINVAL, -ERANGE.
 */
int trace_number(const char *text, size_t len, uint64_t *out);
int trace_switch(const char *text, size_t len, bool *on);

/* trace_add_pages - add `trace-pages` to the console.
 * Return: as shell_add_developer_command().
 */
int trace_add_pages(void);

/* trace_describe - keep the format of the new event @e, if a host is recording. Before
 * the host can ask for the format, the event may be deleted or the kernel may panic.
 * Locks: the trace lock held.
 */
struct live_event;
void trace_describe(const struct live_event *e);

/* trace_add_control - make set_event_pid, set_event_notrace_pid, tracing_cpumask and
 * timestamp_mode. Return: as vfs_add_tree().
 */
int trace_add_control(void);

/* trace_add_tracer - make current_tracer and available_tracers.
 * Return: as vfs_add_tree().
 */
int trace_add_tracer(void);

/* trace_add_snapshot - make the file `snapshot`.
 * Return: as vfs_add_tree().
 */
int trace_add_snapshot(void);
