/* region_text.h - makes two functions, one behind the other, for tests of regions. */
#pragma once

#include "tests/unit/port_fake.h"
#include "tests/unit/symbol_list.h"

static uintptr_t fn; /* the first one */

/* twins - put the bytes @hex into the text. The function "fn" is the first @size bytes;
 * the function "other" has 16 bytes and begins @gap bytes behind the end of "fn".
 */
static inline void twins(const char *hex, size_t size, size_t gap)
{
    boundary_forget();
    fake_start();
    fn = fake_bytes_at(hex);
    symbol_add("fn", fn, size);
    symbol_add("other", fn + size + gap, 16);
}
