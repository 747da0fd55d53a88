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
 * Context: thread, preemptible; held. In `held` no thread runs that could take @m, so
 *          this function and mutex_unlock() do nothing. But a thread that stands may own
 *          @m, and what @m guards may be half changed: then this function panics. The
 *          caller has asked mutex_is_free(), or has seen that no thread owns a mutex.
 */
void mutex_lock(struct mutex *m);

/* mutex_trylock - take @m if it is free. Return: true when taken. Context: thread or
 * held.
 */
bool mutex_trylock(struct mutex *m);

/* mutex_unlock - give @m back. Only the owner may do this. Context: thread or held. */
void mutex_unlock(struct mutex *m);

/* mutex_is_free - does no thread own @m at this moment? Context: any. */
bool mutex_is_free(const struct mutex *m);

/* mutex_held - does the current thread own @m, or does this CPU hold the machine? For
 * assertions. Context: any.
 */
bool mutex_held(const struct mutex *m);

/* mutex_any_held - does the current thread own any mutex? One that a given-up handler has
 * left does not count. Context: thread or held.
 */
bool mutex_any_held(void);
