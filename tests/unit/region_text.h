/* region_text.h - two functions side by side, for tests of regions. */
#pragma once

#include "tests/unit/port_fake.h"
#include "tests/unit/symbol_list.h"

static uintptr_t fn; /* the first one */

/* twins - two functions and what lies between; the first is named by its size. */
static inline void twins(const char *hex, size_t size, size_t gap)
{
    fake_start();
    fn = fake_bytes_at(hex);
    symbol_add("fn", fn, size);
    symbol_add("other", fn + size + gap, 16);
}
