/* work_compute.c - workloads that only compute: they call small functions of this file
 * very often. No other code calls these functions, so no other calls are counted.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/mm/heap.h"
#include "kernel/work/work.h"

#include <stdlib.h>
#include <string.h>

/* -- sort ---------------------------------------------------------------------------- */

#define SORT_COUNT 300

static uint64_t compares; /* calls of sort_compare() in this run */

static NOINLINE int sort_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    compares++;
    return (x > y) - (x < y);
}

static int work_sort_run(struct work *w)
{
    uint32_t *values = kmalloc(SORT_COUNT * sizeof(*values));
    int err = 0;

    w->function = "sort_compare";
    if (!values)
        return -ENOMEM;
    for (size_t i = 0; i < SORT_COUNT; i++)
        values[i] = (uint32_t)work_random(w);
    compares = 0;
    qsort(values, SORT_COUNT, sizeof(*values), sort_compare);
    w->calls = compares;
    for (size_t i = 0; i < SORT_COUNT; i++) {
        work_mix(w, values[i]);
        if (i > 0 && values[i] < values[i - 1])
            err = -EIO;
    }
    kfree(values);
    return err;
}
WORKLOAD(sort, work_sort_run, "sort numbers");

/* -- hash: a table of words ---------------------------------------------------------- */

#define HASH_SLOTS 256 /* a power of two, larger than the number of different keys */

static NOINLINE unsigned hash_insert(uint64_t *slots, uint64_t key)
{
    unsigned at = (unsigned)work_hash(key) % HASH_SLOTS;
    unsigned steps = 0;

    while (slots[at] && slots[at] != key) {
        at = (at + 1) % HASH_SLOTS;
        steps++;
    }
    slots[at] = key;
    return steps;
}

static int hash_run(struct work *w)
{
    uint64_t *slots = kzalloc(HASH_SLOTS * sizeof(*slots));

    w->function = "hash_insert";
    if (!slots)
        return -ENOMEM;
    for (unsigned i = 0; i < 400; i++) {
        work_mix(w, hash_insert(slots, 1 + work_random(w) % (HASH_SLOTS - 1)));
        w->calls++;
    }
    for (unsigned i = 0; i < HASH_SLOTS; i++)
        work_mix(w, slots[i]);
    kfree(slots);
    return 0;
}
WORKLOAD(hash, hash_run, "fill a hash table");

/* -- matrix: every CPU multiplies ---------------------------------------------------- */

#define MATRIX_SIZE 12

static NOINLINE uint32_t matrix_cell(const uint32_t *a, const uint32_t *b, unsigned row,
                                     unsigned column)
{
    uint32_t sum = 0;

    for (unsigned k = 0; k < MATRIX_SIZE; k++)
        sum += a[row * MATRIX_SIZE + k] * b[k * MATRIX_SIZE + column];
    return sum;
}

static int matrix_task(struct work_task *t)
{
    uint32_t a[MATRIX_SIZE * MATRIX_SIZE], b[MATRIX_SIZE * MATRIX_SIZE];

    for (unsigned i = 0; i < MATRIX_SIZE * MATRIX_SIZE; i++) {
        a[i] = (uint32_t)work_next(&t->seed);
        b[i] = (uint32_t)work_next(&t->seed);
    }
    for (unsigned row = 0; row < MATRIX_SIZE; row++) {
        for (unsigned column = 0; column < MATRIX_SIZE; column++) {
            t->result = work_hash(t->result ^ matrix_cell(a, b, row, column));
            t->calls++;
        }
    }
    return 0;
}

static int matrix_run(struct work *w)
{
    w->function = "matrix_cell";
    return work_spread(w, matrix_task, NULL);
}
WORKLOAD(matrix, matrix_run, "threads on all CPUs multiply matrices");

/* -- recursion ----------------------------------------------------------------------- */

/* recursion_step - call itself twice on every level. The function still has work to do after
 * each call, so the compiler cannot make a loop of it. It counts its calls in *@calls.
 */
static NOINLINE uint64_t recursion_step(unsigned depth, uint64_t x, uint64_t *calls)
{
    uint64_t left, right;

    ++*calls;
    if (depth == 0)
        return work_hash(x);
    left = recursion_step(depth - 1, x * 3 + 1, calls);
    right = recursion_step(depth - 1, x + left, calls);
    return work_hash(left ^ (right << 1));
}

static int recursion_run(struct work *w)
{
    w->function = "recursion_step";
    work_mix(w, recursion_step(8, work_random(w), &w->calls));
    return 0;
}
WORKLOAD(recursion, recursion_run,
         "a function that calls itself twice, nine levels deep");
