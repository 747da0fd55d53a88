/* stdlib.h - read numbers from text, sort and search arrays: a part of C11 "General utilities
 * <stdlib.h>".
 */
#pragma once

#include "libc/include/extra.h"

#include <stddef.h>

/* strtol, strtoll, strtoul, strtoull - read the number at the beginning of @s, behind spaces
 * and a sign.
 * @end:  receives the address behind the number, or @s if there is no number; may be NULL
 * @base: 2..36; or 0: 16 for 0x..., 8 for 0..., else 10. With another base there is no number
 *
 * There is no errno, so a caller cannot see that a number did not fit: parse_u64() returns
 * an error then.
 *
 * Context: any.
 * Return:  the number; 0: there is none. If it does not fit: strtol and strtoll return the
 *          greatest or smallest value, strtoul and strtoull the greatest. For "-1", strtoul
 *          and strtoull return the greatest value, for "-2" one less, and so on.
 */
long strtol(const char *restrict s, char **restrict end, int base);
long long strtoll(const char *restrict s, char **restrict end, int base);
unsigned long strtoul(const char *restrict s, char **restrict end, int base);
unsigned long long strtoull(const char *restrict s, char **restrict end, int base);

/* qsort - sort in place; equal elements may change their order.
 * @count:   the number of elements
 * @size:    bytes of an element
 * @compare: returns a negative number, 0 or a positive number if its first argument is
 *           before, equal to or after its second
 *
 * Context: as @compare. A small fixed amount of stack, no recursion.
 * Cost:    qsort compares at most about 2 * @count * log2(@count) times.
 */
void qsort(void *base, size_t count, size_t size,
           int (*compare)(const void *, const void *));
