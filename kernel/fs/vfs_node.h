/* vfs_node.h - the tree of nodes behind vfs.h; only kernel/fs includes it. */
#pragma once

#include "kernel/base/list.h"
#include "kernel/fs/vfs.h"
#include "kernel/sync/mutex.h"

/* Locks:  V vfs_mutex   I immutable */
struct vfs_node {
    struct list sibling;         /* [V] entry in parent->children */
    struct list batch;           /* [V] in the list of one vfs_add_tree() */
    struct list bucket;          /* [V] in the list of nodes with a similar hash */
    struct list children;        /* [V] of a directory, in no order */
    struct vfs_node *alias;      /* [I] what this alias stands for; or NULL */
    struct vfs_node *parent;     /* [V] the root's parent is the root; NULL: removed */
    const struct vfs_file *file; /* [I] of a subsystem; NULL: directory or memory file */
    struct seq data;             /* [V] the text of a memory file */
    unsigned users;              /* [V] opens of the file; aliases of the directory */
    unsigned mode;               /* [I] */
    uint32_t hash;               /* [I] of the name */
    bool is_dir;                 /* [I] */
    bool is_tmp;                 /* [I] /tmp, or made below it by any caller */
    char name[];                 /* [I] */
};

/* Guards the tree and the memory files. It is never held while a callback runs. */
extern struct mutex vfs_mutex;

/* Locks of all: vfs_mutex held. */

/* The root and /tmp; valid after vfs_init(). */
extern struct vfs_node *vfs_node_root, *vfs_node_tmp;

/* vfs_node_find - find the node that @path names.
 * Return:  0; -ENOENT, -ENOTDIR, -ENAMETOOLONG.
 */
int vfs_node_find(const char *path, struct vfs_node **out);

/* vfs_node_find_parent - find the directory of the last component of @path. The component
 * itself need not exist.
 * @name, @len:  that component, a piece of @path; 0 bytes when @path is the root
 * Return:  as vfs_node_find().
 */
int vfs_node_find_parent(const char *path, struct vfs_node **dir, const char **name,
                         size_t *len);

/* vfs_node_child - find the entry @name of the directory @dir. For an alias, the result
 * is the directory that it stands for.
 * Return: NULL: there is no such entry.
 */
struct vfs_node *vfs_node_child(struct vfs_node *dir, const char *name, size_t len);

/* Which kind of node vfs_node_add() makes. */
enum vfs_kind { VFS_KIND_DIR, VFS_KIND_MEMORY, VFS_KIND_FILE };

/* vfs_node_add - make a new entry in @dir.
 * @is_tmp: the entry counts for the limits of /tmp, and every caller may remove it
 * @file:   with VFS_KIND_FILE
 *
 * Return:  0; -EEXIST; -ENAMETOOLONG; -EINVAL an empty name, "." or ".."; -ENOSPC;
 *          -ENOMEM.
 */
int vfs_node_add(struct vfs_node *dir, const char *name, size_t len, enum vfs_kind kind,
                 bool is_tmp, const struct vfs_file *file, struct vfs_node **out);

/* vfs_node_remove - take @node, which has no children, out of the tree. If it has users,
 * its memory is freed when the last user has released it.
 */
void vfs_node_remove(struct vfs_node *node);

/* vfs_node_release - count one user less. */
void vfs_node_release(struct vfs_node *node);

/* vfs_node_resize - set the length of a memory file.  Return: 0; -ENOSPC, -ENOMEM. */
int vfs_node_resize(struct vfs_node *node, size_t len);
