/* test_mutex.c - a mutex has one owner at a time, and every waiter gets it. */
#include "kernel/sync/mutex.h"
#include "kernel/sync/wait.h"
#include "probes/core/platform.h"
#include "probes/jump/counter.h"
#include "tests/kernel/ktest.h"

#define THREADS 64u
#define ROUNDS 200u

static struct mutex m = MUTEX_INIT(m);
static unsigned long counter; /* [m] */
static unsigned inside;       /* threads between lock and unlock */
static unsigned crowded;

static int increment(void *arg UNUSED)
{
    for (unsigned n = 0; n < ROUNDS; n++) {
        unsigned long seen;

        mutex_lock(&m);
        if (__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) != 1)
            crowded++;
        seen = READ_ONCE(counter);
        if (n % 16 == 0)
            thread_yield();
        WRITE_ONCE(counter, seen + 1);
        __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        mutex_unlock(&m);
    }
    return 0;
}

KTEST(mutex, increments_of_64_threads_add_up)
{
    int tids[THREADS];
    unsigned started = 0, joined = 0;

    counter = 0;
    crowded = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        tids[i] = ktest_thread(increment, NULL, 0);
        started += tids[i] > 0;
    }
    for (unsigned i = 0; i < THREADS; i++)
        joined += thread_join(tids[i], NULL) == 0;
    ktest_report(started == THREADS && joined == THREADS, "64 threads ran and ended");
    ktest_report(crowded == 0, "never were two threads inside");
    ktest_report(counter == THREADS * ROUNDS, "%lu increments are in the counter",
                 counter);
    ktest_report(!m.owner, "the mutex is free afterwards");
}

/* The order in which threads that wait get the mutex. */
static unsigned order[3], order_count; /* [m] */

static int queue_up(void *arg)
{
    mutex_lock(&m);
    order[order_count++] = (unsigned)(uintptr_t)arg;
    mutex_unlock(&m);
    return 0;
}

static bool wait_until_waiting(unsigned count)
{
    for (unsigned n = 0; n < 1000; n++) {
        const struct list *l;
        unsigned long flags;
        unsigned waiting = 0;

        spin_lock_irqsave(&m.waiters.lock, &flags);
        for (l = m.waiters.waiters.next; l != &m.waiters.waiters; l = l->next)
            waiting++;
        spin_unlock_irqrestore(&m.waiters.lock, flags);
        if (waiting == count)
            return true;
        thread_sleep_ns(1000000);
    }
    return false;
}

KTEST(mutex, waiters_are_served_in_order)
{
    int tids[3];
    bool queued = true;

    order_count = 0;
    mutex_lock(&m);
    for (unsigned i = 0; i < 3; i++) {
        struct clone_args args = { .fn = queue_up, .arg = (void *)(uintptr_t)i };

        tids[i] = kernel_clone(&args);
        queued = queued && wait_until_waiting(i + 1);
    }
    ktest_report(queued, "three threads wait in line");
    ktest_report(!mutex_trylock(&m), "trylock does not get a mutex that is owned");
    mutex_unlock(&m);
    for (unsigned i = 0; i < 3; i++)
        thread_join(tids[i], NULL);
    ktest_report(order_count == 3 && order[0] == 0 && order[1] == 1 && order[2] == 2,
                 "they got it in the order in which they came");
}

KTEST(mutex, owner_is_known)
{
    ktest_report(!mutex_held(&m), "not held before");
    mutex_lock(&m);
    ktest_report(mutex_held(&m) && m.owner == thread_current(), "held by this thread");
    mutex_unlock(&m);
    ktest_report(mutex_trylock(&m), "trylock gets a free mutex");
    mutex_unlock(&m);
    ktest_report(!mutex_held(&m), "not held afterwards");
}

/* ---- their order -----------------------------------------------------------------------*/

/* A kernel that checks contracts (tests/contracts) panics here; no other does. */
KTEST_FATAL(mutex, two_are_taken_in_the_other_order)
{
    struct kprobe p = { .symbol_name = "kzalloc" };

    register_kprobe(&p);
    unregister_kprobe(&p);
    plat_lock(PLAT_TEXT);
    counter_total(); /* it takes PLAT_PROBES */
    plat_unlock(PLAT_TEXT);
    ktest_report(true, "no other thread takes them");
}

/* ---- wait queues ----------------------------------------------------------------------- */

static struct wait_queue wq = WAIT_QUEUE_INIT(wq);
static unsigned tokens, taken;

static bool token_take(void)
{
    unsigned n = __atomic_load_n(&tokens, __ATOMIC_ACQUIRE);

    while (n)
        if (__atomic_compare_exchange_n(&tokens, &n, n - 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return true;
    return false;
}

static int take_tokens(void *arg)
{
    unsigned count = (unsigned)(uintptr_t)arg;

    for (unsigned n = 0; n < count; n++) {
        wait_event(&wq, token_take());
        __atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED);
    }
    return 0;
}

KTEST(mutex, no_wake_up_is_lost)
{
    int tids[8];

    tokens = 0;
    taken = 0;
    for (unsigned i = 0; i < 8; i++)
        tids[i] = ktest_thread(take_tokens, (void *)500, 0);
    for (unsigned n = 0; n < 8 * 500; n++) {
        __atomic_add_fetch(&tokens, 1, __ATOMIC_RELEASE);
        wake_one(&wq);
        if (n % 64 == 0)
            thread_yield();
    }
    for (unsigned i = 0; i < 8; i++)
        thread_join(tids[i], NULL);
    ktest_report(taken == 8 * 500 && tokens == 0,
                 "4000 tokens, each waited for and taken");
}

KTEST(mutex, wait_event_times_out)
{
    uint64_t start = clock_ns();
    int err = wait_event_timeout(&wq, false, UINT64_C(20000000));
    uint64_t took = clock_ns() - start;

    ktest_report(err == -ETIMEDOUT, "waiting for what never comes ends with -ETIMEDOUT");
    ktest_report(took >= 20000000, "and not before its 20 ms");
    ktest_report(wait_event_timeout(&wq, true, 0) == 0,
                 "what is true already is no wait");
    ktest_report(list_empty(&wq.waiters), "no thread is left in the queue");
}
