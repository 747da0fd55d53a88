/* bench_condition.c - loops around a condition that is hardly ever true.
 *
 * Each loop keeps its variable in a register, and does nothing else.
 */
#include "probes/bench/bench_condition.h"

#include "kernel/debug/marker.h"

STATIC_KEY(bench_key);
bool bench_flag;
static uint64_t passes;

NOINLINE void bench_pass(uint64_t i)
{
    passes += i;
}

#define LOOP(name, what)                                                                 \
    NOINLINE void bench_condition_##name(uint64_t count)                                 \
    {                                                                                    \
        for (uint64_t i = 0; i < count; i++) {                                           \
            __asm__ volatile("" : "+r"(i));                                              \
            what;                                                                        \
        }                                                                                \
    }

LOOP(none, (void)0)
LOOP(marker, MARK(bench_pass, BENCH_MARKER_FORMAT, i))
LOOP(key, if (static_key_is_on(&bench_key)) bench_pass(i))
LOOP(load, if (unlikely(READ_ONCE(bench_flag))) bench_pass(i))
LOOP(call, bench_pass(i))
