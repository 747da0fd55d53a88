/* work.h - named workloads: they run every part of the kernel on demand, for tests of
 * probes.
 *
 * For the same seed a workload does the same work, whatever the number of CPUs, and a
 * checksum proves it. A workload that is about one function counts its own calls of it,
 * so this number can be compared with the hits of a probe there.
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

/* One run of a workload. Belongs to the thread that runs it. */
struct work {
    uint64_t seed;
    uint64_t random;      /* state of work_random() */
    uint64_t checksum;    /* must not depend on times or addresses */
    uint64_t calls;       /* how often @function was called by this run */
    const char *function; /* the function that the workload is about; NULL: none */
    int argc;             /* the words behind NAME on the command line, SEED included */
    char **argv;
    struct seq *out; /* for further output; workload_run() prints the result line */
};

struct workload {
    const char *name;
    const char *help; /* one line */
    int (*run)(struct work *w);
};

/* WORKLOAD - define a workload, in any source file of the image.
 * @id:   its name, an identifier
 * @fn:   int fn(struct work *); returns 0 or a negative errno
 */
#define WORKLOAD(id, fn, text)                                                           \
    static const struct workload workload_##id USED SECTION(".workloads")                \
        ALIGNED(8) = { #id, text, fn }

/* workload_run - run the workload @name, or all of them if @name is "all". Print
 *     NAME: checksum 0x0123456789abcdef calls N of FUNCTION
 * and, after "all", a line with one checksum over all of them.
 * @argv:  @argc words: [SEED [ARG...]]; the seed is 1 when it is not given
 * @out:   receives the lines
 * @stop:  tells whether the run is to end early. Any thread of the run may call it, with
 *         @arg, between two workloads and during long workloads. NULL: never
 *
 * The kernel does one run at a time; further callers wait.
 * Return:  0; -ENOENT no such workload; -EINVAL SEED is not a number; -EINTR the run has
 *          ended early; or the errno of the workload.
 */
int workload_run(const char *name, int argc, char **argv, struct seq *out,
                 bool (*stop)(void *arg), void *arg);

/* work_stop - for loops that may take long: return -EINTR if the run is to end early,
 * else 0. Context: thread. It is one of the run.
 */
int work_stop(void);

/* workload_add - add the @count workloads of loaded code; @loads is borrowed until
 * workload_remove().
 * workload_remove - remove each table of workloads that lies in [@start, @end) or points
 * there; it is no error if there is none
 * Context: thread.
 * Return:  0; -ENOMEM; -EEXIST there is a workload with one of their names, or two of them
 *          have one name; -EBUSY one of them runs or is about to run. None of them can be
 *          started again; the caller has to repeat the call.
 */
int workload_add(const struct workload *loads, size_t count);
int workload_remove(uintptr_t start, uintptr_t end);

/* workload_get - return the workload at @idx in the order of names; NULL: there is none.
 */
const struct workload *workload_get(unsigned idx);

/* work_random - return the next random number of the run, which depends on the seed only.
 * work_mix - make @value part of the checksum. The order of these calls changes the
 * checksum.
 */
uint64_t work_random(struct work *w);
void work_mix(struct work *w, uint64_t value);

/* work_next - return the next random number of the caller's own @state, of a task for
 * instance.
 */
uint64_t work_next(uint64_t *state);

/* work_hash - scramble a number: equal numbers have equal results, and similar numbers
 * have very different ones. Context: any.
 */
uint64_t work_hash(uint64_t x);
/* work_hash_text - scramble @len bytes in the same way. Context: any. */
uint64_t work_hash_text(const char *text, uint64_t len);

#define WORK_TASKS 8 /* tasks of work_spread(), whatever the number of CPUs */

/* One of the tasks that work_spread() runs at the same time. */
struct work_task {
    unsigned idx;    /* 0..WORK_TASKS-1 */
    uint64_t seed;   /* its own seed, made from the run's seed */
    uint64_t result; /* for the checksum */
    uint64_t calls;  /* work_spread() adds it to work.calls */
    int err;         /* 0, or a negative errno, with which the run fails */
    void *shared;    /* the @shared of work_spread() */
    int (*fn)(struct work_task *);
};

/* work_spread - run @fn in WORK_TASKS threads, with task i pinned to CPU i modulo the
 * number of CPUs. Wait for all of them, then mix their results in the order of their idx.
 * If one of the threads cannot be made, @fn runs in none of them.
 * @shared:  the same for all tasks
 *
 * Return:  0; -ENOMEM; or the errno of the first task that failed.
 */
int work_spread(struct work *w, int (*fn)(struct work_task *), void *shared);
