/* options.c - makes options/, trace_options and trace_clock. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/clocks.h"
#include "probes/trace/buffer/snapshot.h"
#include "probes/trace/files/files.h"
#include "probes/trace/files/files_parts.h"
#include "probes/trace/files/tracefs.h"
#include "probes/trace/live/live.h"

#include <string.h>

/* ---- options ---- */

static const char *const names[OPTIONS] = {
    [OPTION_PRINT_PARENT] = "print-parent",
    [OPTION_SYM_OFFSET] = "sym-offset",
    [OPTION_SYM_ADDR] = "sym-addr",
    [OPTION_TRACE_PRINTK] = "trace_printk",
    [OPTION_USERSTACKTRACE] = "userstacktrace",
    [OPTION_SYM_USEROBJ] = "sym-userobj",
    [OPTION_PRINTK_MSG_ONLY] = "printk-msg-only",
    [OPTION_CONTEXT_INFO] = "context-info",
    [OPTION_OVERWRITE] = "overwrite",
    [OPTION_IRQ_INFO] = "irq-info",
    [OPTION_MARKERS] = "markers",
    [OPTION_EVENT_FORK] = "event-fork",
    [OPTION_PAUSE_ON_TRACE] = "pause-on-trace",
    [OPTION_HASH_PTR] = "hash-ptr",
    [OPTION_FUNCTION_TRACE] = "function-trace",
    [OPTION_FUNCTION_FORK] = "function-fork",
    [OPTION_DISPLAY_GRAPH] = "display-graph",
    [OPTION_STACKTRACE] = "stacktrace",
    [OPTION_CLASSIC] = "classic",
};

static unsigned options = 1u << OPTION_PRINT_PARENT | 1u << OPTION_TRACE_PRINTK |
                          1u << OPTION_CONTEXT_INFO | 1u << OPTION_OVERWRITE |
                          1u << OPTION_IRQ_INFO | 1u << OPTION_MARKERS |
                          1u << OPTION_HASH_PTR | 1u << OPTION_FUNCTION_TRACE;

bool trace_option_is(enum trace_option option)
{
    return READ_ONCE(options) >> option & 1;
}

static void option_set(enum trace_option option, bool on)
{
    trace_lock();
    WRITE_ONCE(options, on ? options | 1u << option : options & ~(1u << option));
    if (option == OPTION_OVERWRITE) {
        snapshot_hold(); /* the second set of rings is made anew */
        buffer_set_overwrite(on);
        snapshot_release();
    }
    if (option == OPTION_STACKTRACE)
        live_set_stacks(on);
    trace_unlock();
}

static int option_show(struct seq *s, void *priv)
{
    seq_printf(s, "%d\n", trace_option_is((enum trace_option)(uintptr_t)priv));
    return 0;
}

static long option_write(void *priv, const char *text, size_t len)
{
    bool on;
    int err = trace_switch(text, len, &on);

    if (err)
        return err;
    option_set((enum trace_option)(uintptr_t)priv, on);
    return (long)len;
}

static int options_show(struct seq *s, void *priv UNUSED)
{
    for (unsigned i = 0; i < OPTIONS; i++)
        seq_printf(s, "%s%s\n", trace_option_is(i) ? "" : "no", names[i]);
    return 0;
}

static long options_write(void *priv UNUSED, const char *text, size_t len)
{
    size_t word = len;
    const char *p = trace_word(text, &word);
    bool no = word > 2 && !memcmp(p, "no", 2);

    for (unsigned i = 0; i < OPTIONS; i++)
        if (str_is(names[i], p + 2 * no, word - 2 * no)) {
            option_set(i, !no);
            return (long)len;
        }
    return -EINVAL;
}

/* ---- trace_clock ---- */

/* clock_show - print the names of all clocks, the chosen one in brackets. */
static int clock_show(struct seq *s, void *priv UNUSED)
{
    const char *name;
    bool chosen;

    for (size_t i = 0; (name = trace_clock_name(i, &chosen)); i++)
        seq_printf(s, chosen ? "%s[%s]" : "%s%s", i ? " " : "", name);
    seq_puts(s, "\n");
    return 0;
}

static long clock_write(void *priv UNUSED, const char *text, size_t len)
{
    size_t word_len = len;
    const char *word = trace_word(text, &word_len);
    int err;

    trace_lock();
    err = trace_set_clock(word, word_len);
    trace_unlock();
    return err ? err : (long)len;
}

/* ---- the tree ---- */

#define OPTION(option, word)                                                             \
    {                                                                                    \
        .name = "options/" word, .mode = 0644, .show = option_show,                      \
        .write = option_write, .priv = (void *)(uintptr_t)(option)                       \
    }

static const struct vfs_file files[] = {
    { .name = "trace_options",
      .mode = 0644,
      .show = options_show,
      .write = options_write },
    { .name = "trace_clock", .mode = 0644, .show = clock_show, .write = clock_write },
    OPTION(OPTION_PRINT_PARENT, "print-parent"),
    OPTION(OPTION_SYM_OFFSET, "sym-offset"),
    OPTION(OPTION_SYM_ADDR, "sym-addr"),
    OPTION(OPTION_TRACE_PRINTK, "trace_printk"),
    OPTION(OPTION_USERSTACKTRACE, "userstacktrace"),
    OPTION(OPTION_SYM_USEROBJ, "sym-userobj"),
    OPTION(OPTION_PRINTK_MSG_ONLY, "printk-msg-only"),
    OPTION(OPTION_CONTEXT_INFO, "context-info"),
    OPTION(OPTION_OVERWRITE, "overwrite"),
    OPTION(OPTION_IRQ_INFO, "irq-info"),
    OPTION(OPTION_MARKERS, "markers"),
    OPTION(OPTION_EVENT_FORK, "event-fork"),
    OPTION(OPTION_PAUSE_ON_TRACE, "pause-on-trace"),
    OPTION(OPTION_HASH_PTR, "hash-ptr"),
    OPTION(OPTION_FUNCTION_TRACE, "function-trace"),
    OPTION(OPTION_FUNCTION_FORK, "function-fork"),
    OPTION(OPTION_DISPLAY_GRAPH, "display-graph"),
    OPTION(OPTION_STACKTRACE, "stacktrace"),
    OPTION(OPTION_CLASSIC, "classic"),
};

INIT int trace_add_options(void)
{
    int err = tracefs_add(NULL, files, ARRAY_LEN(files));

    return err ? err : trace_add_tracer();
}
