/* lines.h - where lines of source files have their code, as debug data knows it. The table
 * is made by the build (gen_lines.py), is read-only, and covers the image, not modules.
 *
 * A line has several places where its function was inlined several times. A place is the
 * first instruction of the line there.
 *
 * Context: any.  Cost: of all functions, one pass over the lines of a file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* lines_file - the next file whose path is, or ends with, a slash and @name.
 * @name: @len bytes
 * @iter: 0 for the first call
 *
 * Return: the file's number; -ENOENT: there is no further one.
 */
int lines_file(const char *name, size_t len, size_t *iter);

/* lines_path - its path from the root of the tree: "kernel/fs/vfs.c". */
const char *lines_path(int file);

/* lines_get - the @i-th place, from 0, of @line in @file, by address.
 * Return: 0 with @addr filled; -ENOENT: it has no further one.
 */
int lines_get(int file, unsigned line, size_t i, uintptr_t *addr);

/* lines_next - the first line behind @line that has code. Return: 0: there is none. */
unsigned lines_next(int file, unsigned line);
