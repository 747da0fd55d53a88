/* readers.h - the two functions that lab 2 is about. */
#pragma once

#include "kernel/base/compiler.h"

#include <stdint.h>

struct source {
    uint64_t at, sum;
};

#define BYTES_MAX 64

/* read_bytes - copy the next @count bytes of @s to @to, but not more than BYTES_MAX.
 * write_bytes - take @count bytes from @from, but not more than BYTES_MAX.
 *
 * Both may be called in any context, also in NMIs.  Return: the number of bytes.
 */
unsigned long read_bytes(struct source *s, uint8_t *to, unsigned long count);
unsigned long write_bytes(struct source *s, const uint8_t *from, unsigned long count);
