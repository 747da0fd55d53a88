/* mutex.h - exclusion between threads; a thread that waits sleeps.
 *
 * Unlocking hands the mutex to the thread that has waited longest, so no thread starves and
 * the owner is known at every moment.
 */
#pragma once

#include "kernel/sync/wait.h"

#include <stdbool.h>

struct mutex {
    struct thread *owner; /* NULL: free. Written under waiters.lock */
    struct wait_queue waiters;
    struct held_lock held; /* in the owner's list of mutexes */
};

#define MUTEX_INIT(name)                                                                 \
    {                                                                                    \
        .waiters = WAIT_QUEUE_INIT((name).waiters)                                       \
    }

void mutex_init(struct mutex *m);

/* mutex_lock - take @m; sleep until it is free. A thread that takes a mutex twice panics.
 * If a given-up handler holds @m, the thread waits for ever, and the log says so.
 * Context: thread, preemptible.
 */
void mutex_lock(struct mutex *m);

/* mutex_trylock - take @m if it is free. Return: true when taken. Context: thread. */
bool mutex_trylock(struct mutex *m);

/* mutex_unlock - give @m back. Only the owner may do this. Context: thread. */
void mutex_unlock(struct mutex *m);

/* mutex_alone - switch mutexes off or on.
 * @is_alone: true: from now on only the executing CPU runs, in a context that cannot
 *            wait, and no thread owns a mutex. So locking and unlocking does nothing.
 *            false: mutexes work again
 * Context: any.
 */
void mutex_alone(bool is_alone);

/* mutex_held - does the current thread own @m? For assertions. Context: any. */
bool mutex_held(const struct mutex *m);
