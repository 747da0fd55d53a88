/* vfs.h - the file layer: a tree in memory whose files are a name, a read and a write.
 *
 * A file either belongs to a subsystem, which shows its text and takes what is written to
 * it (vfs_add_tree), or is plain memory that anyone may create below /tmp. There is no
 * current directory: a path counts from the root, with or without a leading slash.
 *
 * Context: thread, everywhere in this file; may sleep. Callbacks are called without any
 * lock of the file layer, so they may use it.
 */
#pragma once

#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VFS_NAME_MAX 63          /* bytes in one component of a path */
#define VFS_TMP_BYTES (4u << 20) /* all memory files together */
#define VFS_TMP_NODES 1024u      /* files and directories below /tmp */

#define VFS_READ 1u   /* the text is taken once, at the open */
#define VFS_WRITE 2u  /* creates the file where memory files may be created */
#define VFS_TRUNC 4u  /* with VFS_WRITE: drop the old content at the open */
#define VFS_APPEND 8u /* with VFS_WRITE: every write goes to the end */

struct vfs_node;

/* An open file. The caller owns the struct and sets @flags before vfs_open(). */
struct file {
    unsigned flags;
    struct vfs_node *node; /* held until vfs_close() */
    struct seq text;       /* what VFS_READ reads */
};

/* A file that a subsystem offers. It, and all it points to, stays where it is while the
 * file exists.
 */
struct vfs_file {
    const char
        *name;     /* relative to the tree, may have directories in it: "events/enable" */
    unsigned mode; /* permission bits, as stat shows them: 0444 */

    /* show - print the whole text; 0 or a negative errno, which the open returns.
     * NULL: the file cannot be opened for reading.
     */
    int (*show)(struct seq *s, void *priv);
    /* write - take @len bytes of one write; @len, or a negative errno.
     * NULL: the file cannot be opened for writing.
     */
    long (*write)(void *priv, const char *text, size_t len);
    /* truncate - the file was opened with VFS_TRUNC; 0, or a negative errno, which the
     * open returns. NULL: nothing happens then.
     */
    int (*truncate)(void *priv);
    void *priv;
};

struct vfs_stat {
    bool is_dir;
    unsigned mode; /* permission bits */
};

/* vfs_init - make the root and /tmp.
 *
 * Context: boot, once, with the heap ready.
 * Return:  0; -ENOMEM.
 */
int vfs_init(void);

/* vfs_open - open a file.
 * @path:  any string
 * @file:  flags set; on success open until vfs_close(), on failure not open
 *
 * Return:  0; -ENOENT no such file; -ENOTDIR a file where the path needs a directory;
 *          -EISDIR; -ENAMETOOLONG; -EACCES not readable, not writable, or may not be
 *          created there; -EINVAL neither VFS_READ nor VFS_WRITE; -ENOSPC; -ENOMEM; or
 *          what the file's show or truncate says.
 */
int vfs_open(const char *path, struct file *file);

/* vfs_read - copy a piece of an open file's text.
 * @pos:  byte offset to start at, moved behind the piece
 *
 * Return:  bytes copied, 0 at the end; -EBADF not open for reading.
 */
long vfs_read(struct file *file, char *buf, size_t count, uint64_t *pos);

/* vfs_write - one write; a subsystem's file gets all of it in one call.
 * @pos:  byte offset, moved on; memory files only, and not with VFS_APPEND
 *
 * Return:  bytes taken; -EBADF not open for writing; -ENOSPC, -ENOMEM; or what the file's
 *          write says.
 */
long vfs_write(struct file *file, const char *text, size_t count, uint64_t *pos);

/* vfs_close - end of @file, which must be open. */
void vfs_close(struct file *file);

/* vfs_readdir - the names in a directory, sorted, one per line, '/' behind directories.
 * @out:  without drain
 *
 * Return:  0; -ENOENT, -ENOTDIR, -ENAMETOOLONG; -ENOMEM.
 */
int vfs_readdir(const char *path, struct seq *out);

/* vfs_stat - what is at @path?  Return: 0; -ENOENT, -ENOTDIR, -ENAMETOOLONG. */
int vfs_stat(const char *path, struct vfs_stat *out);

/* vfs_mkdir, vfs_rmdir - make or remove a directory below /tmp.
 * vfs_unlink - remove a file below /tmp; an open handle keeps the file until its close.
 *
 * Return:  0; -ENOSYS not below /tmp; -EEXIST; -ENOENT; -ENOTDIR; -EISDIR; -ENOTEMPTY;
 *          -EBUSY /tmp itself; -ENAMETOOLONG; -ENOSPC; -ENOMEM.
 */
int vfs_mkdir(const char *path);
int vfs_rmdir(const char *path);
int vfs_unlink(const char *path);

/* vfs_add_tree - a subsystem's files appear under @path.
 * @path:   a directory, made with all above it where it does not exist
 * @files:  @count of them, borrowed until vfs_remove_tree()
 *
 * Return:  0; -EEXIST a name is taken; -ENOTDIR; -ENAMETOOLONG; -ENOMEM. After a failure
 *          none of @files is there.
 */
int vfs_add_tree(const char *path, const struct vfs_file *files, size_t count);

/* vfs_remove_files - all files of subsystems whose struct vfs_file lies in [@start, @end) go,
 * wherever they are; directories stay.
 *
 * Return:  0; -EBUSY one of them is open, and nothing was removed.
 */
int vfs_remove_files(uintptr_t start, uintptr_t end);

/* vfs_add_alias - @path becomes another name of the directory @target, which stays for ever.
 *
 * Return:  0; -EEXIST; -ENOENT, -ENOTDIR, -ENAMETOOLONG of either path; -ENOMEM.
 */
int vfs_add_alias(const char *path, const char *target);

/* vfs_remove_tree - take a directory and all below it away again.
 *
 * Return:  0; -ENOENT; -ENOTDIR; -EINVAL it is the root or /tmp or holds it, or is below
 *          it; -EBUSY a file in it is open, and nothing was removed.
 */
int vfs_remove_tree(const char *path);
