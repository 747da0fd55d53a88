/* place_text.h - the name of an instruction, as the console reads it too. */
#pragma once

#include <stdint.h>

#define PLACE_MAX 128 /* bytes of a symbol's name, NUL included */
#define PLACE_TEXT_MAX (PLACE_MAX + 24)

/* place_text - write the name of @addr, such as "vfs_read+0x4", into @buf of
 * PLACE_TEXT_MAX bytes; outside of functions "0x...". Context: any.  Return: @buf.
 */
const char *place_text(char *buf, uintptr_t addr);
