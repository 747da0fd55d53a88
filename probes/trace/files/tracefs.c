/* tracefs.c - makes and removes the directories of the tracer. */
#include "probes/trace/files/tracefs.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/mm/heap.h"

#include <stdio.h>
#include <string.h>

#define ROOT "/sys/kernel/tracing"

struct tracefs_dir {
    size_t len; /* of the path */
    char path[];
};

static const char *path_of(const struct tracefs_dir *dir)
{
    return dir ? dir->path : ROOT;
}

/* NOINLINE: Linux's tests of its tracer trace this function. Making an event calls it. */
NOINLINE struct tracefs_dir *tracefs_create_dir(const char *name,
                                                const struct tracefs_dir *parent)
{
    size_t size = strlen(path_of(parent)) + strlen(name) + 2;
    struct tracefs_dir *dir = kzalloc(sizeof(*dir) + size);

    if (!dir)
        return NULL;
    dir->len = size - 1;
    snprintf(dir->path, size, "%s/%s", path_of(parent), name);
    if (vfs_add_tree(dir->path, NULL, 0)) {
        kfree(dir);
        return NULL;
    }
    return dir;
}

int tracefs_add(const struct tracefs_dir *dir, const struct vfs_file *files, size_t count)
{
    return vfs_add_tree(path_of(dir), files, count);
}

long tracefs_read_only(void *priv UNUSED, const char *text UNUSED, size_t len UNUSED)
{
    return -EINVAL;
}

int tracefs_write_only(struct seq *s UNUSED, void *priv UNUSED)
{
    return -EINVAL;
}

int tracefs_remove(struct tracefs_dir *dir)
{
    int err = dir ? vfs_remove_tree(dir->path) : 0;

    if (!err)
        kfree(dir);
    return err;
}

INIT int tracefs_init(void)
{
    int err = vfs_add_tree(ROOT, NULL, 0);

    if (!err)
        err = vfs_add_tree("/sys/kernel/debug", NULL, 0);
    return err ? err : vfs_add_alias("/sys/kernel/debug/tracing", ROOT);
}
