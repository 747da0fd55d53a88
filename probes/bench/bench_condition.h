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

/* bench_pass - what each loop calls where its condition is true. Context: any. */
void bench_pass(uint64_t i);

/* bench_condition_none - an empty loop, @count times. The others have in it:
 * bench_condition_marker - a marker with one argument.
 * bench_condition_key - a static key.
 * bench_condition_load - a word of memory that is compared.
 * bench_condition_call - no condition, but the call. Context of all: any.
 */
void bench_condition_none(uint64_t count);
void bench_condition_marker(uint64_t count);
void bench_condition_key(uint64_t count);
void bench_condition_load(uint64_t count);
void bench_condition_call(uint64_t count);
