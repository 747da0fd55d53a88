/* work_threads.c - workloads about threads: they start, end, switch, sleep and wait. */
#include "kernel/base/err.h"
#include "kernel/sync/mutex.h"
#include "kernel/sync/wait.h"
#include "kernel/thread/thread.h"
#include "kernel/work/work.h"

/* -- fork: one thread starts and ends ------------------------------------------------ */

static int exit_with_arg(void *arg)
{
    do_exit((int)(uintptr_t)arg);
}

static int fork_run(struct work *w)
{
    uintptr_t code = work_random(w) & 0xffff;
    struct clone_args args = { .fn = exit_with_arg,
                               .arg = (void *)code,
                               .name = "child" };
    int got = -1;
    int tid;

    w->function = "kernel_clone";
    w->calls++;
    tid = kernel_clone(&args);
    if (tid < 0)
        return tid;
    thread_join(tid, &got);
    work_mix(w, (uint64_t)got);
    return (uintptr_t)got == code ? 0 : -EIO;
}
WORKLOAD(fork, fork_run, "create one thread, which exits, and join it");

/* -- exit: many threads with stacks of different sizes end --------------------------- */

#define EXIT_THREADS 24

static int start_exiting(unsigned idx, uint64_t random)
{
    struct clone_args args = { .fn = exit_with_arg,
                               .arg = (void *)(uintptr_t)(random & 0x7fffffff),
                               .name = "exiting",
                               .stack_len = THREAD_STACK_LEN * (1 + idx % 3) };

    return kernel_clone(&args);
}

static int exit_run(struct work *w)
{
    int tids[EXIT_THREADS];
    int code, err = 0;

    w->function = "do_exit";
    for (unsigned i = 0; i < EXIT_THREADS; i++)
        tids[i] = start_exiting(i, work_random(w));
    for (unsigned i = 0; i < EXIT_THREADS; i++) {
        if (tids[i] < 0) {
            err = tids[i];
            continue;
        }
        thread_join(tids[i], &code);
        work_mix(w, (uint64_t)code);
        w->calls++;
    }
    return err;
}
WORKLOAD(exit, exit_run, "create threads with stacks of different size, which exit");

/* -- switch: threads on every CPU give it up again and again ------------------------- */

static int switch_task(struct work_task *t)
{
    for (unsigned i = 0; i < 40; i++) {
        t->result = work_hash(t->result ^ work_next(&t->seed));
        thread_yield();
        t->calls++;
    }
    return 0;
}

static int switch_run(struct work *w)
{
    w->function = "thread_yield";
    return work_spread(w, switch_task, NULL);
}
WORKLOAD(switch, switch_run, "threads on all CPUs give up the CPU again and again");

/* -- sleep: threads on every CPU sleep for different times --------------------------- */

static int sleep_task(struct work_task *t)
{
    for (unsigned i = 0; i < 4; i++) {
        uint64_t ns = work_next(&t->seed) % 3000000;

        thread_sleep_ns(ns);
        t->calls++;
        t->result += ns;
    }
    return 0;
}

static int work_sleep_run(struct work *w)
{
    w->function = "thread_sleep_ns";
    return work_spread(w, sleep_task, NULL);
}
WORKLOAD(sleep, work_sleep_run, "threads on all CPUs sleep for up to 3 ms");

/* -- mutex: threads on every CPU change one number ----------------------------------- */

struct contended {
    struct mutex lock;
    uint64_t sum;     /* [lock] */
    uint64_t changes; /* [lock] */
};

/* mutex_task - read the number, give up the CPU now and then, and write the new number.
 * The sum is right only if the mutex excludes the other threads. The order of the
 * additions does not change the sum.
 */
static int mutex_task(struct work_task *t)
{
    struct contended *c = t->shared;

    for (unsigned i = 0; i < 50; i++) {
        uint64_t sum;

        mutex_lock(&c->lock);
        t->calls++;
        sum = READ_ONCE(c->sum);
        if (i % 25 == 0)
            thread_yield();
        WRITE_ONCE(c->sum, sum + work_next(&t->seed));
        c->changes++;
        mutex_unlock(&c->lock);
    }
    return 0;
}

static int mutex_run(struct work *w)
{
    struct contended c = { .sum = 0 };
    int err;

    w->function = "mutex_lock";
    mutex_init(&c.lock);
    err = work_spread(w, mutex_task, &c);
    work_mix(w, c.sum);
    if (err)
        return err;
    return c.changes == w->calls ? 0 : -EIO;
}
WORKLOAD(mutex, mutex_run, "threads on all CPUs add to one number under a mutex");

/* -- wait: threads on every CPU pass on a token -------------------------------------- */

struct token {
    struct wait_queue queue;
    unsigned turn;   /* idx of the task that has the token; only this task writes */
    uint64_t passed; /* changed only by the task that has the token */
};

static int wait_task(struct work_task *t)
{
    struct token *token = t->shared;

    for (unsigned round = 0; round < 5; round++) {
        wait_event(&token->queue,
                   __atomic_load_n(&token->turn, __ATOMIC_ACQUIRE) == t->idx);
        token->passed = work_hash(token->passed ^ work_next(&t->seed));
        __atomic_store_n(&token->turn, (t->idx + 1) % WORK_TASKS, __ATOMIC_RELEASE);
        wake_all(&token->queue);
        t->calls++;
    }
    return 0;
}

static int wait_run(struct work *w)
{
    struct token token = { .turn = 0 };
    int err;

    w->function = "wake_all";
    wait_queue_init(&token.queue);
    err = work_spread(w, wait_task, &token);
    work_mix(w, token.passed);
    return err;
}
WORKLOAD(wait, wait_run, "a token goes round through threads on all CPUs");
