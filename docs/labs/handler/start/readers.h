/* readers.h - the two functions that lab 2 is about. */
#pragma once

#include "kernel/base/compiler.h"

#include <stdint.h>

struct source {
    uint64_t at, sum;
};

/* read_bytes - copy the next @count bytes of @s to @to.
 * write_bytes - take @count bytes from @from.
 *
 * Both may be called in any context, also in NMIs.  Return: @count.
 */
unsigned long read_bytes(struct source *s, uint8_t *to, unsigned long count);
unsigned long write_bytes(struct source *s, const uint8_t *from, unsigned long count);
