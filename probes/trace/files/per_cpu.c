/* per_cpu.c - makes the files of sizes and statistics of the rings, and the files of each
 * CPU.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/heap.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/clocks.h"
#include "probes/trace/buffer/snapshot.h"
#include "probes/trace/files/files.h"
#include "probes/trace/files/files_parts.h"
#include "probes/trace/files/tracefs.h"

#include <stdio.h>
#include <string.h>

/* ---- sizes; priv: CPU + 1, or 0 for all ---- */

static int cpu_of(void *priv)
{
    return (int)(uintptr_t)priv - 1;
}

static void print_size(struct seq *s, uint64_t now, uint64_t wanted)
{
    if (now == wanted)
        seq_printf(s, "%lu\n", now);
    else
        seq_printf(s, "%lu (expanded: %lu)\n", now, wanted);
}

static bool sizes_differ(void)
{
    for (unsigned i = 1; i < cpu_count(); i++)
        if (buffer_size(i) != buffer_size(0))
            return true;
    return false;
}

static int size_show(struct seq *s, void *priv)
{
    int cpu = cpu_of(priv);

    trace_lock();
    if (cpu < 0 && sizes_differ())
        seq_puts(s, "X\n");
    else
        print_size(s, buffer_size(cpu < 0 ? 0 : (unsigned)cpu),
                   buffer_wanted(cpu < 0 ? 0 : (unsigned)cpu));
    trace_unlock();
    return 0;
}

static long size_write(void *priv, const char *text, size_t len)
{
    uint64_t kb;
    int err = trace_number(text, len, &kb);

    if (err)
        return err;
    trace_lock();
    snapshot_hold();
    err = buffer_set_size(cpu_of(priv), kb);
    snapshot_release();
    trace_unlock();
    return err ? err : (long)len;
}

static int total_show(struct seq *s, void *priv UNUSED)
{
    uint64_t now = 0, wanted = 0;

    trace_lock();
    for (unsigned i = 0; i < cpu_count(); i++) {
        now += buffer_size(i);
        wanted += buffer_wanted(i);
    }
    trace_unlock();
    print_size(s, now, wanted);
    return 0;
}

/* ---- files of one CPU ---- */

static int cpu_trace_show(struct seq *s, void *priv)
{
    return trace_show_cpu(s, cpu_of(priv), MERGE_LOOK);
}

static int cpu_pipe_show(struct seq *s, void *priv)
{
    return trace_show_cpu(s, cpu_of(priv), MERGE_TAKE);
}

static int cpu_trace_truncate(void *priv)
{
    int err;

    trace_lock();
    err = buffer_reset(cpu_of(priv));
    trace_unlock();
    return err;
}

static long cpu_trace_write(void *priv UNUSED, const char *text UNUSED, size_t len)
{
    return (long)len;
}

/* raw_pages - write pages of @cpu to @s, at most as many as the buffer has: else a fast
 * writer could keep the reader for ever. Return: the page that belongs to the caller.
 */
static struct ring_page *raw_pages(struct seq *s, unsigned cpu, struct ring_page *spare)
{
    for (uint64_t left = buffer_size(cpu) * 1024 / RING_DATA_LEN + 2; left && !s->err;
         left--) {
        struct ring_page *page = buffer_read_page(cpu, spare, 0, NULL);

        if (!page)
            break;
        spare = page;
        seq_write(s, (const char *)page, sizeof(*page));
    }
    return spare;
}

static int cpu_raw_show(struct seq *s, void *priv)
{
    struct ring_page *spare = buffer_page_new();

    if (!spare)
        return -ENOMEM;
    trace_lock();
    spare = raw_pages(s, (unsigned)cpu_of(priv), spare);
    trace_unlock();
    buffer_page_free(spare);
    return 0;
}

static void print_stamp(struct seq *s, const char *what, uint64_t time)
{
    uint64_t us = time / 1000;

    if (trace_clock_is_cycles())
        seq_printf(s, "%s: %lu\n", what, time);
    else
        seq_printf(s, "%s: %5lu.%06lu\n", what, us / 1000000, us % 1000000);
}

static int cpu_stats_show(struct seq *s, void *priv)
{
    struct ring_stats stats;

    trace_lock();
    buffer_stats((unsigned)cpu_of(priv), BUFFER_LIVE, &stats);
    trace_unlock();
    seq_printf(s, "entries: %lu\noverrun: %lu\ncommit overrun: %lu\nbytes: %lu\n",
               stats.entries, stats.overwritten, stats.overrun, stats.bytes);
    print_stamp(s, "oldest event ts", stats.oldest);
    print_stamp(s, "now ts", buffer_now());
    seq_printf(s, "dropped events: %lu\nread events: %lu\n", stats.dropped, stats.read);
    return 0;
}

static const struct vfs_file cpu_files[] = {
    { .name = "trace",
      .mode = 0640,
      .show = cpu_trace_show,
      .write = cpu_trace_write,
      .truncate = cpu_trace_truncate },
    { .name = "trace_pipe",
      .mode = 0440,
      .show = cpu_pipe_show,
      .write = tracefs_read_only },
    { .name = "trace_pipe_raw",
      .mode = 0440,
      .show = cpu_raw_show,
      .write = tracefs_read_only },
    { .name = "stats", .mode = 0440, .show = cpu_stats_show, .write = tracefs_read_only },
    { .name = "buffer_size_kb", .mode = 0640, .show = size_show, .write = size_write },
};

static const struct vfs_file size_files[] = {
    { .name = "buffer_size_kb", .mode = 0644, .show = size_show, .write = size_write },
    { .name = "buffer_total_size_kb",
      .mode = 0444,
      .show = total_show,
      .write = tracefs_read_only },
};

static int add_cpu(unsigned cpu, const struct tracefs_dir *parent)
{
    struct vfs_file *own = kmalloc(sizeof(cpu_files)); /* never freed */
    struct tracefs_dir *dir;
    char name[16];

    snprintf(name, sizeof(name), "cpu%u", cpu);
    dir = tracefs_create_dir(name, parent);
    if (!own || !dir)
        return -ENOMEM;
    memcpy(own, cpu_files, sizeof(cpu_files));
    for (size_t i = 0; i < ARRAY_LEN(cpu_files); i++)
        own[i].priv = (void *)(uintptr_t)(cpu + 1);
    return tracefs_add(dir, own, ARRAY_LEN(cpu_files));
}

INIT int trace_add_buffer_files(void)
{
    const struct tracefs_dir *parent = tracefs_create_dir("per_cpu", NULL);
    int err = tracefs_add(NULL, size_files, ARRAY_LEN(size_files));

    if (!parent)
        return -ENOMEM;
    for (unsigned i = 0; !err && i < cpu_count(); i++)
        err = add_cpu(i, parent);
    return err;
}
