/* work.h - named workloads: work that runs every part of the kernel on demand.
 *
 * Probes are tried on them. Each does the same work for the same seed, whatever the number
 * of CPUs, and proves it by a checksum; and it counts its calls of the function that it is
 * about, so that the hits of a probe there can be compared.
 *
 *     static int pages_run(struct work *w)
 *     {
 *         w->function = "frame_alloc";
 *         ...
 *         w->calls++;
 *         work_mix(w, value);
 *         return 0;
 *     }
 *     WORKLOAD(pages, pages_run, "take frames and give them back");
 */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One run. Belongs to the thread that runs the workload. */
struct work {
    uint64_t seed;
    uint64_t random;      /* state of work_random() */
    uint64_t checksum;    /* no times, no addresses */
    uint64_t calls;       /* how often @function was called by this run */
    const char *function; /* what the workload is about; NULL: of no function alone */
    int argc;             /* what followed NAME on the command line, the seed included */
    char **argv;
    struct seq *out; /* for further output; the result line is printed by workload_run */
};

struct workload {
    const char *name;
    const char *help; /* one line */
    int (*run)(struct work *w);
};

/* WORKLOAD - make a workload known, from any object of the image.
 * @id:   its name, an identifier
 * @fn:   int fn(struct work *); 0 or a negative errno
 */
#define WORKLOAD(id, fn, text)                                                           \
    static const struct workload workload_##id USED SECTION(".workloads")                \
        ALIGNED(8) = { #id, text, fn }

/* workload_run - run one by name, or "all" of them; prints
 *     NAME: checksum 0x0123456789abcdef calls N of FUNCTION
 * and, after "all", a line with their common checksum.
 * @argv:  @argc words: [SEED [ARG...]]; the seed is 1 when not given
 * @out:   where the lines go
 * @stop:  asked with @arg between two workloads and during long ones, by any thread: is the
 *         run to end early? NULL: never
 *
 * One run at a time in the whole kernel; others wait.
 * Locks:   takes the workload mutex.
 * Return:  0; -ENOENT no such workload; -EINVAL not a number; -EINTR it was to end early;
 *          or the workload's failure.
 */
int workload_run(const char *name, int argc, char **argv, struct seq *out,
                 bool (*stop)(void *arg), void *arg);

/* work_stop - for loops that may take long: -EINTR when the run is to end early, else 0.
 * Context: any thread of the run.
 */
int work_stop(void);

/* workload_add - @count more, from loaded code; @loads stays until workload_remove().
 * workload_remove - they are unknown from now on. @loads: as then; unknown ones are no error
 *
 * Context: thread.
 * Return:  0; -ENOMEM; -EBUSY one of them runs or is about to: it is to be called again.
 */
int workload_add(const struct workload *loads, size_t count);
int workload_remove(const struct workload *loads);

/* workload_get - the workload at @idx in the order of names; NULL behind the last. */
const struct workload *workload_get(unsigned idx);

/* work_random - the next number of the run's own stream, which depends on the seed only.
 * work_mix - make @value part of the checksum; the order of the calls counts.
 */
uint64_t work_random(struct work *w);
void work_mix(struct work *w, uint64_t value);

/* work_next - the same stream, its @state kept by the caller, a task for instance. */
uint64_t work_next(uint64_t *state);

/* work_hash - a number scrambled: equal for equal, spread for different. Any context. */
uint64_t work_hash(uint64_t x);
/* work_hash_text - the same of @len bytes. */
uint64_t work_hash_text(const char *text, uint64_t len);

#define WORK_TASKS 8 /* tasks of work_spread, on any number of CPUs */

/* One of the parts that work_spread() runs at the same time. */
struct work_task {
    unsigned idx;    /* 0..WORK_TASKS-1 */
    uint64_t seed;   /* its own, from the run's seed and idx */
    uint64_t result; /* for the checksum */
    uint64_t calls;  /* added to work.calls */
    int err;         /* 0 or a negative errno: fails the run */
    void *shared;    /* as given to work_spread */
    int (*fn)(struct work_task *);
};

/* work_spread - run @fn in WORK_TASKS threads, task i pinned to CPU i modulo the number of
 * CPUs; wait for all of them, then mix their results in the order of their idx.
 * @shared:  handed to every task
 *
 * Return:  0; -ENOMEM; or the first task's failure.
 */
int work_spread(struct work *w, int (*fn)(struct work_task *), void *shared);
