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

/* mask_parse - read a mask of CPUs as Linux's bitmap_parse() does: groups of up to eight
 * hexadecimal digits for 32 CPUs each, the last one for CPU 0 on; commas and blanks between
 * them.
 * Return: 0; -EINVAL: a character is not a digit; -EOVERFLOW: a group has more digits, or
 *         a group or a bit stands for no CPU.
 */
static int mask_parse(const char *text, size_t len, uint64_t *mask)
{
    unsigned group = 0, bits = 0; /* the first CPU of the group; CPUs read of it */

    *mask = 0;
    while (len--) {
        unsigned char c = (unsigned char)text[len];

        if (c == ',' || isspace(c)) {
            group += bits ? 32 : 0;
            bits = 0;
            continue;
        }
        if (group >= cpu_count())
            return -EOVERFLOW;
        if (!isxdigit(c))
            return -EINVAL;
        if (bits == 32)
            return -EOVERFLOW;
        c = (unsigned char)(isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
        *mask |= (uint64_t)c << (group + bits);
        bits += 4;
    }
    return cpu_count() < 64 && *mask >> cpu_count() ? -EOVERFLOW : 0;
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
    uint64_t mask;
    int err = mask_parse(text, len, &mask);

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
