/* snapshot.c - makes the file `snapshot`. */
#include "probes/trace/buffer/snapshot.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/files/files_parts.h"
#include "probes/trace/files/tracefs.h"

static const char help[] =
    "# tracer: nop\n#\n"
    "#\n# * Snapshot is %s *\n#\n"
    "# Snapshot commands:\n"
    "# echo 0 > snapshot : Clears and frees snapshot buffer\n"
    "# echo 1 > snapshot : Allocates snapshot buffer, if not already allocated.\n"
    "#                      Takes a snapshot of the main buffer.\n"
    "# echo 2 > snapshot : Clears snapshot buffer (but does not allocate or free)\n"
    "#                      (Doesn't have to be '2' works with any number that\n"
    "#                       is not a '0' or '1')\n";

static int snapshot_show(struct seq *s, void *priv UNUSED)
{
    int err = 0;

    trace_lock();
    snapshot_settle();
    if (buffer_has_snapshot() && !buffer_snapshot_is_empty())
        err = trace_show_snapshot(s);
    else
        seq_printf(s, help, snapshot_is_allocated ? "allocated" : "freed");
    trace_unlock();
    return err;
}

static int snapshot_command(uint64_t number)
{
    int err;

    if (number != 1) {
        snapshot_settle();
        buffer_snapshot_free();
        if (!number)
            snapshot_is_allocated = false;
        return 0;
    }
    err = snapshot_prepare();
    if (err)
        return err;
    snapshot_take();
    snapshot_settle();
    return 0;
}

static long snapshot_write(void *priv UNUSED, const char *text, size_t len)
{
    uint64_t number;
    int err = trace_number(text, len, &number);

    if (err)
        return err;
    trace_lock();
    err = snapshot_command(number);
    trace_unlock();
    return err ? err : (long)len;
}

static const struct vfs_file file = {
    .name = "snapshot", .mode = 0640, .show = snapshot_show, .write = snapshot_write
};

INIT int trace_add_snapshot(void)
{
    return tracefs_add(NULL, &file, 1);
}
