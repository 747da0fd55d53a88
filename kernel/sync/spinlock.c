/* spinlock.c - takes locks with interrupts off; panics when a CPU waits for a lock that
 * will never be free.
 */
#include "kernel/sync/spinlock.h"

/* An interrupt may come in between, and wait for another lock. */
void spin_wait(const struct spinlock *lock)
{
    struct percpu *cpu = this_cpu();
    const struct spinlock *below = cpu->waits_for;

    WRITE_ONCE(cpu->waits_for, lock);
    while (__atomic_load_n(&lock->holder, __ATOMIC_RELAXED)) {
        if (READ_ONCE(lock->held.left_by) || cpu_context() == CTX_HELD)
            spin_stuck(lock);
        pause();
    }
    WRITE_ONCE(cpu->waits_for, below);
}

void spin_stuck(const struct spinlock *lock)
{
    char text[HELD_TEXT_MAX];

    panic("spinlock: CPU %u waits for ever for CPU %u: %s", cpu_id(), lock->holder - 1,
          held_text(text, &lock->held));
}

void spin_lock_irqsave(struct spinlock *lock, unsigned long *flags)
{
    *flags = irq_save();
    spin_lock(lock);
    lock->held.taken_at = (uintptr_t)__builtin_return_address(0);
}

void spin_unlock_irqrestore(struct spinlock *lock, unsigned long flags)
{
    spin_release(lock);
    irq_restore(flags);
    preempt_enable();
}
