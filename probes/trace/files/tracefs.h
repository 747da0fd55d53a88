/* tracefs.h - makes and removes the directories of the tracer, below /sys/kernel/tracing.
 * The name /sys/kernel/debug/tracing leads to the same directories.
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

/* tracefs_add - put @count files into @dir.
 * @dir:   NULL: the tracer's own directory
 * @files: must stay until the directory is removed
 *
 * Return: 0; an errno of vfs_add_tree(): no file was added.
 */
int tracefs_add(const struct tracefs_dir *dir, const struct vfs_file *files,
                size_t count);

/* tracefs_read_only - the write() of a file that can only be read. As on Linux, where
 * root may open any file, opening such a file succeeds and writing fails.
 * tracefs_write_only - the show() of a file that can only be written.
 * Return: -EINVAL.
 */
long tracefs_read_only(void *priv, const char *text, size_t len);
int tracefs_write_only(struct seq *s, void *priv);

/* tracefs_remove - remove @dir with its files. The caller has removed the directories
 * that tracefs_create_dir() made in it.
 * @dir: may be NULL
 *
 * Return: 0; -EBUSY a file in it is open, and nothing was removed.
 */
int tracefs_remove(struct tracefs_dir *dir);

/* tracefs_init - make the tracer's own directory and its second name.
 * Context: boot, once.  Return: as vfs_add_tree(), vfs_add_alias().
 */
int tracefs_init(void);
