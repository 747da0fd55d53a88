/* bench.h - the console's `bench`: what probes cost, in groups of figures.
 *
 * A figure is one line, `sonde.NAME VALUE UNIT`. The names are listed in docs/bench.md and
 * keep their meaning.
 */
#pragma once

#include "kernel/debug/shell.h"

#include <stddef.h>
#include <stdint.h>

struct bench_group {
    const char *name;
    const char *help; /* one line */

    /* run - measure and print. @only: NULL, or the one part of the group that is wanted.
     * Context: thread, on one CPU.
     * Return: 0; -ENOENT no such part; -EINTR; another negative errno, told already. */
    int (*run)(struct shell *sh, const char *only);
};

extern const struct bench_group bench_group_hit;

/* bench_print - a figure. @name: printf's, with its arguments behind @unit */
void bench_print(struct shell *sh, uint64_t value, const char *unit, const char *name,
                 ...) PRINTF(4, 5);
/* bench_print_hundredths - the same; @value counts hundredths, less than none is none. */
void bench_print_hundredths(struct shell *sh, int64_t value, const char *unit,
                            const char *name, ...) PRINTF(4, 5);

/* What is probed: tests/bench/targets.asm. */
struct bench_target {
    void (*loop)(uint64_t count); /* calls the function @count times */
    uintptr_t addr;               /* its first instruction */
};

#define BENCH_PLACEMENTS 8
extern const struct bench_target bench_targets_lea[], bench_targets_shift[],
    bench_targets_jmp[];

/* Hundredths of a cycle of the time stamp counter, for each call of a target. */
struct bench_cost {
    int64_t median, min; /* of the rounds */
};

/* bench_measure - call it @count times in each of some rounds. */
struct bench_cost bench_measure(const struct bench_target *target, uint64_t count);
