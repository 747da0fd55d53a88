/* options.c - makes options/, trace_options and trace_clock. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/time/clock.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/snapshot.h"
#include "probes/trace/files/files.h"
#include "probes/trace/files/files_parts.h"
#include "probes/trace/files/tracefs.h"

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
    if (option == OPTION_OVERWRITE)
        buffer_set_overwrite(on);
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

static bool is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && !memcmp(text, word, len);
}

static long options_write(void *priv UNUSED, const char *text, size_t len)
{
    size_t word = len;
    const char *p = trace_word(text, &word);
    bool no = word > 2 && !memcmp(p, "no", 2);

    for (unsigned i = 0; i < OPTIONS; i++)
        if (is_word(p + 2 * no, word - 2 * no, names[i])) {
            option_set(i, !no);
            return (long)len;
        }
    return -EINVAL;
}

/* ---- trace_clock ---- */

static uint64_t clock_counter(void)
{
    static uint64_t count;

    return __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
}

/* clock_uptime - count hundredths of a second, as processes see jiffies on Linux. */
static uint64_t clock_uptime(void)
{
    return clock_ns() / 10000000;
}

static uint64_t clock_tsc(void)
{
    return rdtsc();
}

/* All clocks that count nanoseconds are the same one here, because clock_ns() is the same
 * on all CPUs. They have all of Linux's names.
 */
static const struct trace_clock {
    const char *name;
    uint64_t (*read)(void);
    bool cycles;
} clocks[] = {
    { "local", clock_ns, false },       { "global", clock_ns, false },
    { "counter", clock_counter, true }, { "uptime", clock_uptime, true },
    { "perf", clock_ns, false },        { "mono", clock_ns, false },
    { "mono_raw", clock_ns, false },    { "boot", clock_ns, false },
    { "tai", clock_ns, false },         { "x86-tsc", clock_tsc, true },
};

static const struct trace_clock *chosen = &clocks[0];

bool trace_clock_is_cycles(void)
{
    return READ_ONCE(chosen)->cycles;
}

/* clock_show - print the names of all clocks, the chosen one in brackets. */
static int clock_show(struct seq *s, void *priv UNUSED)
{
    for (size_t i = 0; i < ARRAY_LEN(clocks); i++)
        seq_printf(s, &clocks[i] == chosen ? "%s[%s]" : "%s%s", i ? " " : "",
                   clocks[i].name);
    seq_puts(s, "\n");
    return 0;
}

int trace_set_clock(const char *name, size_t len)
{
    int err;

    for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
        if (!is_word(name, len, clocks[i].name))
            continue;
        snapshot_hold();
        err = buffer_set_clock(clocks[i].read);
        snapshot_release();
        if (!err)
            WRITE_ONCE(chosen, &clocks[i]);
        return err;
    }
    return -EINVAL;
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
};

INIT int trace_add_options(void)
{
    int err = tracefs_add(NULL, files, ARRAY_LEN(files));

    return err ? err : trace_add_tracer();
}
