/* bench_condition.h - loops around a condition that is hardly ever true, for `bench marker`
 * and for `make bench-native`.
 */
#pragma once

#include "kernel/debug/static_key.h"

#include <stdbool.h>
#include <stdint.h>

#define BENCH_MARKER "bench_pass"
#define BENCH_MARKER_FORMAT "i %lu"

extern struct static_key bench_key;
extern bool bench_flag;

/* bench_pass - add @i to a sum: what each loop does if its condition is true.
 * Context: any.
 */
void bench_pass(uint64_t i);

/* bench_condition_none - run an empty loop @count times.
 * bench_condition_marker - the same loop with a marker that has one argument.
 * bench_condition_key - the same loop with a test of a static key.
 * bench_condition_load - the same loop with a test of a variable in memory.
 * bench_condition_call - the same loop with a call of bench_pass() and no condition.
 * Context: any.
 */
void bench_condition_none(uint64_t count);
void bench_condition_marker(uint64_t count);
void bench_condition_key(uint64_t count);
void bench_condition_load(uint64_t count);
void bench_condition_call(uint64_t count);
