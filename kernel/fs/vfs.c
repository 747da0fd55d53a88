/* vfs.c - opens, reads, writes and closes files, and lists directories.
 *
 * An open for reading copies the whole text once, so reads of several pieces see the text
 * of one moment. The lock is not held while a callback of a subsystem runs. vfs_open,
 * vfs_read and vfs_write are good places for first probes: every read and write of a file
 * passes through them.
 */
#include "kernel/fs/vfs.h"

#include "kernel/base/err.h"
#include "kernel/debug/marker.h"
#include "kernel/fs/vfs_node.h"
#include "kernel/mm/heap.h"

#include <stdlib.h>
#include <string.h>

/* -- open ---------------------------------------------------------------------------- */

static int create_file(const char *path, struct vfs_node **out)
{
    struct vfs_node *dir;
    const char *name;
    size_t len;
    int err;

    err = vfs_node_find_parent(path, &dir, &name, &len);
    if (err)
        return err;
    if (!dir->is_tmp)
        return -EACCES;
    if (name[len] == '/')
        return -EISDIR;
    return vfs_node_add(dir, name, len, VFS_KIND_MEMORY, true, NULL, out);
}

static int check_access(const struct vfs_node *node, unsigned flags)
{
    if (node->is_dir)
        return -EISDIR;
    if (!node->file)
        return 0;
    if ((flags & VFS_READ) && !node->file->show)
        return -EACCES;
    if ((flags & VFS_WRITE) && !node->file->write)
        return -EACCES;
    return 0;
}

/* take_node - find the node of @path, and count one more user of it. */
static int take_node(const char *path, unsigned flags, struct vfs_node **out)
{
    int err;

    mutex_lock(&vfs_mutex);
    err = vfs_node_find(path, out);
    if (!err && (flags & VFS_NEW))
        err = -EEXIST;
    if (err == -ENOENT && (flags & VFS_WRITE))
        err = create_file(path, out);
    if (!err)
        err = check_access(*out, flags);
    if (!err)
        (*out)->users++;
    mutex_unlock(&vfs_mutex);
    return err;
}

static void drop_node(struct vfs_node *node)
{
    mutex_lock(&vfs_mutex);
    vfs_node_release(node);
    mutex_unlock(&vfs_mutex);
}

static int truncate_file(struct vfs_node *node)
{
    int err;

    if (node->file)
        return node->file->truncate ? node->file->truncate(node->file->priv) : 0;
    mutex_lock(&vfs_mutex);
    err = vfs_node_resize(node, 0);
    mutex_unlock(&vfs_mutex);
    return err;
}

static int take_text(struct vfs_node *node, struct seq *text)
{
    int err;

    seq_init(text, NULL, NULL);
    if (node->file) {
        err = node->file->show(text, node->file->priv);
    } else {
        mutex_lock(&vfs_mutex);
        seq_write(text, seq_str(&node->data), node->data.len);
        mutex_unlock(&vfs_mutex);
        err = 0;
    }
    if (!err)
        err = text->err;
    if (err)
        seq_free(text);
    return err;
}

/* open_node - open file->node, of which the caller has counted a user. On failure this
 * user is dropped.
 */
static int open_node(struct file *file, unsigned flags)
{
    int err = 0;

    seq_init(&file->text, NULL, NULL);
    if ((flags & VFS_WRITE) && (flags & VFS_TRUNC))
        err = truncate_file(file->node);
    if (!err && (flags & VFS_READ))
        err = take_text(file->node, &file->text);
    if (err)
        drop_node(file->node);
    return err;
}

NOINLINE int vfs_open(const char *path, struct file *file)
{
    unsigned flags = file->flags;
    int err;

    if (!(flags & (VFS_READ | VFS_WRITE)))
        return -EINVAL;
    err = take_node(path, flags, &file->node);
    if (!err)
        err = open_node(file, flags);
    MARK(vfs_open, "path %s flags 0x%x result %d", path, flags, err);
    return err;
}

void vfs_close(struct file *file)
{
    seq_free(&file->text);
    drop_node(file->node);
    file->node = NULL;
}

/* -- read and write ------------------------------------------------------------------ */

NOINLINE long vfs_read(struct file *file, char *buf, size_t count, uint64_t *pos)
{
    size_t left = *pos < file->text.len ? file->text.len - *pos : 0;

    if (!(file->flags & VFS_READ))
        return -EBADF;
    if (count > left)
        count = left;
    if (count)
        memcpy(buf, file->text.text + *pos, count);
    *pos += count;
    MARK(vfs_read, "count %zu pos %lu", count, *pos);
    return (long)count;
}

static long memory_write(struct vfs_node *node, const char *text, size_t count,
                         uint64_t start)
{
    int err = 0;

    if (count == 0)
        return 0;
    if (start > VFS_TMP_BYTES || count > VFS_TMP_BYTES - start)
        return -ENOSPC;
    if (start + count > node->data.len)
        err = vfs_node_resize(node, start + count);
    if (err)
        return err;
    memcpy(node->data.text + start, text, count);
    return (long)count;
}

NOINLINE long vfs_write(struct file *file, const char *text, size_t count, uint64_t *pos)
{
    struct vfs_node *node = file->node;
    long done;

    if (!(file->flags & VFS_WRITE))
        return -EBADF;
    if (node->file) {
        done = node->file->write(node->file->priv, text, count);
    } else {
        mutex_lock(&vfs_mutex);
        if (file->flags & VFS_APPEND)
            *pos = node->data.len;
        done = memory_write(node, text, count, *pos);
        mutex_unlock(&vfs_mutex);
    }
    if (done > 0)
        *pos += (uint64_t)done;
    MARK(vfs_write, "count %zu done %ld", count, done);
    return done;
}

/* -- directories --------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct vfs_node *const *first = a, *const *second = b;

    return strcmp((*first)->name, (*second)->name);
}

static int list_dir(struct vfs_node *dir, struct seq *out)
{
    const struct vfs_node *node, **nodes;
    size_t count = 0;

    if (!dir->is_dir)
        return -ENOTDIR;
    list_for_each(node, &dir->children, sibling)
        count++;
    nodes = kmalloc((count + 1) * sizeof(const struct vfs_node *));
    if (!nodes)
        return -ENOMEM;
    count = 0;
    list_for_each(node, &dir->children, sibling)
        nodes[count++] = node;
    qsort(nodes, count, sizeof(const struct vfs_node *), by_name);
    for (size_t i = 0; i < count; i++)
        seq_printf(out, "%s%s\n", nodes[i]->name, nodes[i]->is_dir ? "/" : "");
    kfree(nodes);
    return out->err;
}

int vfs_readdir(const char *path, struct seq *out)
{
    struct vfs_node *dir;
    int err;

    mutex_lock(&vfs_mutex);
    err = vfs_node_find(path, &dir);
    if (!err)
        err = list_dir(dir, out);
    mutex_unlock(&vfs_mutex);
    return err;
}

int vfs_stat(const char *path, struct vfs_stat *out)
{
    struct vfs_node *node;
    int err;

    mutex_lock(&vfs_mutex);
    err = vfs_node_find(path, &node);
    if (!err) {
        out->is_dir = node->is_dir;
        out->mode = node->mode;
    }
    mutex_unlock(&vfs_mutex);
    return err;
}
