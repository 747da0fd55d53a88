/* spinlock.h - short exclusion between CPUs.
 *
 * While a CPU holds a spinlock, preemption is off. A lock that interrupt handlers take,
 * too, must always be taken with spin_lock_irqsave(): else a handler could interrupt the
 * holder, and wait for it for ever. Code in NMI context takes no locks at all.
 *
 * The first CPU to arrive while the lock is free gets it. Serving in order of arrival would
 * be fairer, but a guest often has more CPUs than its host. Then the CPU whose turn it is
 * may not be running, and all others would wait until the host runs it again.
 */
#pragma once

#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/debug/panic.h"
#include "kernel/sync/held.h"

#include <stdbool.h>
#include <stdint.h>

struct spinlock {
    uint32_t holder;       /* CPU id + 1; 0: free */
    struct held_lock held; /* in the holder's list of spinlocks */
};

#define SPINLOCK_INIT                                                                    \
    {                                                                                    \
        0                                                                                \
    }

/* spin_stuck - panic: @lock will never be free. Names its holder. Context: any. */
_Noreturn void spin_stuck(const struct spinlock *lock);

/* spin_wait - wait until @lock, which another CPU has, is free. Panics as spin_stuck() if
 * that will never be: a given-up handler has taken it, or a debugger has stopped that CPU
 * and this one serves it. Context: any, preemption off.
 */
void spin_wait(const struct spinlock *lock);

/* spin_held - does the executing CPU hold @lock? For assertions. */
static inline bool spin_held(const struct spinlock *lock)
{
    return __atomic_load_n(&lock->holder, __ATOMIC_RELAXED) == cpu_id() + 1;
}

/* spin_take - try once to take @lock. Preemption must be off. */
static ALWAYS_INLINE bool spin_take(struct spinlock *lock)
{
    uint32_t expected = 0;

    if (!__atomic_compare_exchange_n(&lock->holder, &expected, cpu_id() + 1, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    held_here(&lock->held);
    held_push(&this_cpu()->locks, &lock->held);
    return true;
}

/* spin_lock - wait until the executing CPU has @lock; preemption is off until
 * spin_unlock(). Panics if the executing CPU has @lock already, or if a given-up handler
 * has it.
 * Context: thread or irq or trap; held. In `held` it panics if a CPU stands with @lock.
 */
static ALWAYS_INLINE void spin_lock(struct spinlock *lock)
{
    preempt_disable();
    ASSERT(cpu_context() != CTX_NMI);
    if (unlikely(spin_held(lock)))
        spin_stuck(lock);
    while (!spin_take(lock))
        spin_wait(lock);
}

/* spin_trylock - take @lock if it is free. Return: true when taken. Context: any. */
static ALWAYS_INLINE bool spin_trylock(struct spinlock *lock)
{
    preempt_disable();
    if (spin_take(lock))
        return true;
    preempt_enable();
    return false;
}

/* spin_release - give @lock back, and leave preemption off. For spin_unlock(), and for
 * the scheduler: one thread takes its lock, and another thread gives it back.
 */
static ALWAYS_INLINE void spin_release(struct spinlock *lock)
{
    ASSERT(spin_held(lock));
    held_pop(&this_cpu()->locks, &lock->held);
    __atomic_store_n(&lock->holder, 0, __ATOMIC_RELEASE);
}

static inline void spin_unlock(struct spinlock *lock)
{
    spin_release(lock);
    preempt_enable();
}

/* spin_lock_irqsave - switch interrupts off, then do as spin_lock().
 * @flags: receives the flags for spin_unlock_irqrestore()
 */
void spin_lock_irqsave(struct spinlock *lock, unsigned long *flags);
void spin_unlock_irqrestore(struct spinlock *lock, unsigned long flags);
