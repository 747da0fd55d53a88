/* bench_events.c - `bench events`: measures how long it takes to define a thousand events
 * in kprobe_events line by line, as a script does, to enable all of them by one write, to
 * disable them and to delete them.
 */
#include "kernel/base/err.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/heap.h"
#include "kernel/time/clock.h"
#include "probes/bench/bench.h"
#include "probes/many/walk.h"
#include "probes/trace/live/live.h"

#include <stdio.h>
#include <string.h>

#define COUNT 1000
#define PIECE 100 /* events: the first 100 are compared with the last 100 */
#define ROOT "/sys/kernel/tracing/"
#define ENABLE ROOT "events/bench/enable"

struct lines {
    const char **function; /* COUNT names */
    size_t count;
};

/* events_take - add @function to the list if it accepts a probe, and if no other function
 * has its name.
 */
static bool events_take(const struct plat_symbol *function, void *arg)
{
    struct lines *lines = arg;
    struct insn insn;
    uintptr_t addr;

    if (!kprobe_check(function->start, &insn, NULL) &&
        live_host.symbol(NULL, 0, function->name, strlen(function->name), &addr) == 1)
        lines->function[lines->count++] = function->name;
    return lines->count < COUNT;
}

/* file_put - append @text to a file by one write, as `echo TEXT >> PATH` does. */
static int file_put(const char *path, const char *text)
{
    struct file file = { .flags = VFS_WRITE | VFS_APPEND };
    uint64_t pos = 0;
    long len;
    int err = vfs_open(path, &file);

    if (err)
        return err;
    len = vfs_write(&file, text, strlen(text), &pos);
    vfs_close(&file);
    return len < 0 ? (int)len : 0;
}

static int event_define(size_t i, const char *function)
{
    char line[DEF_LINE_MAX];

    snprintf(line, sizeof(line), "p:bench/e%zu %s %%di", i, function);
    return file_put(ROOT "kprobe_events", line);
}

static int events_define(struct shell *sh, const struct lines *lines)
{
    uint64_t took[COUNT / PIECE] = { 0 }, total = 0;

    for (size_t i = 0; i < COUNT; i++) {
        uint64_t start = clock_ns();
        int err = event_define(i, lines->function[i]);

        if (err)
            return err;
        took[i / PIECE] += clock_ns() - start;
    }
    for (size_t i = 0; i < ARRAY_LEN(took); i++)
        total += took[i];
    bench_print(sh, total / 1000, "us", "events.define.1000.total");
    bench_print(sh, took[0] / PIECE, "ns/event", "events.define.first_100");
    bench_print(sh, took[ARRAY_LEN(took) - 1] / PIECE, "ns/event",
                "events.define.last_100");
    return 0;
}

static int file_put_timed(struct shell *sh, const char *path, const char *text,
                          const char *name)
{
    uint64_t start = clock_ns();
    int err = file_put(path, text);

    if (!err)
        bench_print(sh, (clock_ns() - start) / 1000, "us", "events.%s.1000", name);
    return err;
}

static int events_measure(struct shell *sh, const struct lines *lines)
{
    int err = events_define(sh, lines), deleted;

    if (!err)
        err = file_put_timed(sh, ENABLE, "1", "enable");
    if (!err)
        err = file_put_timed(sh, ENABLE, "0", "disable");
    if (!err)
        return file_put_timed(sh, ROOT "kprobe_events", "-:bench/", "delete");
    deleted = file_put(ROOT "kprobe_events", "-:bench/");
    return deleted && deleted != -ENOENT ? deleted : err;
}

static int events_run_group(struct shell *sh, const char *only)
{
    struct lines lines = { .function = kmalloc(COUNT * sizeof(char *)) };
    int err;

    if (only)
        err = -ENOENT;
    else if (!lines.function)
        err = shell_error(sh, ENOMEM, "bench: events");
    else {
        walk_functions(NULL, events_take, &lines);
        err = lines.count == COUNT ? events_measure(sh, &lines) : -ERANGE;
        if (err)
            shell_error(sh, err, "bench: events");
    }
    kfree(lines.function);
    return err;
}

const struct bench_group bench_group_events = {
    .name = "events",
    .keeps_jumps = true,
    .run = events_run_group,
};
