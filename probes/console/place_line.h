/* place_line.h - lines of source as places: FILE:LINE[#N]. */
#pragma once

#include "kernel/console/shell.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* place_line_is - is @text spelt FILE:LINE[#N], with FILE that ends in .c, .h, .asm or .inc?
 * Context: any.
 */
bool place_line_is(const char *text);

/* place_line_find - the address that @text means.
 * Return: 0; -ENOENT no such file or place; -EADDRNOTAVAIL several are meant.
 */
int place_line_find(const char *text, uintptr_t *addr);

/* place_line_get - the @i-th address, from 0, that @text may mean. Without #N a line has as
 * many as it was compiled to.
 *
 * Return: 0; -ENOENT there is no further one; -EADDRNOTAVAIL several files are called so.
 */
int place_line_get(const char *text, size_t i, uintptr_t *addr);

/* place_line_refused - tell why @text means no address, and what might be meant.
 * Return: the errno of place_line_find().
 */
int place_line_refused(struct shell *sh, const char *text);

/* place_line_complete - offer the lines that have code behind "FILE:", and the colon behind
 * the name of a file.
 */
void place_line_complete(struct shell_completion *c);
