/* bench_peer.c - `bench_peer NAME`: measure what other people's instrumentation costs at
 * bench_dead(): bench_peers.py sets it there. Prints the same figures as bench_native.c. The
 * instrumentation stays in place for all rounds, so an equal function without it is the
 * other side of the difference.
 */
#include "tests/hosted/bench_clock.h"

#include <stdio.h>

int main(int count, char **args)
{
    double ns[ROUNDS], ratio[ROUNDS];

    if (count != 2)
        return 2;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t empty = loop_ns(bench_empty, bench_return);
        uint64_t call = loop_ns(bench_calls, bench_return);
        uint64_t without = loop_ns(bench_calls, bench_twin);
        uint64_t with = loop_ns(bench_calls, bench_dead);

        ns[i] = (double)(int64_t)(with - without) / CALLS;
        ratio[i] = (double)(int64_t)(with - without) / (double)(int64_t)(call - empty);
    }
    printf("sonde.native.%s %.2f ns\n", args[1], median(ns));
    printf("sonde.native.%s.calls %.2f ratio\n", args[1], median(ratio));
    return 0;
}
