/* code.h - comes before the tested code: what the compiler does not show by itself.
 *
 * Inline assembly is a point of choice. Functions that TSan shall not see are seen here.
 */
#pragma once

#define _GNU_SOURCE /* a file behind may define it itself */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef _GNU_SOURCE

#include "kernel/base/compiler.h"
#include "libc/include/extra.h"

void explore_asm(void);

#undef barrier
#define barrier() asm volatile("" ::: "memory")
#define __asm__                                                                          \
    if (explore_asm(), 0) {                                                              \
    } else                                                                               \
        __asm__
#define no_sanitize(what)
