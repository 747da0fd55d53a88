/* wait.h - lets threads wait until a condition becomes true.
 *
 * The waiter enqueues itself, looks at its condition, and only then blocks. The thread or
 * interrupt that makes the condition true wakes the waiter afterwards. The waiter's entry
 * remembers a wake-up between the look and the block, so no wake-up is lost.
 */
#pragma once

#include "kernel/base/err.h"
#include "kernel/base/list.h"
#include "kernel/sync/spinlock.h"

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Locks: L its own lock */
struct wait_queue {
    struct spinlock lock;
    struct list waiters; /* [L] struct wait_entry; the first in the list is woken first */
};

/* One wait of one thread, on that thread's stack.
 * Locks: Q the queue's lock   I immutable while enqueued
 */
struct wait_entry {
    struct list link;      /* [Q] in wait_queue.waiters, or empty */
    struct thread *thread; /* [I] */
    bool woken;            /* [Q to write] the wake-up has come */
};

#define WAIT_FOREVER UINT64_MAX

#define WAIT_QUEUE_INIT(name)                                                            \
    {                                                                                    \
        .lock = SPINLOCK_INIT, .waiters = LIST_INIT((name).waiters)                      \
    }

void wait_queue_init(struct wait_queue *wq);

/* wait_entry_init - prepare @entry for a wait of the current thread. */
void wait_entry_init(struct wait_entry *entry);

/* wait_prepare - put @entry into @wq, so that a wake-up of @wq reaches it. To be called
 * before each look at the condition; does nothing if @entry is in @wq already.
 * Context: thread, preemptible.
 */
void wait_prepare(struct wait_queue *wq, struct wait_entry *entry);

/* wait_block - sleep until @entry is woken or clock_ns() reaches @deadline_ns
 * (WAIT_FOREVER: no limit). Returns at once if @entry was woken after wait_prepare().
 * Context: thread, preemptible.  Return: false when the deadline has passed.
 */
bool wait_block(struct wait_entry *entry, uint64_t deadline_ns);

/* wait_finish - take @entry out of @wq; after that @entry may go out of scope. */
void wait_finish(struct wait_queue *wq, struct wait_entry *entry);

/* wake_one, wake_all - wake the first thread, or every thread, that waits on @wq.
 * Context: thread or irq, interrupts on or off.  Locks: takes wq->lock, then sched_lock.
 * Return:  wake_one: false when no thread waited.
 */
bool wake_one(struct wait_queue *wq);
void wake_all(struct wait_queue *wq);

/* wake_one_locked - do as wake_one(), for a caller that holds wq->lock with interrupts
 * off. The woken thread needs the lock in wait_finish(), so its entry is valid as long as
 * the caller holds the lock.
 * wait_first_locked - get the thread that wake_one_locked() would wake, or NULL.
 */
bool wake_one_locked(struct wait_queue *wq);
struct thread *wait_first_locked(const struct wait_queue *wq);

/* wait_deadline - compute clock_ns() in @ns nanoseconds; WAIT_FOREVER on overflow. */
uint64_t wait_deadline(uint64_t ns);

/* wait_event - block until @cond is true. The waiter evaluates @cond without locks, once
 * or several times: so @cond may only read what can be read without locks.
 * Context: thread, preemptible.
 */
#define wait_event(wq, cond) ((void)wait_event_until(wq, cond, WAIT_FOREVER))

/* wait_event_timeout - do as wait_event(), but for @ns nanoseconds at most. Value: 0, or
 * -ETIMEDOUT if @cond was still false after that time.
 */
#define wait_event_timeout(wq, cond, ns) wait_event_until(wq, cond, wait_deadline(ns))

#define wait_event_until(wq, cond, deadline_ns)                                          \
    ({                                                                                   \
        struct wait_entry entry_;                                                        \
        uint64_t deadline_ = (deadline_ns);                                              \
        int result_ = 0;                                                                 \
                                                                                         \
        wait_entry_init(&entry_);                                                        \
        for (;;) {                                                                       \
            wait_prepare(wq, &entry_);                                                   \
            if (cond)                                                                    \
                break;                                                                   \
            if (wait_block(&entry_, deadline_))                                          \
                continue;                                                                \
            if (!(cond))                                                                 \
                result_ = -ETIMEDOUT;                                                    \
            break;                                                                       \
        }                                                                                \
        wait_finish(wq, &entry_);                                                        \
        result_;                                                                         \
    })
