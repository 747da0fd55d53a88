/* control.c - selects the threads and CPUs that are recorded, by the files set_event_pid,
 * set_event_notrace_pid and tracing_cpumask; and makes timestamp_mode.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/select.h"
#include "probes/trace/files/files_parts.h"
#include "probes/trace/files/tracefs.h"

#include <ctype.h>

/* ---- threads ---- */

static int pids_show(struct seq *s, void *priv)
{
    const struct pids *pids;

    trace_lock();
    pids = select_pids((enum select_list)(uintptr_t)priv);
    for (size_t i = 0; pids && i < pids->count; i++)
        seq_printf(s, "%d\n", pids->pid[i]);
    trace_unlock();
    return 0;
}

static long pids_write(void *priv, const char *text, size_t len)
{
    int err;

    trace_lock();
    err = select_add_pids((enum select_list)(uintptr_t)priv, text, len);
    trace_unlock();
    return err ? err : (long)len;
}

static int pids_truncate(void *priv)
{
    trace_lock();
    select_drop_pids((enum select_list)(uintptr_t)priv);
    trace_unlock();
    return 0;
}

/* ---- CPUs ---- */

/* mask_parse - read a mask of CPUs: hexadecimal digits, maybe with commas between them,
 * as mask_show() prints it.
 * Return: 0; -EINVAL: a character is not a digit, or a CPU does not exist.
 */
static int mask_parse(const char *text, size_t len, uint64_t *mask)
{
    *mask = 0;
    for (; len; text++, len--) {
        unsigned char c = (unsigned char)*text;

        if (c == ',')
            continue;
        if (!isxdigit(c) || *mask >> 60)
            return -EINVAL;
        *mask = *mask << 4 | (unsigned)(isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return cpu_count() < 64 && *mask >> cpu_count() ? -EINVAL : 0;
}

static int mask_show(struct seq *s, void *priv UNUSED)
{
    for (unsigned digit = (cpu_count() + 3) / 4; digit--;) {
        unsigned value = 0;

        for (unsigned i = 0; i < 4 && 4 * digit + i < cpu_count(); i++)
            value |= (unsigned)buffer_takes_cpu(4 * digit + i) << i;
        seq_printf(s, "%x%s", value, digit && digit % 8 == 0 ? "," : "");
    }
    seq_puts(s, "\n");
    return 0;
}

static long mask_write(void *priv UNUSED, const char *text, size_t len)
{
    size_t word_len = len;
    const char *word = trace_word(text, &word_len);
    uint64_t mask;
    int err = mask_parse(word, word_len, &mask);

    if (err)
        return err;
    trace_lock();
    select_cpus(mask);
    trace_unlock();
    return (long)len;
}

/* ---- times ---- */

/* timestamp_show - always "delta": a record holds the time since the record before it. On
 * Linux a histogram can change that.
 */
static int timestamp_show(struct seq *s, void *priv UNUSED)
{
    seq_puts(s, "[delta] absolute\n");
    return 0;
}

/* ---- the tree ---- */

static const struct vfs_file files[] = {
    { .name = "set_event_pid",
      .mode = 0640,
      .show = pids_show,
      .write = pids_write,
      .truncate = pids_truncate,
      .priv = (void *)(uintptr_t)SELECT_WANTED },
    { .name = "set_event_notrace_pid",
      .mode = 0640,
      .show = pids_show,
      .write = pids_write,
      .truncate = pids_truncate,
      .priv = (void *)(uintptr_t)SELECT_UNWANTED },
    { .name = "tracing_cpumask", .mode = 0640, .show = mask_show, .write = mask_write },
    { .name = "timestamp_mode",
      .mode = 0440,
      .show = timestamp_show,
      .write = tracefs_read_only },
};

INIT int trace_add_control(void)
{
    return tracefs_add(NULL, files, ARRAY_LEN(files));
}
