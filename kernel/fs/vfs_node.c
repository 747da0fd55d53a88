/* vfs_node.c - finds, adds and removes the nodes of the tree.
 *
 * All names are in one hash table, because a directory may have thousands of entries.
 * This file owns all nodes, and counts what /tmp uses. All of its functions run under
 * vfs_mutex.
 */
#include "kernel/fs/vfs_node.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/base/hash.h"
#include "kernel/mm/heap.h"

#include <string.h>

#define DIR_MODE 0755u
#define MEMORY_MODE 0644u

struct mutex vfs_mutex = MUTEX_INIT(vfs_mutex);

#define BUCKETS_SHIFT 10 /* many: each event of the tracer adds seven names */

static struct {
    struct list buckets[1u << BUCKETS_SHIFT];
    unsigned tmp_nodes; /* /tmp, nodes below it, and removed nodes that are open */
    size_t tmp_bytes;   /* bytes in these nodes */
} tree;

struct vfs_node *vfs_node_root, *vfs_node_tmp;

/* node_bucket - return the list for an entry of @dir with that hash of its name. */
static struct list *node_bucket(const struct vfs_node *dir, uint32_t hash)
{
    hash = (hash ^ (uint32_t)((uintptr_t)dir >> 4)) * 2654435769u;
    return &tree.buckets[hash >> (32 - BUCKETS_SHIFT)];
}

static struct vfs_node *node_alloc(const char *name, size_t len)
{
    struct vfs_node *node = kzalloc(sizeof(*node) + len + 1);

    if (!node)
        return NULL;
    memcpy(node->name, name, len);
    node->hash = hash_name(name, len);
    list_init(&node->sibling);
    list_init(&node->bucket);
    list_init(&node->batch);
    list_init(&node->children);
    seq_init(&node->data, NULL, NULL);
    return node;
}

INIT int vfs_init(void)
{
    for (size_t i = 0; i < ARRAY_LEN(tree.buckets); i++)
        list_init(&tree.buckets[i]);
    vfs_node_root = node_alloc("", 0);
    if (!vfs_node_root)
        return -ENOMEM;
    vfs_node_root->parent = vfs_node_root;
    vfs_node_root->is_dir = true;
    vfs_node_root->mode = DIR_MODE;
    return vfs_node_add(vfs_node_root, "tmp", 3, VFS_KIND_DIR, true, NULL, &vfs_node_tmp);
}

/* -- walking ------------------------------------------------------------------------- */

static bool is_node_name(const char *name, size_t len, const char *want)
{
    return len == strlen(want) && memcmp(name, want, len) == 0;
}

struct vfs_node *vfs_node_child(struct vfs_node *dir, const char *name, size_t len)
{
    uint32_t hash = hash_name(name, len);
    struct vfs_node *node;

    list_for_each(node, node_bucket(dir, hash), bucket) {
        if (node->parent == dir && node->hash == hash &&
            is_node_name(name, len, node->name))
            return node->alias ? node->alias : node;
    }
    return NULL;
}

static int step_into(struct vfs_node **at, const char *name, size_t len)
{
    struct vfs_node *child;

    if (!(*at)->is_dir)
        return -ENOTDIR;
    if (is_node_name(name, len, "."))
        return 0;
    if (is_node_name(name, len, "..")) {
        *at = (*at)->parent;
        return 0;
    }
    if (len > VFS_NAME_MAX)
        return -ENAMETOOLONG;
    child = vfs_node_child(*at, name, len);
    if (!child)
        return -ENOENT;
    *at = child;
    return 0;
}

/* next_component - take the component at *path. *path moves behind the component and the
 * slashes that follow it. Return: its length.
 */
static size_t next_component(const char **path, const char **name)
{
    size_t len = strcspn(*path, "/");

    *name = *path;
    *path += len;
    *path += strspn(*path, "/");
    return len;
}

int vfs_node_find_parent(const char *path, struct vfs_node **dir, const char **name,
                         size_t *len)
{
    struct vfs_node *at = vfs_node_root;
    int err;

    if (!*path)
        return -ENOENT;
    path += strspn(path, "/");
    *len = next_component(&path, name);
    while (*path) {
        err = step_into(&at, *name, *len);
        if (err)
            return err;
        *len = next_component(&path, name);
    }
    if (!at->is_dir)
        return -ENOTDIR;
    *dir = at;
    return 0;
}

int vfs_node_find(const char *path, struct vfs_node **out)
{
    struct vfs_node *at;
    const char *name;
    size_t len;
    int err;

    err = vfs_node_find_parent(path, &at, &name, &len);
    if (err)
        return err;
    if (len > 0) {
        err = step_into(&at, name, len);
        if (err)
            return err;
    }
    if (path[strlen(path) - 1] == '/' && !at->is_dir)
        return -ENOTDIR;
    *out = at;
    return 0;
}

/* -- changing ------------------------------------------------------------------------ */

static int check_new_name(struct vfs_node *dir, const char *name, size_t len)
{
    if (len == 0 || is_node_name(name, len, ".") || is_node_name(name, len, ".."))
        return -EINVAL;
    if (len > VFS_NAME_MAX)
        return -ENAMETOOLONG;
    return vfs_node_child(dir, name, len) ? -EEXIST : 0;
}

int vfs_node_add(struct vfs_node *dir, const char *name, size_t len, enum vfs_kind kind,
                 bool is_tmp, const struct vfs_file *file, struct vfs_node **out)
{
    struct vfs_node *node;
    int err = check_new_name(dir, name, len);

    if (err)
        return err;
    if (is_tmp && tree.tmp_nodes >= VFS_TMP_NODES)
        return -ENOSPC;
    node = node_alloc(name, len);
    if (!node)
        return -ENOMEM;
    node->is_dir = kind == VFS_KIND_DIR;
    node->is_tmp = is_tmp;
    node->file = file;
    node->mode = file ? file->mode : node->is_dir ? DIR_MODE : MEMORY_MODE;
    tree.tmp_nodes += is_tmp;
    node->parent = dir;
    list_append(&dir->children, &node->sibling);
    list_insert(node_bucket(dir, node->hash), &node->bucket);
    *out = node;
    return 0;
}

static void node_free(struct vfs_node *node)
{
    tree.tmp_nodes -= node->is_tmp;
    tree.tmp_bytes -= node->data.len;
    seq_free(&node->data);
    kfree(node);
}

void vfs_node_remove(struct vfs_node *node)
{
    list_remove(&node->sibling);
    list_remove(&node->bucket);
    list_remove(&node->batch);
    node->parent = NULL;
    if (node->users == 0)
        node_free(node);
}

void vfs_node_release(struct vfs_node *node)
{
    node->users--;
    if (node->users == 0 && !node->parent)
        node_free(node);
}

int vfs_node_resize(struct vfs_node *node, size_t len)
{
    size_t old = node->data.len;
    int err;

    if (len > old && len - old > VFS_TMP_BYTES - tree.tmp_bytes)
        return -ENOSPC;
    if (len == 0)
        seq_free(&node->data);
    err = seq_resize(&node->data, len);
    if (err)
        return err;
    tree.tmp_bytes += len - old;
    return 0;
}
