/* spinlock.c - panics when a CPU waits for a lock that will never be free. */
#include "kernel/sync/spinlock.h"

void spin_check(const struct spinlock *lock)
{
    if (READ_ONCE(lock->held.left_by) || cpu_context() == CTX_HELD)
        spin_stuck(lock);
}

void spin_stuck(const struct spinlock *lock)
{
    char text[HELD_TEXT_MAX];

    panic("spinlock: CPU %u waits for ever for CPU %u: %s", cpu_id(), lock->holder - 1,
          held_text(text, &lock->held));
}
