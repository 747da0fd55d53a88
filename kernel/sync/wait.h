/* wait.h - threads that wait for something to become true.
 *
 * The waiter enqueues itself, looks at its condition, and only then blocks. The thread or
 * interrupt that makes the condition true wakes it afterwards. A wake-up between the look
 * and the block is remembered in the waiter's entry, so none is lost.
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
    struct list waiters; /* [L] struct wait_entry, first come first woken */
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

/* wait_entry_init - make @entry one of the current thread. */
void wait_entry_init(struct wait_entry *entry);

/* wait_prepare - from now on a wake-up of @wq reaches @entry; call it before each look at
 * the condition. Harmless when enqueued already. Context: thread, preemptible.
 */
void wait_prepare(struct wait_queue *wq, struct wait_entry *entry);

/* wait_block - sleep until @entry is woken or clock_ns() reaches @deadline_ns
 * (WAIT_FOREVER: no limit); returns at once when it was woken since wait_prepare().
 *
 * Context: thread, preemptible.  Return: false when the deadline has passed.
 */
bool wait_block(struct wait_entry *entry, uint64_t deadline_ns);

/* wait_finish - leave @wq; @entry may go out of scope afterwards. */
void wait_finish(struct wait_queue *wq, struct wait_entry *entry);

/* wake_one, wake_all - wake the first thread, or every thread, that waits on @wq.
 *
 * Context: thread or irq.  Locks: takes wq->lock, then the scheduler's.
 * Return:  wake_one: false when no thread waited.
 */
bool wake_one(struct wait_queue *wq);
void wake_all(struct wait_queue *wq);

/* wake_one_locked - the same for those that hold wq->lock, with interrupts off. It keeps
 * the woken thread from leaving wait_finish(), and so from giving up its entry.
 * wait_first_locked - the thread that it would wake, or NULL.
 */
bool wake_one_locked(struct wait_queue *wq);
struct thread *wait_first_locked(const struct wait_queue *wq);

/* wait_deadline - clock_ns() in @ns nanoseconds, without overflow. */
uint64_t wait_deadline(uint64_t ns);

/* wait_event - block until @cond is true. It is evaluated by the waiter, without locks,
 * once or more; what it reads must be readable so.
 * Context: thread, preemptible.
 */
#define wait_event(wq, cond) ((void)wait_event_until(wq, cond, WAIT_FOREVER))

/* wait_event_timeout - the same for @ns nanoseconds at most. Value: 0, or -ETIMEDOUT when
 * @cond was still false then.
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
