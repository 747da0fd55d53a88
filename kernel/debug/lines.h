/* lines.h - finds the code of the lines of source files. The build makes a table of debug
 * data (gen_lines.py), which is read-only and covers the image, not modules.
 *
 * A line has several places if its function was inlined several times. A place is the
 * first instruction of the line there.
 *
 * Context: any.
 * Cost:    of lines_get() and lines_next(), one pass over the lines of a file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* lines_file - find the next file with a path that is @name, or that ends with a slash
 * and @name.
 * @name: @len bytes
 * @iter: 0 for the first call
 *
 * Return: the number of the file; -ENOENT: there is no further file.
 */
int lines_file(const char *name, size_t len, size_t *iter);

/* lines_path - get the path of @file from the root of the tree: "kernel/fs/vfs.c". */
const char *lines_path(int file);

/* lines_get - get the @i-th place, from 0, of @line in @file, in order of addresses.
 * Return: 0 with @addr filled; -ENOENT: the line has no further place.
 */
int lines_get(int file, unsigned line, size_t i, uintptr_t *addr);

/* lines_next - find the first line after @line that has code. Return: 0: no such line. */
unsigned lines_next(int file, unsigned line);
