/* vfs_tree.c - adds and removes trees of subsystems' files, and directories in /tmp. */
#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "kernel/fs/vfs_node.h"

#include <string.h>

/* -- trees of subsystems ------------------------------------------------------------- */

/* enter_dir - set *dir to its directory @name, which is made if it does not exist. */
static int enter_dir(struct vfs_node **dir, const char *name, size_t len,
                     struct list *batch)
{
    struct vfs_node *node = vfs_node_child(*dir, name, len);
    int err;

    if (!node) {
        err = vfs_node_add(*dir, name, len, VFS_KIND_DIR, false, NULL, &node);
        if (err)
            return err;
        list_append(batch, &node->batch);
    }
    if (!node->is_dir)
        return -ENOTDIR;
    *dir = node;
    return 0;
}

/* enter_path - go down @path from *dir, through all components or all but the last. */
static int enter_path(struct vfs_node **dir, const char **path, bool whole,
                      struct list *batch)
{
    int err;

    for (;;) {
        size_t len;

        *path += strspn(*path, "/");
        len = strcspn(*path, "/");
        if (len == 0 || (!whole && !(*path)[len]))
            return 0;
        err = enter_dir(dir, *path, len, batch);
        if (err)
            return err;
        *path += len;
    }
}

static int add_file(struct vfs_node *dir, const struct vfs_file *file, struct list *batch)
{
    const char *name = file->name;
    struct vfs_node *node;
    int err;

    err = enter_path(&dir, &name, false, batch);
    if (err)
        return err;
    err = vfs_node_add(dir, name, strlen(name), VFS_KIND_FILE, false, file, &node);
    if (err)
        return err;
    list_append(batch, &node->batch);
    return 0;
}

static int add_tree_files(const char *path, const struct vfs_file *files, size_t count,
                          struct list *batch)
{
    struct vfs_node *dir = vfs_node_root;
    int err;

    err = enter_path(&dir, &path, true, batch);
    for (size_t i = 0; !err && i < count; i++)
        err = add_file(dir, &files[i], batch);
    return err;
}

/* end_batch - end a batch: keep its nodes, or remove them. The last one is removed first,
 * so a node that is removed has no children.
 */
static void end_batch(struct list *batch, bool stay)
{
    while (!list_empty(batch)) {
        struct vfs_node *last = list_entry(batch->prev, struct vfs_node, batch);

        list_remove(&last->batch);
        if (!stay)
            vfs_node_remove(last);
    }
}

int vfs_add_tree(const char *path, const struct vfs_file *files, size_t count)
{
    struct list batch = LIST_INIT(batch);
    int err;

    mutex_lock(&vfs_mutex);
    err = add_tree_files(path, files, count, &batch);
    end_batch(&batch, err == 0);
    mutex_unlock(&vfs_mutex);
    return err;
}

static int add_alias(const char *path, const char *target)
{
    struct vfs_node *to, *dir, *node;
    const char *name;
    size_t len;
    int err;

    err = vfs_node_find(target, &to);
    if (err)
        return err;
    if (!to->is_dir)
        return -ENOTDIR;
    err = vfs_node_find_parent(path, &dir, &name, &len);
    if (err)
        return err;
    err = vfs_node_add(dir, name, len, VFS_KIND_DIR, false, NULL, &node);
    if (err)
        return err;
    node->alias = to;
    to->users++;
    return 0;
}

INIT int vfs_add_alias(const char *path, const char *target)
{
    int err;

    mutex_lock(&vfs_mutex);
    err = add_alias(path, target);
    mutex_unlock(&vfs_mutex);
    return err;
}

/* next_below - return the node after @node in a walk of the subtree of @top in which each
 * directory comes before its children; NULL: @node is the last one. The walk is not
 * recursive, because a path may be too deep for the stack.
 */
static struct vfs_node *next_below(struct vfs_node *node, struct vfs_node *top)
{
    if (!list_empty(&node->children))
        return list_first(&node->children, struct vfs_node, sibling);
    while (node != top && node->sibling.next == &node->parent->children)
        node = node->parent;
    if (node == top)
        return NULL;
    return list_entry(node->sibling.next, struct vfs_node, sibling);
}

static int check_removable(struct vfs_node *top)
{
    if (!top->is_dir)
        return -ENOTDIR;
    for (struct vfs_node *node = top; node; node = next_below(node, top)) {
        if (node == vfs_node_root || node->is_tmp)
            return -EINVAL;
        if (node->users)
            return -EBUSY;
    }
    return 0;
}

static void remove_below(struct vfs_node *top)
{
    struct vfs_node *node = top;

    for (;;) {
        struct vfs_node *parent = node->parent;

        if (!list_empty(&node->children)) {
            node = list_first(&node->children, struct vfs_node, sibling);
            continue;
        }
        vfs_node_remove(node);
        if (node == top)
            return;
        node = parent;
    }
}

int vfs_remove_tree(const char *path)
{
    struct vfs_node *top;
    int err;

    mutex_lock(&vfs_mutex);
    err = vfs_node_find(path, &top);
    if (!err)
        err = check_removable(top);
    if (!err)
        remove_below(top);
    mutex_unlock(&vfs_mutex);
    return err;
}

static int remove_files_locked(uintptr_t start, uintptr_t end)
{
    struct vfs_node *root = vfs_node_root, *next;

    for (int removes = 0; removes < 2; removes++)
        for (struct vfs_node *node = root; node; node = next) {
            next = next_below(node, root);
            if (!node->file || !leads_into(node->file, sizeof(*node->file), start, end))
                continue;
            if (node->users)
                return -EBUSY; /* in the first walk, before any file is removed */
            if (removes)
                vfs_node_remove(node);
        }
    return 0;
}

int vfs_remove_files(uintptr_t start, uintptr_t end)
{
    int err;

    mutex_lock(&vfs_mutex);
    err = remove_files_locked(start, end);
    mutex_unlock(&vfs_mutex);
    return err;
}

/* -- directories and files in /tmp --------------------------------------------------- */

static int mkdir_locked(const char *path)
{
    struct vfs_node *dir, *node;
    const char *name;
    size_t len;
    int err;

    err = vfs_node_find(path, &node);
    if (err != -ENOENT)
        return err ? err : -EEXIST;
    err = vfs_node_find_parent(path, &dir, &name, &len);
    if (err)
        return err;
    if (!dir->is_tmp)
        return -EPERM;
    return vfs_node_add(dir, name, len, VFS_KIND_DIR, true, NULL, &node);
}

static int remove_node_locked(const char *path, bool want_dir)
{
    struct vfs_node *node;
    const char *name;
    size_t len;
    int err;

    err = vfs_node_find_parent(path, &node, &name, &len);
    if (!err && want_dir && len == 1 && *name == '.')
        return -EINVAL;
    err = vfs_node_find(path, &node);
    if (err)
        return err;
    if (node->is_dir != want_dir)
        return want_dir ? -ENOTDIR : -EISDIR;
    if (!node->is_tmp)
        return -EPERM;
    if (node == vfs_node_tmp)
        return -EBUSY;
    if (!list_empty(&node->children))
        return -ENOTEMPTY;
    vfs_node_remove(node);
    return 0;
}

NOINLINE int vfs_mkdir(const char *path)
{
    int err;

    mutex_lock(&vfs_mutex);
    err = mkdir_locked(path);
    mutex_unlock(&vfs_mutex);
    return err;
}

NOINLINE int vfs_rmdir(const char *path)
{
    int err;

    mutex_lock(&vfs_mutex);
    err = remove_node_locked(path, true);
    mutex_unlock(&vfs_mutex);
    return err;
}

int vfs_unlink(const char *path)
{
    int err;

    mutex_lock(&vfs_mutex);
    err = remove_node_locked(path, false);
    mutex_unlock(&vfs_mutex);
    return err;
}
