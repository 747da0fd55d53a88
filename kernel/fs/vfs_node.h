/* vfs_node.h - the tree behind vfs.h; for kernel/fs only. */
#pragma once

#include "kernel/base/list.h"
#include "kernel/fs/vfs.h"
#include "kernel/sync/mutex.h"

/* Locks:  V vfs_mutex   I immutable */
struct vfs_node {
    struct list sibling;         /* [V] in parent->children */
    struct list batch;           /* [V] nodes made by one vfs_add_tree() */
    struct list bucket;          /* [V] of names whose hashes are alike */
    struct list children;        /* [V] of a directory, in no order */
    struct vfs_node *alias;      /* [I] the directory that this is another name of */
    struct vfs_node *parent;     /* [V] the root's is the root; NULL once removed */
    const struct vfs_file *file; /* [I] a subsystem's; NULL: directory or memory file */
    struct seq data;             /* [V] of a memory file */
    unsigned users;              /* [V] open files */
    unsigned mode;               /* [I] */
    uint32_t hash;               /* [I] of the name */
    bool is_dir;                 /* [I] */
    bool is_tmp;                 /* [I] /tmp or below: anyone may make and remove */
    char name[];                 /* [I] */
};

/* Guards the tree and the memory files. Never held across a subsystem's callback. */
extern struct mutex vfs_mutex;

/* All of these: Locks: vfs_mutex held. */

/* vfs_node_root, vfs_node_tmp - always there after vfs_init(). */
struct vfs_node *vfs_node_root(void);
struct vfs_node *vfs_node_tmp(void);

/* vfs_node_find - what @path leads to.
 * Return:  0; -ENOENT, -ENOTDIR, -ENAMETOOLONG.
 */
int vfs_node_find(const char *path, struct vfs_node **out);

/* vfs_node_find_parent - the directory in which the last component of @path would be.
 * @name, @len:  that component, a piece of @path; 0 bytes when @path is the root
 * Return:  as vfs_node_find().
 */
int vfs_node_find_parent(const char *path, struct vfs_node **dir, const char **name,
                         size_t *len);

/* vfs_node_child - the entry of directory @dir with that name, or what it is another name of;
 * NULL: none.
 */
struct vfs_node *vfs_node_child(struct vfs_node *dir, const char *name, size_t len);

/* What vfs_node_add() makes. */
enum vfs_kind { VFS_KIND_DIR, VFS_KIND_MEMORY, VFS_KIND_FILE };

/* vfs_node_add - a new entry. An entry below /tmp that belongs to no
 * subsystem counts against the limits of /tmp.
 * @file:  with VFS_KIND_FILE
 *
 * Return:  0; -EEXIST; -ENAMETOOLONG; -EINVAL an empty name, "." or ".."; -ENOSPC; -ENOMEM.
 */
int vfs_node_add(struct vfs_node *dir, const char *name, size_t len, enum vfs_kind kind,
                 bool is_tmp, const struct vfs_file *file, struct vfs_node **out);

/* vfs_node_remove - take @node, which has no children, out of the tree. Its memory goes
 * when its last user has closed it.
 */
void vfs_node_remove(struct vfs_node *node);

/* vfs_node_release - one user less. */
void vfs_node_release(struct vfs_node *node);

/* vfs_node_resize - new length of a memory file.  Return: 0; -ENOSPC, -ENOMEM. */
int vfs_node_resize(struct vfs_node *node, size_t len);
