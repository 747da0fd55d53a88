/* tracefs.h - the directories of the tracer, below /sys/kernel/tracing, which is
 * /sys/kernel/debug/tracing too.
 *
 * Context: thread.
 */
#pragma once

#include "kernel/fs/vfs.h"

struct tracefs_dir;

/* tracefs_create_dir - make a directory.
 * @name:   one component
 * @parent: NULL: the tracer's own directory
 *
 * Return: the directory, until tracefs_remove(); NULL without memory.
 */
struct tracefs_dir *tracefs_create_dir(const char *name,
                                       const struct tracefs_dir *parent);

/* tracefs_add - put @count files into @dir, NULL for the tracer's own. Borrowed.
 * Return: as vfs_add_tree(), and then none of them is there.
 */
int tracefs_add(const struct tracefs_dir *dir, const struct vfs_file *files,
                size_t count);

/* tracefs_read_only - write() of a file that is only read. As on Linux, where root may open
 * any file, the write is what is refused.
 * tracefs_write_only - show() of a file that is only written.
 * Return: -EINVAL.
 */
long tracefs_read_only(void *priv, const char *text, size_t len);
int tracefs_write_only(struct seq *s, void *priv);

/* tracefs_remove - take @dir and all that is in it away. Directories in it, made by
 * tracefs_create_dir(), are removed before.
 * @dir: or NULL
 *
 * Return: 0; -EBUSY a file in it is open, and nothing was removed.
 */
int tracefs_remove(struct tracefs_dir *dir);

/* tracefs_init - make the two names. Context: boot, once.  Return: as vfs_add_alias(). */
int tracefs_init(void);
