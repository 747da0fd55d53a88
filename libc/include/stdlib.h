/* stdlib.h - numbers from text, sorting and searching: a part of C11 "General utilities
 * <stdlib.h>".
 */
#pragma once

#include "libc/include/extra.h"

#include <stddef.h>

/* strtol and its kin - the number that @s begins with, after spaces and a sign.
 * @end:  where to put the address behind the number; @s itself when there is none. NULL
 *        when the caller does not need it
 * @base: 2..36, or 0 to tell from the prefix; another one finds no number
 *
 * There is no errno: a number that does not fit gives the nearest one that does (for the
 * unsigned two the greatest), and looks like it. parse_u64 and parse_i64 tell.
 *
 * Context: any.
 * Return:  the number; the unsigned two give the two's complement of a negative one.
 */
long strtol(const char *restrict s, char **restrict end, int base);
long long strtoll(const char *restrict s, char **restrict end, int base);
unsigned long strtoul(const char *restrict s, char **restrict end, int base);
unsigned long long strtoull(const char *restrict s, char **restrict end, int base);

/* qsort - sort in place; equal elements may change their order.
 * bsearch - find an element of a sorted array that equals @key; NULL: there is none.
 * @size:    the size of an element, in bytes
 * @compare: returns a negative number, 0 or a positive number if its first argument is
 *           before, equal to or after its second; bsearch passes @key first
 *
 * Context: any that @compare allows. A small fixed amount of stack, no recursion.
 * Cost:    qsort never compares more than about 2 * @count * log2(@count) times.
 */
void qsort(void *base, size_t count, size_t size,
           int (*compare)(const void *, const void *));
void *bsearch(const void *key, const void *base, size_t count, size_t size,
              int (*compare)(const void *, const void *));
