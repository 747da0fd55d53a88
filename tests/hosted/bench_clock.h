/* bench_clock.h - the loops of bench_native.c and bench_peer.c, and how they are measured. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 101
#define CALLS 20000u /* a fraction of a time slice */

/* bench_targets.asm */
void bench_empty(uint64_t rounds, void (*unused)(void));
void bench_calls(uint64_t rounds, void (*fn)(void));
void bench_return(void);
void bench_dead(void);
void bench_twin(void);
void bench_live(void);
void bench_return_exchanged(void);
void bench_return_called(void);

static inline uint64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t loop_ns(void (*loop)(uint64_t, void (*)(void)), void (*fn)(void))
{
    uint64_t start = clock_ns();

    loop(CALLS, fn);
    return clock_ns() - start;
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static inline double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof(values[0]), by_value);
    return values[count / 2];
}

static inline double median(double *values)
{
    return median_of(values, ROUNDS);
}
