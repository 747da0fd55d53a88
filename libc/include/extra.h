/* extra.h - functions that the C standard lacks: bounded copies, bounded printing, strict
 * parsing of numbers.
 *
 * In the kernel the standard headers bring these names along. Code that is also built on
 * the host includes this file by its path, because the host's headers do not have them.
 */
#pragma once

#include "kernel/base/compiler.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* strlcpy - copy a string into a buffer of fixed size, always with its NUL.
 * strlcat - append a string to the string in @dst, always with its NUL.
 * @size: the size of the whole buffer @dst, in bytes; with 0 nothing is written
 *
 * Context: any.
 * Return:  the length that the whole string would have. If it is @size or more, the string
 *          was cut. If @dst has no NUL in its @size bytes, strlcat takes its length as
 *          @size.
 */
size_t strlcpy(char *restrict dst, const char *restrict src, size_t size);
size_t strlcat(char *restrict dst, const char *restrict src, size_t size);

/* scnprintf, vscnprintf - snprintf that says how much it stored.
 * @size: of @buf in bytes; with 0 nothing is written
 *
 * A caller can build a text piece by piece with `len += scnprintf(buf + len, size - len,
 * ...)`, and never writes behind the end.
 *
 * Context: any.
 * Return:  characters stored, without the NUL: 0..@size - 1.
 */
int scnprintf(char *buf, size_t size, const char *fmt, ...) PRINTF(3, 4);
int vscnprintf(char *buf, size_t size, const char *fmt, va_list list) PRINTF(3, 0);

/* parse_u64, parse_i64 - a string that is a number from its first to its last character.
 * @s:    digits, for parse_i64 with one '-' before them; no spaces, no '+'
 * @base: 2..36; 0 takes 0x... as 16, 0... as 8, everything else as 10. "0x" may also
 *        stand before digits of base 16
 * @out:  untouched on error
 *
 * Context: any.
 * Return:  0; -EINVAL not a number of that base; -ERANGE a number that does not fit.
 */
int parse_u64(const char *s, int base, uint64_t *out);
int parse_i64(const char *s, int base, int64_t *out);

/* parse_bool - yes or no, by how a text begins: 1, y, t, on or 0, n, f, off, in upper or
 * lower case.
 * @text: @len bytes, no string
 * @out:  untouched on error
 *
 * Context: any.
 * Return:  0; -EINVAL neither.
 */
int parse_bool(const char *text, size_t len, bool *out);

/* glob_match - does all of @text match @pattern? '*' is any text, '?' any character,
 * [a-z_] one of these, [!a-z] or [^a-z] none of them; a backslash takes the meaning away.
 *
 * Context: any.
 * Cost:    at most the product of both lengths.
 */
bool glob_match(const char *pattern, const char *text);
