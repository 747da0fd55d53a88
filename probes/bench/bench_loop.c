/* bench_loop.c - measures how long a loop takes, in rounds. */
#include "kernel/cpu/instr.h"
#include "probes/bench/bench.h"

#include <stdlib.h>

#define ROUNDS 7

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static uint64_t warm_up(uint64_t count)
{
    return count / 10 + 32;
}

uint64_t bench_measured_calls(uint64_t count)
{
    return warm_up(count) + ROUNDS * count;
}

struct bench_cost bench_measure(const struct bench_target *target, uint64_t count)
{
    int64_t rounds[ROUNDS];

    target->loop(warm_up(count));
    for (size_t i = 0; i < ROUNDS; i++) {
        uint64_t start = rdtsc();

        target->loop(count);
        rounds[i] = (int64_t)((rdtsc() - start) * 100 / count);
    }
    qsort(rounds, ROUNDS, sizeof(rounds[0]), by_value);
    return (struct bench_cost){ rounds[ROUNDS / 2], rounds[0] };
}
