/* stairs.h - functions for tests of nested hits: each gets a probe whose handler calls
 * the next function. All of them compute something different; otherwise the compiler
 * could merge them into one.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "probes/kprobe.h"

#define STAIRS (PROBE_NEST_MAX + 1) /* one more than hits can be nested */

#define STAIR(n)                                                                         \
    static NOINLINE long stair##n(long x)                                                \
    {                                                                                    \
        __asm__ volatile("" : "+r"(x));                                                  \
        return x * ((n) + 2) + 1;                                                        \
    }
STAIR(0)
STAIR(1)
STAIR(2)
STAIR(3)
STAIR(4)

static long (*const stairs[STAIRS])(long) = { stair0, stair1, stair2, stair3, stair4 };

static inline bool stair_is_right(size_t level)
{
    return stairs[level](7) == 7 * ((long)level + 2) + 1;
}
