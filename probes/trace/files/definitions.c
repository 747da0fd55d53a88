/* definitions.c - makes kprobe_events, dynamic_events, kprobe_profile, error_log and
 * available_filter_functions.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/mm/heap.h"
#include "probes/core/life.h"
#include "probes/many/walk.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/files/events.h"
#include "probes/trace/files/files_parts.h"
#include "probes/trace/files/tracefs.h"
#include "probes/trace/language/error.h"
#include "probes/trace/language/synth.h"
#include "probes/trace/live/live.h"

#include <string.h>

/* ---- lines ---- */

/* What a file of lines lists, and what a line does. */
struct def_lines {
    struct live_probe *(*next)(const struct live_probe *p);
    size_t (*print)(const struct def *def, char *buf, size_t size);
    int (*command)(const char *line);
    int (*clear)(void);
};

static const struct def_lines probes = { live_probe_next, def_print, live_command,
                                         live_clear };
static const struct def_lines synths = { live_synth_next, synth_print, live_synth_command,
                                         live_synth_clear };

static int lines_show(struct seq *s, void *priv)
{
    const struct def_lines *lines = priv;
    const struct live_probe *p = NULL;

    trace_lock();
    while ((p = lines->next(p)) != NULL) {
        PRINT_SIZED(s, lines->print(p->def, sized_buf, sized_size));
        seq_puts(s, "\n");
    }
    trace_unlock();
    return 0;
}

static long lines_write(void *priv, const char *text, size_t len)
{
    const struct def_lines *lines = priv;
    char *line = kmalloc(len < DEF_LINE_MAX ? len + 1 : DEF_LINE_MAX);
    size_t left = len;
    int err = 0;

    if (!line)
        return -ENOMEM;
    trace_lock();
    while (!err && def_next_line(&text, &left, line, &err))
        err = lines->command(line);
    trace_unlock();
    kfree(line);
    return err ? err : (long)len;
}

static int lines_truncate(void *priv)
{
    const struct def_lines *lines = priv;
    int err;

    trace_lock();
    err = lines->clear();
    trace_unlock();
    return err;
}

/* ---- kprobe_profile ---- */

static void show_causes(struct seq *s, const struct live_probe *p)
{
    for (unsigned i = 0; i < MISS_CAUSES; i++)
        if (p->rp.kp.missed[i])
            seq_printf(s, " %s=%lu", probe_miss_name(i), p->rp.kp.missed[i]);
    for (unsigned i = 0; p->def->is_return && i < KRETPROBE_MISS_CAUSES; i++)
        if (p->rp.missed[i])
            seq_printf(s, " return-%s=%lu", kretprobe_miss_name(i), p->rp.missed[i]);
    if (live_own(p))
        seq_printf(s, " own=%lu", live_own(p));
    for (unsigned i = 0; i < LIVE_LOSSES; i++)
        if (live_lost(p->event, i))
            seq_printf(s, " %s=%lu", live_loss_name(i), live_lost(p->event, i));
}

/* profile_show - print Linux's three columns, and behind them the causes of misses and of
 * lost records, if there are any.
 */
static int profile_show(struct seq *s, void *priv UNUSED)
{
    const struct live_probe *p = NULL;

    trace_lock();
    while ((p = live_probe_next(p)) != NULL) {
        seq_printf(s, "  %-44s %15lu %15lu", p->def->event, live_probe_hits(p),
                   live_probe_misses(p));
        show_causes(s, p);
        seq_puts(s, "\n");
    }
    trace_unlock();
    return 0;
}

/* ---- error_log ---- */

static int log_show(struct seq *s, void *priv UNUSED)
{
    char *text = kmalloc(2 * ERROR_LOG_COMMAND);

    if (!text)
        return -ENOMEM;
    trace_lock();
    for (unsigned i = 0; error_log_print(&live_errors, i, text, 2 * ERROR_LOG_COMMAND);
         i++)
        seq_puts(s, text);
    trace_unlock();
    kfree(text);
    return 0;
}

static long log_write(void *priv UNUSED, const char *text UNUSED, size_t len)
{
    return (long)len;
}

static int log_truncate(void *priv UNUSED)
{
    trace_lock();
    error_log_clear(&live_errors);
    trace_unlock();
    return 0;
}

/* ---- available_filter_functions ---- */

static bool show_function(const struct plat_symbol *function, void *arg)
{
    struct seq *s = arg;

    if (!blacklist_why(function->start))
        seq_printf(s, "%s\n", function->name);
    return !s->err;
}

static int functions_show(struct seq *s, void *priv UNUSED)
{
    walk_functions(NULL, show_function, s);
    return 0;
}

/* ---- the tree ---- */

#define LINES(file, of)                                                                  \
    {                                                                                    \
        .name = (file), .mode = 0640, .show = lines_show, .write = lines_write,          \
        .truncate = lines_truncate, .priv = (void *)(uintptr_t) & (of)                   \
    }

static const struct vfs_file files[] = {
    LINES("kprobe_events", probes),
    LINES("dynamic_events", probes),
    LINES("synthetic_events", synths),
    { .name = "kprobe_profile",
      .mode = 0440,
      .show = profile_show,
      .write = tracefs_read_only },
    { .name = "error_log",
      .mode = 0640,
      .show = log_show,
      .write = log_write,
      .truncate = log_truncate },
    { .name = "available_filter_functions",
      .mode = 0444,
      .show = functions_show,
      .write = tracefs_read_only },
};

INIT int trace_add_definitions(void)
{
    return tracefs_add(NULL, files, ARRAY_LEN(files));
}
