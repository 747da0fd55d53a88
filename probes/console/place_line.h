/* place_line.h - finds the code of lines of source: FILE:LINE[#N]. */
#pragma once

#include "kernel/console/shell.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* place_line_is - is @text spelt FILE:LINE[#N], with a FILE that ends in .c, .h, .asm or
 * .inc?
 * Context: any.
 */
bool place_line_is(const char *text);

/* place_line_find - find the address that @text means.
 * Return: 0; -ENOENT no such file or place; -EADDRNOTAVAIL @text means several files or
 *         places.
 */
int place_line_find(const char *text, uintptr_t *addr);

/* place_line_get - find the @i-th address, counted from 0, that @text can mean. Without
 * #N a line has as many addresses as places that it was compiled to.
 * Return: 0; -ENOENT there is no further address; -EADDRNOTAVAIL several files have this
 *         name.
 */
int place_line_get(const char *text, size_t i, uintptr_t *addr);

/* place_line_refused - print why @text means no address, and what may be meant.
 * Return: the errno of place_line_find().
 */
int place_line_refused(struct shell *sh, const char *text);

/* place_line_complete - offer the lines that have code behind "FILE:", or a colon behind
 * the name of a file.
 */
void place_line_complete(struct shell_completion *c);
