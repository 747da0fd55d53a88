/* sched.h - private to kernel/thread and kernel/sync: blocking, waking, and the lock that
 * guards every thread's scheduling state.
 */
#pragma once

#include "kernel/sync/spinlock.h"
#include "kernel/thread/thread.h"

/* The scheduler's lock: thread states, the run queue, the sleepers, the list of all
 * threads. Always taken with interrupts off, so its holder is never interrupted.
 * A switch hands it on: the thread that leaves takes it, the one that arrives releases it.
 * It is innermost: no other lock is taken inside.
 */
extern struct spinlock sched_lock;

/* sched_all - every thread that has not been freed. Locks: sched_lock. */
extern struct list sched_all;

/* sched_queue - the threads that are ready to run, in order. Locks: sched_lock. */
extern struct list sched_queue;

/* sched_enter, sched_leave - take and release sched_lock. sched_leave() wakes the CPUs that
 * sched_make_ready() has chosen.
 * Return: the flags that sched_leave() wants back.
 */
static inline unsigned long sched_enter(void)
{
    unsigned long flags;

    spin_lock_irqsave(&sched_lock, &flags);
    return flags;
}

void sched_leave(unsigned long flags);

/* sched_make_ready - put @t into the run queue, and wake an idle CPU for it if there is one.
 * Locks: sched_lock held.
 */
void sched_make_ready(struct thread *t);

/* sched_block - wait until sched_wake() or @deadline_ns, unless *@woken is set already.
 * Spurious wake-ups happen. Context: thread, preemptible. Return: false when timed out.
 */
bool sched_block(const bool *woken, uint64_t deadline_ns);

/* sched_wake - end the wait of @t, if it waits. Context: thread or irq. */
void sched_wake(struct thread *t);

/* sched_exit - leave the CPU for ever. */
_Noreturn void sched_exit(void);

/* sched_set_idle - make @t the idle thread of CPU @cpu. sched_idle_thread - which it is. */
void sched_set_idle(unsigned cpu, struct thread *t);
struct thread *sched_idle_thread(unsigned cpu);

/* sched_idle - what an idle thread does. Context: preemptible. */
_Noreturn void sched_idle(void);

/* sched_adopt_cpu - the executing CPU, a further one on the stack of its idle thread, is
 * that thread from here on, and has its timer. Context: interrupts off, not online yet.
 */
void sched_adopt_cpu(void);

/* sched_arrive - first thing in a new thread: complete the switch that led to it. */
void sched_arrive(struct thread *left);

/* sched_timer_start - tick @hz times a second on CPU 0, and on each later one. */
void sched_timer_start(unsigned hz);

/* thread_create - a thread that has not been made ready. NULL without memory.
 * thread_create_idle - the idle thread of CPU @cpu, set as such.
 */
struct thread *thread_create(const struct clone_args *args);
struct thread *thread_create_idle(unsigned cpu);

/* thread_died - @t, off its stack now, may be freed. Locks: sched_lock held.
 * thread_bury - wake the joiner or the reaper, which free it. Locks: sched_lock not held.
 */
void thread_died(struct thread *t);
void thread_bury(void);

/* quiesce_epoch - number of the latest quiesce(). Written by it, read by the scheduler. */
extern uint64_t quiesce_epoch;
