/* wait.c - wait queues.
 *
 * A wake-up takes the entry out of the queue, marks the entry as woken, and then calls
 * sched_wake(). sched_block() looks at the mark under the scheduler's lock. So either
 * sched_block() sees the mark, or sched_wake() sees that the thread waits.
 */
#include "kernel/sync/wait.h"

#include "kernel/thread/sched.h"
#include "kernel/time/clock.h"

void wait_queue_init(struct wait_queue *wq)
{
    *wq = (struct wait_queue)WAIT_QUEUE_INIT(*wq);
}

void wait_entry_init(struct wait_entry *entry)
{
    list_init(&entry->link);
    entry->thread = thread_current();
    entry->woken = false;
}

void wait_prepare(struct wait_queue *wq, struct wait_entry *entry)
{
    unsigned long flags;

    thread_assert_may_sleep();
    spin_lock_irqsave(&wq->lock, &flags);
    if (list_empty(&entry->link)) {
        entry->woken = false;
        list_append(&wq->waiters, &entry->link);
    }
    spin_unlock_irqrestore(&wq->lock, flags);
}

bool wait_block(struct wait_entry *entry, uint64_t deadline_ns)
{
    return sched_block(&entry->woken, deadline_ns);
}

void wait_finish(struct wait_queue *wq, struct wait_entry *entry)
{
    unsigned long flags;

    spin_lock_irqsave(&wq->lock, &flags);
    list_remove(&entry->link);
    spin_unlock_irqrestore(&wq->lock, flags);
}

struct thread *wait_first_locked(const struct wait_queue *wq)
{
    if (list_empty(&wq->waiters))
        return NULL;
    return list_first(&wq->waiters, struct wait_entry, link)->thread;
}

bool wake_one_locked(struct wait_queue *wq)
{
    struct wait_entry *entry;

    if (list_empty(&wq->waiters))
        return false;
    entry = list_first(&wq->waiters, struct wait_entry, link);
    list_remove(&entry->link);
    WRITE_ONCE(entry->woken, true);
    sched_wake(entry->thread);
    return true;
}

bool wake_one(struct wait_queue *wq)
{
    unsigned long flags;
    bool woken;

    spin_lock_irqsave(&wq->lock, &flags);
    woken = wake_one_locked(wq);
    spin_unlock_irqrestore(&wq->lock, flags);
    return woken;
}

void wake_all(struct wait_queue *wq)
{
    unsigned long flags;

    spin_lock_irqsave(&wq->lock, &flags);
    while (wake_one_locked(wq))
        continue;
    spin_unlock_irqrestore(&wq->lock, flags);
}

uint64_t wait_deadline(uint64_t ns)
{
    uint64_t now = clock_ns();

    return ns < WAIT_FOREVER - now ? now + ns : WAIT_FOREVER;
}
