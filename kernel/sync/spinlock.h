/* spinlock.h - short exclusion between CPUs. A ticket lock: served in order of arrival.
 *
 * Holding one keeps preemption off. A lock that interrupt handlers take as well is always
 * taken with the irqsave form, or its holder would wait for itself. NMI context takes no
 * locks at all.
 */
#pragma once

#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/debug/panic.h"

#include <stdbool.h>
#include <stdint.h>

struct spinlock {
    uint32_t next;    /* the ticket that the next CPU draws */
    uint32_t serving; /* the ticket whose turn it is */
    uint32_t holder;  /* CPU id + 1; 0: free */
};

#define SPINLOCK_INIT                                                                    \
    {                                                                                    \
        0, 0, 0                                                                          \
    }

/* spin_held - does the executing CPU hold @lock? For assertions. */
static inline bool spin_held(const struct spinlock *lock)
{
    return __atomic_load_n(&lock->holder, __ATOMIC_RELAXED) == cpu_id() + 1;
}

/* spin_lock - wait until @lock is ours; preemption stays off until spin_unlock().
 *
 * Context: thread, irq or trap, not nmi.
 */
static inline void spin_lock(struct spinlock *lock)
{
    uint32_t ticket;

    preempt_disable();
    ASSERT(cpu_context() != CTX_NMI);
    ASSERT(!spin_held(lock));
    ticket = __atomic_fetch_add(&lock->next, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&lock->serving, __ATOMIC_ACQUIRE) != ticket)
        pause();
    __atomic_store_n(&lock->holder, cpu_id() + 1, __ATOMIC_RELAXED);
}

/* spin_trylock - take @lock if nobody has it. Return: true when taken. Context: any. */
static inline bool spin_trylock(struct spinlock *lock)
{
    uint32_t ticket;

    preempt_disable();
    ticket = __atomic_load_n(&lock->serving, __ATOMIC_RELAXED);
    if (!__atomic_compare_exchange_n(&lock->next, &ticket, ticket + 1, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        preempt_enable();
        return false;
    }
    __atomic_store_n(&lock->holder, cpu_id() + 1, __ATOMIC_RELAXED);
    return true;
}

/* spin_release - the bare hand-over, preemption left off. For spin_unlock() and the
 * scheduler, whose lock is released by another thread than took it.
 */
static inline void spin_release(struct spinlock *lock)
{
    ASSERT(spin_held(lock));
    __atomic_store_n(&lock->holder, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->serving, lock->serving + 1, __ATOMIC_RELEASE);
}

static inline void spin_unlock(struct spinlock *lock)
{
    spin_release(lock);
    preempt_enable();
}

/* spin_lock_irqsave - the same with interrupts off.
 * @flags: receives what spin_unlock_irqrestore() wants back
 */
static inline void spin_lock_irqsave(struct spinlock *lock, unsigned long *flags)
{
    *flags = irq_save();
    spin_lock(lock);
}

static inline void spin_unlock_irqrestore(struct spinlock *lock, unsigned long flags)
{
    spin_release(lock);
    irq_restore(flags);
    preempt_enable();
}
