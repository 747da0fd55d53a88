/* extra.h - functions that the C standard lacks: bounded copies, bounded printing, strict
 * parsing of numbers.
 *
 * In the kernel the standard headers include this file. Code that is also built on the host
 * includes it by its path, because the host's headers do not have these functions.
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

/* str_is - are the @len bytes at @text, which need no NUL behind them, the string @s?
 * str_begins - do they begin with it?
 * skip_blanks - the first character from @p on that is no space.
 * cut_blanks - the length of these bytes without the spaces at their end.
 * is_word_char - is @c a letter, a digit or an underscore? Context of all: any.
 */
bool str_is(const char *s, const char *text, size_t len);
bool str_begins(const char *s, const char *text, size_t len);
char *skip_blanks(const char *p);
size_t cut_blanks(const char *text, size_t len);
bool is_word_char(char c);

/* compare_addresses - a comparison for qsort(): each element begins with an address, by
 * which the elements are sorted. Context: any.
 */
int compare_addresses(const void *a, const void *b);

/* scnprintf, vscnprintf - like snprintf, but return how many characters were stored.
 * @size: bytes of @buf; with 0 nothing is written
 *
 * With `len += scnprintf(buf + len, size - len, ...)` a caller can write a text in pieces,
 * and never writes behind the end of the buffer.
 *
 * Context: any.
 * Return:  characters stored, without the NUL: 0..@size - 1, or 0 if @size is 0.
 */
int scnprintf(char *buf, size_t size, const char *fmt, ...) PRINTF(3, 4);
int vscnprintf(char *buf, size_t size, const char *fmt, va_list list) PRINTF(3, 0);

/* parse_u64 - read a number that is the whole string @s.
 * @s:    digits; no spaces, no sign
 * @base: 2..36; or 0: 16 for 0x..., 8 for 0..., else 10. Digits of base 16 may have "0x"
 *        before them
 * @out:  not touched on error
 *
 * Context: any.
 * Return:  0; -EINVAL not a number of that base; -ERANGE a number that does not fit.
 */
int parse_u64(const char *s, int base, uint64_t *out);

/* parse_bool - true if a text begins with 1, y, t or on, false if it begins with 0, n, f or
 * of; in upper or lower case.
 * @text: @len bytes; a NUL behind them is not needed
 * @out:  not touched on error
 *
 * Context: any.
 * Return:  0; -EINVAL the text begins in another way.
 */
int parse_bool(const char *text, size_t len, bool *out);

/* glob_match - does the whole of @text match @pattern? '*' stands for any text, '?' for any
 * character, [a-z_] for one of these, [!a-z] or [^a-z] for a character that is none of
 * these. A backslash and a character stand for this character. Context: any.
 * Cost:    at most the product of both lengths.
 */
bool glob_match(const char *pattern, const char *text);
