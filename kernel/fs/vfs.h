/* vfs.h - the file layer: a tree in memory, in which each file has a name and functions
 * for reads and writes.
 *
 * A file belongs to a subsystem, which prints its text and takes the text that is written
 * to it (vfs_add_tree); or it is a memory file, which every caller may create below /tmp.
 * There is no current directory: a path begins at the root, with or without a leading
 * slash.
 *
 * Context of all: thread. No lock of the file layer is held while a callback is called, so
 *                 callbacks may use the file layer.
 */
#pragma once

#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VFS_NAME_MAX 63          /* bytes in one component of a path */
#define VFS_TMP_BYTES (4u << 20) /* all memory files together */
#define VFS_TMP_NODES 1024u      /* /tmp, and files and directories below it */

#define VFS_READ 1u   /* the open takes a copy of the text, which reads return */
#define VFS_WRITE 2u  /* a memory file that does not exist is created */
#define VFS_TRUNC 4u  /* with VFS_WRITE: drop the old content at the open */
#define VFS_APPEND 8u /* with VFS_WRITE: each write appends to the end */
#define VFS_NEW 16u   /* with VFS_WRITE: the file must not exist */

struct vfs_node;

/* An open file. The caller owns the struct and sets @flags before vfs_open(). */
struct file {
    unsigned flags;
    struct vfs_node *node; /* held until vfs_close() */
    struct seq text;       /* the copy of the text that VFS_READ takes */
};

/* A file of a subsystem. The struct, and all memory that it points to, must stay at the
 * same addresses while the file exists.
 */
struct vfs_file {
    const char *name; /* relative to the tree, with directories: "events/enable" */
    unsigned mode;    /* permission bits, as the command `stat` shows them: 0444 */

    /* show - print the whole text. Return: 0 or a negative errno, which vfs_open()
     * returns. NULL: the file cannot be opened for reading.
     */
    int (*show)(struct seq *s, void *priv);
    /* write - take the @len bytes of one write. Return: how many were taken, or a negative
     * errno. NULL: the file cannot be opened for writing.
     */
    long (*write)(void *priv, const char *text, size_t len);
    /* truncate - called when the file is opened with VFS_TRUNC. Return: 0 or a negative
     * errno, which vfs_open() returns. NULL: VFS_TRUNC has no effect.
     */
    int (*truncate)(void *priv);
    void *priv;
};

struct vfs_stat {
    bool is_dir;
    unsigned mode; /* permission bits */
};

/* vfs_init - make the root and /tmp. Context: boot, once. The heap is ready.
 * Return:  0; -ENOMEM.
 */
int vfs_init(void);

/* vfs_open - open a file.
 * @path:  any string
 * @file:  the caller has set flags; open on success, until vfs_close()
 *
 * Return:  0; -ENOENT no such file; -ENOTDIR a file where the path needs a directory;
 *          -EISDIR; -ENAMETOOLONG; -EACCES the file cannot be read, written or created;
 *          -EEXIST with VFS_NEW;
 *          -EINVAL neither VFS_READ nor VFS_WRITE; -ENOSPC; -ENOMEM; or the errno of the
 *          file's show or truncate.
 */
int vfs_open(const char *path, struct file *file);

/* vfs_read - copy a piece of an open file's text.
 * @pos:  byte offset of the piece; on return the offset behind it
 *
 * Return:  bytes copied, 0 at the end; -EBADF not open for reading.
 */
long vfs_read(struct file *file, char *buf, size_t count, uint64_t *pos);

/* vfs_write - write @count bytes. The file of a subsystem gets all of them in one call, and
 * may take fewer: then the caller calls again with the rest.
 * @pos:  byte offset; on return the offset behind the bytes. Only a memory file uses it;
 *        with VFS_APPEND it is set to the end first
 *
 * Return:  bytes taken; -EBADF not open for writing; -ENOSPC, -ENOMEM; or the errno of
 *          the file's write.
 */
long vfs_write(struct file *file, const char *text, size_t count, uint64_t *pos);

/* vfs_close - close @file, which must be open. */
void vfs_close(struct file *file);

/* vfs_readdir - print the names in a directory, sorted, one in each line, with '/' behind
 * the name of a directory.
 * @out:  without drain
 *
 * Return:  0; -ENOENT, -ENOTDIR, -ENAMETOOLONG; -ENOMEM.
 */
int vfs_readdir(const char *path, struct seq *out);

/* vfs_stat - find out what @path is.  Return: 0; -ENOENT, -ENOTDIR, -ENAMETOOLONG. */
int vfs_stat(const char *path, struct vfs_stat *out);

/* vfs_mkdir, vfs_rmdir - make or remove a directory below /tmp.
 * vfs_unlink - remove a file below /tmp. If the file is open, its memory stays until the
 * last vfs_close().
 * Return:  0; -EPERM not below /tmp; -EEXIST; -ENOENT; -ENOTDIR; -EISDIR; -ENOTEMPTY;
 *          -EBUSY /tmp itself; -ENAMETOOLONG; -ENOSPC; -ENOMEM; -EINVAL the path of
 *          vfs_rmdir() ends in ".".
 */
int vfs_mkdir(const char *path);
int vfs_rmdir(const char *path);
int vfs_unlink(const char *path);

/* vfs_add_tree - add the files of a subsystem below @path.
 * @path:   a directory; missing directories of the path are made
 * @files:  @count files, borrowed until they are removed
 *
 * Return:  0; -EEXIST a name is taken; -ENOTDIR; -ENAMETOOLONG; -ENOMEM. On failure none
 *          of @files is added.
 */
int vfs_add_tree(const char *path, const struct vfs_file *files, size_t count);

/* vfs_remove_files - remove all files of subsystems that have their struct vfs_file, or
 * anything that it points to, in [@start, @end), from all directories. Directories stay.
 * Return:  0; -EBUSY one of these files is open, and no file is removed.
 */
int vfs_remove_files(uintptr_t start, uintptr_t end);

/* vfs_add_alias - make @path another name of the directory @target. The alias stays for
 * ever.
 * Return:  0; -EEXIST; -ENOENT, -ENOTDIR, -ENAMETOOLONG of either path; -ENOMEM.
 */
int vfs_add_alias(const char *path, const char *target);

/* vfs_remove_tree - remove a directory and everything below it.
 * Return:  0; -ENOENT; -ENOTDIR; -EINVAL it is the root or contains /tmp, or is /tmp or a
 *          memory directory below it; -EBUSY a file in it is open or a directory in it
 *          has an alias, and nothing is removed.
 */
int vfs_remove_tree(const char *path);
