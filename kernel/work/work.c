/* work.c - runs workloads by name, and has the functions that they share: random numbers,
 * checksums, threads.
 */
#include "kernel/work/work.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"
#include "kernel/thread/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SEED 1
#define TURN_LOOK_NS UINT64_C(10000000) /* a run that waits for another looks for @stop */

extern const struct workload workloads_start[], workloads_end[];

/* There is one run at a time. This is no mutex, because a run may be long, and prints. */
static bool is_running; /* [a] */

/* The @stop and @arg of this run. Written before and after the run only. */
static struct {
    bool (*fn)(void *arg);
    void *arg;
} stop_asked;

int work_stop(void)
{
    return stop_asked.fn && stop_asked.fn(stop_asked.arg) ? -EINTR : 0;
}

/* -- numbers ------------------------------------------------------------------------- */

uint64_t work_hash(uint64_t x) /* the finalizer of splitmix64 */
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t work_hash_text(const char *text, uint64_t len)
{
    uint64_t hash = len;

    for (uint64_t i = 0; i < len; i++)
        hash = work_hash(hash ^ (uint8_t)text[i]);
    return hash;
}

uint64_t work_next(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return work_hash(*state);
}

uint64_t work_random(struct work *w)
{
    return work_next(&w->random);
}

void work_mix(struct work *w, uint64_t value)
{
    w->checksum = work_hash(w->checksum ^ value);
}

/* -- tables of loaded code ----------------------------------------------------------- */

struct table {
    struct table *next;
    const struct workload *start, *end;
    unsigned users; /* runs that have taken a workload of this table */
    bool going;     /* further runs cannot take one */
};

static struct mutex tables_lock = MUTEX_INIT(tables_lock);
static struct table *tables; /* [tables_lock] */

static const struct workload *workload_find(const char *name)
{
    for (const struct workload *l = workloads_start; l < workloads_end; l++) {
        if (strcmp(l->name, name) == 0)
            return l;
    }
    return NULL;
}

/* workload_is_taken - has a workload of the image or of loaded code this name? Locks:
 * tables_lock held.
 */
static bool workload_is_taken(const char *name)
{
    for (const struct table *t = tables; t; t = t->next)
        for (const struct workload *l = t->start; l < t->end; l++)
            if (strcmp(l->name, name) == 0)
                return true;
    return workload_find(name) != NULL;
}

int workload_add(const struct workload *loads, size_t count)
{
    struct table *t = count ? kzalloc(sizeof(*t)) : NULL;
    int err = 0;

    if (!count)
        return 0;
    if (!t)
        return -ENOMEM;
    t->start = t->end = loads;
    mutex_lock(&tables_lock);
    t->next = tables;
    tables = t; /* so that each name is also compared with those before it in @loads */
    while (!err && t->end < loads + count)
        if (workload_is_taken(t->end->name))
            err = -EEXIST;
        else
            t->end++;
    if (err)
        tables = t->next;
    mutex_unlock(&tables_lock);
    if (err)
        kfree(t);
    return err;
}

int workload_remove(uintptr_t start, uintptr_t end)
{
    struct table **link = &tables, *t;
    int err = 0;

    mutex_lock(&tables_lock);
    while ((t = *link) != NULL) {
        size_t size = (size_t)((uintptr_t)t->end - (uintptr_t)t->start);
        bool is_of_it = leads_into(t->start, size, start, end);

        if (is_of_it && !t->users) {
            *link = t->next;
            kfree(t);
            continue;
        }
        if (is_of_it) {
            t->going = true;
            err = -EBUSY;
        }
        link = &t->next;
    }
    mutex_unlock(&tables_lock);
    return err;
}

/* workload_take - find a workload of loaded code by name. Its table stays until
 * table_give().
 */
static const struct workload *workload_take(const char *name, struct table **from)
{
    const struct workload *found = NULL;

    mutex_lock(&tables_lock);
    for (struct table *t = tables; t && !found; t = t->next)
        for (const struct workload *l = t->start; l < t->end && !found && !t->going; l++)
            if (strcmp(l->name, name) == 0) {
                found = l;
                *from = t;
                t->users++;
            }
    mutex_unlock(&tables_lock);
    return found;
}

static void table_give(struct table *t)
{
    if (!t)
        return;
    mutex_lock(&tables_lock);
    t->users--;
    mutex_unlock(&tables_lock);
}

/* -- the workloads of the image ------------------------------------------------------ */

/* next_after - return the workload after @name in the alphabet; for NULL the first one.
 */
static const struct workload *next_after(const char *name)
{
    const struct workload *best = NULL;

    for (const struct workload *l = workloads_start; l < workloads_end; l++) {
        if (name && strcmp(l->name, name) <= 0)
            continue;
        if (!best || strcmp(l->name, best->name) < 0)
            best = l;
    }
    return best;
}

const struct workload *workload_get(unsigned idx)
{
    const struct workload *load = next_after(NULL);

    while (load && idx-- > 0)
        load = next_after(load->name);
    return load;
}

/* -- running them -------------------------------------------------------------------- */

/* run_one - run a workload, and print its line. The caller has set the fields of @w that
 * all workloads of a run share.
 */
static int run_one(const struct workload *load, struct work *w)
{
    int err;

    w->random = work_hash(w->seed ^ work_hash_text(load->name, strlen(load->name)));
    w->checksum = w->calls = 0;
    w->function = NULL;
    err = work_stop();
    if (!err)
        err = load->run(w);
    if (err)
        return err;
    seq_printf(w->out, "%s: checksum 0x%016lx", load->name, w->checksum);
    if (w->function)
        seq_printf(w->out, " calls %lu of %s", w->calls, w->function);
    seq_puts(w->out, "\n");
    return w->out->err;
}

static int run_all_workloads(struct work *w)
{
    const struct workload *load = NULL;
    uint64_t all = 0;
    int err;

    while ((load = next_after(load ? load->name : NULL)) != NULL) {
        err = run_one(load, w);
        if (err) {
            seq_printf(w->out, "%s: %s\n", load->name, err_text(err));
            return err;
        }
        all = work_hash(all ^ w->checksum);
    }
    seq_printf(w->out, "all: checksum 0x%016lx\n", all);
    return 0;
}

static int take_turn(bool (*stop)(void *arg), void *arg)
{
    while (__atomic_exchange_n(&is_running, true, __ATOMIC_ACQUIRE)) {
        if (stop && stop(arg))
            return -EINTR;
        thread_sleep_ns(TURN_LOOK_NS);
    }
    stop_asked.fn = stop;
    stop_asked.arg = arg;
    return 0;
}

int workload_run(const char *name, int argc, char **argv, struct seq *out,
                 bool (*stop)(void *arg), void *arg)
{
    struct work w = { .seed = DEFAULT_SEED, .argc = argc, .argv = argv, .out = out };
    bool all = strcmp(name, "all") == 0;
    const struct workload *load = all ? NULL : workload_find(name);
    struct table *from = NULL;
    int err;

    if (argc > 0 && parse_u64(argv[0], 0, &w.seed))
        return -EINVAL;
    if (!all && !load)
        load = workload_take(name, &from);
    if (!all && !load)
        return -ENOENT;
    err = take_turn(stop, arg);
    if (!err) {
        err = all ? run_all_workloads(&w) : run_one(load, &w);
        stop_asked.fn = NULL;
        __atomic_store_n(&is_running, false, __ATOMIC_RELEASE);
    }
    table_give(from);
    return err;
}

/* -- threads ------------------------------------------------------------------------- */

static struct mutex starting = MUTEX_INIT(starting); /* held until all tasks are there */
static int start_err; /* [starting] the errno of a task that could not be started, or 0 */

/* task_thread - run a task, but only if all of them are there: tasks may wait for one
 * another.
 */
static int task_thread(void *arg)
{
    struct work_task *t = arg;

    mutex_lock(&starting);
    t->err = start_err;
    mutex_unlock(&starting);
    if (!t->err)
        t->err = t->fn(t);
    return 0;
}

static int start_task(struct work_task *t)
{
    struct clone_args args = { .fn = task_thread,
                               .arg = t,
                               .cpus = UINT64_C(1) << (t->idx % cpu_count()) };
    char name[THREAD_NAME_LEN];

    snprintf(name, sizeof(name), "work/%u", t->idx);
    args.name = name;
    return kernel_clone(&args);
}

int work_spread(struct work *w, int (*fn)(struct work_task *), void *shared)
{
    struct work_task tasks[WORK_TASKS];
    int tids[WORK_TASKS];
    int err;

    mutex_lock(&starting);
    start_err = 0;
    for (unsigned i = 0; i < WORK_TASKS; i++) {
        tasks[i] = (struct work_task){
            .idx = i, .seed = work_random(w), .shared = shared, .fn = fn
        };
        tids[i] = start_task(&tasks[i]);
        if (tids[i] < 0)
            start_err = tids[i];
    }
    err = start_err;
    mutex_unlock(&starting);
    for (unsigned i = 0; i < WORK_TASKS; i++) {
        if (tids[i] > 0)
            thread_join(tids[i], NULL);
        err = err ? err : tasks[i].err;
        w->calls += tasks[i].calls;
        work_mix(w, tasks[i].result);
    }
    return err;
}
