/* mutex.h - exclusion between threads, which sleep while they wait.
 *
 * Unlocking hands the mutex to the thread that has waited longest, so no thread starves and
 * the owner is known at every moment.
 */
#pragma once

#include "kernel/sync/wait.h"

#include <stdbool.h>

struct mutex {
    struct thread *owner; /* NULL: free. Written by the owner or under waiters.lock */
    struct wait_queue waiters;
    struct held_lock held; /* of the owner */
};

#define MUTEX_INIT(name)                                                                 \
    {                                                                                    \
        .waiters = WAIT_QUEUE_INIT((name).waiters)                                       \
    }

void mutex_init(struct mutex *m);

/* mutex_lock - wait until @m is ours. Taking it twice is a bug and panics. The log names a
 * thread that waits for a mutex which a given-up handler has taken: it waits for ever.
 * Context: thread, preemptible.
 */
void mutex_lock(struct mutex *m);

/* mutex_trylock - take @m if it is free. Return: true when taken. Context: thread. */
bool mutex_trylock(struct mutex *m);

/* mutex_unlock - give it up; only its owner may. Context: thread. */
void mutex_unlock(struct mutex *m);

/* mutex_alone - from now on, or no longer, the executing CPU is the only CPU that runs, in a
 * context that cannot wait, and no thread owns a mutex: so no mutex is taken or given back.
 * Context: any.
 */
void mutex_alone(bool is_alone);

/* mutex_held - does the current thread own @m? For assertions. Context: any. */
bool mutex_held(const struct mutex *m);
