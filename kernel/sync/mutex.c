/* mutex.c - mutexes: an owner, and a queue of the threads that wait.
 *
 * The owner changes only under the queue's lock: from NULL to the thread that takes the
 * mutex, and from the owner to the first waiter, or to NULL, when the owner unlocks. So a
 * waiter that finds itself the owner has got the mutex.
 */
#include "kernel/sync/mutex.h"

#include "kernel/debug/log.h"
#include "kernel/debug/marker.h"
#include "kernel/debug/panic.h"
#include "kernel/thread/thread.h"

#define LOOK_NS UINT64_C(10000000000) /* a waiter looks for a given-up owner this often */

/* lock_while_held - do what is left of mutex_lock() when this CPU holds the machine. */
static void lock_while_held(const struct mutex *m)
{
    const struct thread *owner = READ_ONCE(m->owner);
    char text[HELD_TEXT_MAX];

    if (owner)
        panic("mutex_lock(): a debugger has stopped all CPUs, and thread %d has this "
              "mutex: %s",
              owner->tid, held_text(text, &m->held));
}

void mutex_init(struct mutex *m)
{
    m->owner = NULL;
    wait_queue_init(&m->waiters);
}

bool mutex_is_free(const struct mutex *m)
{
    return !READ_ONCE(m->owner);
}

bool mutex_held(const struct mutex *m)
{
    return cpu_context() == CTX_HELD ||
           __atomic_load_n(&m->owner, __ATOMIC_ACQUIRE) == thread_current();
}

bool mutex_any_held(void)
{
    return thread_current()->mutexes;
}

/* set_owner_locked - make @t (NULL: no thread) the owner of @m, and count it there. A
 * debugger that finds a CPU in the middle finds its preemption off.
 */
static void set_owner_locked(struct mutex *m, struct thread *t)
{
    if (m->owner)
        __atomic_fetch_sub(&m->owner->mutex_count, 1, __ATOMIC_RELAXED);
    if (t)
        __atomic_fetch_add(&t->mutex_count, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&m->owner, t, __ATOMIC_RELEASE);
}

/* take_or_enqueue - become the owner if there is none, else put @entry into the queue.
 * @entry: may be NULL
 *
 * Both are one step under the queue's lock. So the owner cannot unlock between the look
 * at the owner and the enqueueing, and miss this waiter.
 * Return: true: the current thread is the owner.
 */
static bool take_or_enqueue(struct mutex *m, struct wait_entry *entry)
{
    unsigned long flags;
    bool taken;

    spin_lock_irqsave(&m->waiters.lock, &flags);
    taken = !m->owner;
    if (taken)
        set_owner_locked(m, thread_current());
    else if (entry)
        list_append(&m->waiters.waiters, &entry->link);
    spin_unlock_irqrestore(&m->waiters.lock, flags);
    return taken;
}

/* taken - note that the current thread has taken @m, in code at @caller. The stack pointer is
 * that of @caller, too: this function's own frame may be where handlers have theirs.
 */
static ALWAYS_INLINE void taken(struct mutex *m, uintptr_t caller)
{
    m->held.taken_at = caller;
    m->held.taken_sp = (uintptr_t)__builtin_frame_address(0) + 16;
    held_push(&thread_current()->mutexes, &m->held);
}

bool mutex_trylock(struct mutex *m)
{
    if (unlikely(cpu_context() == CTX_HELD))
        return mutex_is_free(m);
    if (!take_or_enqueue(m, NULL))
        return false;
    taken(m, (uintptr_t)__builtin_return_address(0));
    return true;
}

/* wait_for - sleep until mutex_unlock() makes the current thread the owner of @m. */
static void wait_for(struct mutex *m, struct wait_entry *entry)
{
    char text[HELD_TEXT_MAX];
    bool told = false;

    MARK(mutex_wait, "mutex %p", (void *)m);
    while (!mutex_held(m)) {
        if (!told && READ_ONCE(m->held.left_by)) {
            log_warn("mutex: thread %d waits for ever for one that was %s", thread_tid(),
                     held_text(text, &m->held));
            told = true;
        }
        wait_block(entry, wait_deadline(LOOK_NS));
    }
}

void mutex_lock(struct mutex *m)
{
    struct wait_entry entry;

    if (unlikely(cpu_context() == CTX_HELD)) {
        lock_while_held(m);
        return;
    }
    thread_assert_may_sleep();
    ASSERT(!mutex_held(m));
    wait_entry_init(&entry);
    if (!take_or_enqueue(m, &entry)) {
        wait_for(m, &entry);
        wait_finish(&m->waiters, &entry);
    }
    taken(m, (uintptr_t)__builtin_return_address(0));
}

void mutex_unlock(struct mutex *m)
{
    unsigned long flags;

    if (unlikely(cpu_context() == CTX_HELD))
        return;
    ASSERT(mutex_held(m));
    held_pop(&thread_current()->mutexes, &m->held);
    m->held.left_by = 0;
    spin_lock_irqsave(&m->waiters.lock, &flags);
    set_owner_locked(m, wait_first_locked(&m->waiters));
    wake_one_locked(&m->waiters);
    spin_unlock_irqrestore(&m->waiters.lock, flags);
}
