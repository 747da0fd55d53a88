/* files.c - makes trace, trace_pipe, tracing_on, trace_marker, and the files that
 * describe records.
 */
#include "probes/trace/files/files.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/time/sample.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/files/events.h"
#include "probes/trace/files/files_parts.h"
#include "probes/trace/files/tracefs.h"
#include "probes/trace/live/live.h"
#include "probes/trace/ring/format.h"

#include <stdio.h>
#include <string.h>

/* ---- trace ---- */

static int trace_show(struct seq *s, void *priv UNUSED)
{
    return trace_show_cpu(s, -1, MERGE_LOOK);
}

static int pipe_show(struct seq *s, void *priv UNUSED)
{
    return trace_show_cpu(s, -1, MERGE_TAKE);
}

static int trace_truncate(void *priv UNUSED)
{
    int err;

    trace_lock();
    err = buffer_reset(-1);
    trace_unlock();
    return err;
}

static long trace_write(void *priv UNUSED, const char *text UNUSED, size_t len)
{
    return (long)len;
}

/* ---- tracing_on ---- */

static int on_show(struct seq *s, void *priv UNUSED)
{
    seq_printf(s, "%d\n", !buffer_is_off());
    return 0;
}

static long on_write(void *priv UNUSED, const char *text, size_t len)
{
    uint64_t value;
    int err = trace_number(text, len, &value);

    if (err)
        return err;
    buffer_switch(value != 0);
    return (long)len;
}

/* ---- profile_hz ---- */

static int hz_show(struct seq *s, void *priv UNUSED)
{
    seq_printf(s, "%u\n", sample_hz());
    return 0;
}

static long hz_write(void *priv UNUSED, const char *text, size_t len)
{
    uint64_t value;
    int err = trace_number(text, len, &value);

    trace_lock();
    if (!err)
        err = value > SAMPLE_HZ_MAX ? -EINVAL : sample_set_hz((unsigned)value);
    trace_unlock();
    return err ? err : (long)len;
}

/* ---- trace_marker ---- */

#define MARKER_MAX 1024 /* bytes of one write, as on Linux */

/* tracing_mark_write - write a record of trace_marker. The record holds the address of
 * this function, so its text begins with the name of the function. Linux's function has
 * that name.
 */
static NOINLINE long tracing_mark_write(void *priv UNUSED, const char *text, size_t len)
{
    size_t kept = len < MARKER_MAX ? len : MARKER_MAX;
    bool newline = kept && text[kept - 1] == '\n';
    struct record_text *record;
    struct ring *ring;

    if (!trace_option_is(OPTION_MARKERS))
        return -EINVAL;
    preempt_disable();
    record = record_begin(&event_print, sizeof(*record) + kept + 2, FLAGS_IF, &ring);
    if (record) {
        record->head.preempt_count--; /* of preempt_disable() above */
        record->ip = (uintptr_t)tracing_mark_write;
        memcpy(record->text, text, kept);
        memcpy(record->text + kept, newline ? "\0" : "\n", 2);
        record_end(ring);
    }
    preempt_enable();
    return record ? (long)kept : -EBADF;
}

static long marker_write(void *priv, const char *text, size_t len)
{
    int err;

    trace_lock();
    err = buffer_expand();
    trace_unlock();
    return err ? err : tracing_mark_write(priv, text, len);
}

/* ---- files that describe records ---- */

static void show_comm(int pid, const char *name, void *arg)
{
    seq_printf(arg, "%d %s\n", pid, name);
}

static int cmdlines_show(struct seq *s, void *priv UNUSED)
{
    comm_each(show_comm, s);
    return 0;
}

static int nothing_show(struct seq *s UNUSED, void *priv UNUSED)
{
    return 0;
}

static int page_show(struct seq *s, void *priv UNUSED)
{
    struct print p;

    trace_printer(&p, s);
    format_page(&p);
    return 0;
}

static int header_show(struct seq *s, void *priv UNUSED)
{
    struct print p;

    trace_printer(&p, s);
    format_header(&p);
    return 0;
}

static int own_format_show(struct seq *s, void *priv)
{
    struct print p;

    trace_printer(&p, s);
    format_event(&p, priv);
    return 0;
}

static int own_id_show(struct seq *s, void *priv)
{
    seq_printf(s, "%u\n", ((const struct event *)priv)->id);
    return 0;
}

static const char readme[] =
    "tracing mini-HOWTO:\n\n"
    "# echo 0 > tracing_on : quick way to disable tracing\n"
    "# echo 1 > tracing_on : quick way to re-enable tracing\n\n"
    " Important files:\n"
    "  trace\t\t\t- The static contents of the buffer\n"
    "\t\t\t  To clear the buffer write into this file: echo > trace\n"
    "  trace_pipe\t\t- A consuming read to see the contents of the buffer\n"
    "  current_tracer\t- function and latency tracers\n"
    "  available_tracers\t- list of configured tracers for current_tracer\n"
    "  error_log\t- error log for failed commands (that support it)\n"
    "  buffer_size_kb\t- view and modify size of per cpu buffer\n"
    "  buffer_total_size_kb  - view total size of all cpu buffers\n\n"
    "  snapshot\t\t- The snapshot buffer, like `trace`\n"
    "  trace_clock\t\t- change the clock used to order events\n"
    "\n  trace_marker\t\t- Writes into this file writes into the kernel buffer\n"
    "  trace_options\t\t- Set format or modify how tracing happens\n"
    "\t\t\t  Disable an option by prefixing 'no' to the\n"
    "\t\t\t  option name\n"
    "  saved_cmdlines\t\t- the names of the threads that records have\n"
    "  available_filter_functions - list of functions that can be probed\n"
    "  dynamic_events\t\t- Create/append/remove/show the generic dynamic events\n"
    "\t\t\t  Write into this file to define/undefine new trace events.\n"
    "  kprobe_events\t\t- Create/append/remove/show the kernel dynamic events\n"
    "\t\t\t  Write into this file to define/undefine new trace events.\n"
    "\t  accepts: event-definitions (one definition per line)\n"
    "\t   Format: p[:[<group>/][<event>]] <place> [<args>]\n"
    "\t           r[maxactive][:[<group>/][<event>]] <place> [<args>]\n"
    "\t           w[:[<group>/][<event>]] [w|rw]@<addr>[:<len>] [<args>]\n"
    "\t           -:[<group>/][<event>]\n"
    "\t    place: [<module>:]<symbol>[+<offset>]|<memaddr>\n"
    "place (kretprobe): [<module>:]<symbol>[+<offset>]%return|<memaddr>\n"
    "\t     args: <name>=fetcharg[:type]\n"
    "\t fetcharg: (%<register>|$<efield>), @<address>, @<symbol>[+|-<offset>],\n"
    "\t           $stack<index>, $stack, $retval, $comm, $arg<N>,\n"
    "\t           $addr, $value,\n"
    "\t           +|-[u]<offset>(<fetcharg>), \\imm-value, \\\"imm-string\"\n"
    "\t     type: s8/16/32/64, u8/16/32/64, x8/16/32/64, char, string, symbol,\n"
    "\t           b<bit-width>@<bit-offset>/<container-size>, ustring, symstr,\n"
    "\t           <type>\\[<array-size>\\]\n"
    "\t kernel return probes support: $retval, $arg<N>, $comm\n"
    "  set_event\t\t- Enables events by name written into it\n"
    "  available_events\t- the events there are\n"
    "  events/\t\t- Directory containing all trace event subsystems:\n"
    "      enable\t\t- Write 0/1 to enable/disable tracing of all events\n"
    "  events/<system>/\t- Directory containing all trace events for <system>:\n"
    "      enable\t\t- Write 0/1 to enable/disable tracing of all <system>\n"
    "\t\t\t  events\n"
    "      filter\t\t- If set, only events passing filter are traced\n"
    "  events/<system>/<event>/\t- Directory containing control files for\n"
    "\t\t\t  <event>:\n"
    "      enable\t\t- Write 0/1 to enable/disable tracing of <event>\n"
    "      filter\t\t- If set, only events passing filter are traced\n"
    "      trigger\t\t- If set, a command to perform when event is hit\n"
    "\t    Format: <trigger>[:count][if <filter>]\n"
    "\t   trigger: traceon, traceoff\n"
    "\t            enable_event:<system>:<event>\n"
    "\t            disable_event:<system>:<event>\n"
    "\t            enable_hist:<system>:<event>\n"
    "\t            disable_hist:<system>:<event>\n"
    "\t\t    stacktrace\n"
    "\t\t    snapshot\n"
    "\t\t    hist (see below)\n"
    "\t   The first one will disable tracing every time the event is hit;\n"
    "\t   with a count, that many times only. A '!' in front removes it.\n"
    "      hist trigger\t- If set, event hits are aggregated into a hash table\n"
    "\t    Format: hist:keys=<field1[,field2,...]>\n"
    "\t            [:values=<field1[,field2,...]>]\n"
    "\t            [:sort=<field1[,field2,...]>]\n"
    "\t            [:size=#entries]\n"
    "\t            [:pause][:continue][:clear]\n"
    "\t            [:name=histname1]\n"
    "\t            [if <filter>]\n";

static int readme_show(struct seq *s, void *priv UNUSED)
{
    seq_puts(s, readme);
    return 0;
}

/* ---- the tree ---- */

static const struct vfs_file files[] = {
    { .name = "trace",
      .mode = 0644,
      .show = trace_show,
      .write = trace_write,
      .truncate = trace_truncate },
    { .name = "trace_pipe", .mode = 0444, .show = pipe_show, .write = tracefs_read_only },
    { .name = "tracing_on", .mode = 0644, .show = on_show, .write = on_write },
    { .name = "trace_marker",
      .mode = 0220,
      .show = tracefs_write_only,
      .write = marker_write },
    { .name = "profile_hz", .mode = 0644, .show = hz_show, .write = hz_write },
    { .name = "saved_cmdlines",
      .mode = 0444,
      .show = cmdlines_show,
      .write = tracefs_read_only },
    { .name = "printk_formats",
      .mode = 0444,
      .show = nothing_show,
      .write = tracefs_read_only },
    { .name = "README", .mode = 0444, .show = readme_show, .write = tracefs_read_only },
    { .name = "events/header_page",
      .mode = 0444,
      .show = page_show,
      .write = tracefs_read_only },
    { .name = "events/header_event",
      .mode = 0444,
      .show = header_show,
      .write = tracefs_read_only },
    { .name = "events/ftrace/print/format",
      .mode = 0444,
      .show = own_format_show,
      .write = tracefs_read_only,
      .priv = &event_print },
    { .name = "events/ftrace/print/id",
      .mode = 0444,
      .show = own_id_show,
      .write = tracefs_read_only,
      .priv = &event_print },
    { .name = "events/ftrace/kernel_stack/format",
      .mode = 0444,
      .show = own_format_show,
      .write = tracefs_read_only,
      .priv = &event_stack },
    { .name = "events/ftrace/kernel_stack/id",
      .mode = 0444,
      .show = own_id_show,
      .write = tracefs_read_only,
      .priv = &event_stack },
};

INIT int trace_init(void)
{
    int err = buffer_init();

    if (!err)
        err = tracefs_init();
    if (!err)
        err = tracefs_add(NULL, files, ARRAY_LEN(files));
    if (!err)
        err = trace_add_options();
    if (!err)
        err = trace_add_control();
    if (!err)
        err = trace_add_definitions();
    if (!err)
        err = trace_add_events();
    if (!err)
        err = trace_add_snapshot();
    if (!err)
        err = trace_add_buffer_files();
    if (!err)
        err = trace_add_pages();
    if (!err)
        live_program_init();
    if (!err)
        live_add_marks();
    return err;
}
