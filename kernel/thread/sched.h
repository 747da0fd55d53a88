/* sched.h - blocks and wakes threads; has the lock that guards every thread's scheduling
 * state. Private to kernel/thread and kernel/sync.
 */
#pragma once

#include "kernel/sync/spinlock.h"
#include "kernel/thread/thread.h"

/* The scheduler's lock: thread states, the run queue, the sleepers, the list of all
 * threads. Always taken with interrupts off, so its holder is never interrupted.
 * A switch hands the lock on: the thread that leaves the CPU takes it, and the thread
 * that arrives releases it. It is the innermost lock: its holder takes no other lock.
 */
extern struct spinlock sched_lock;

/* sched_all - every thread that has not been freed. Locks: sched_lock held. */
extern struct list sched_all;

/* sched_queue - the threads that are ready to run, in order. Locks: sched_lock held. */
extern struct list sched_queue;

/* sched_enter, sched_leave - take and release sched_lock. sched_leave() wakes the CPUs that
 * sched_make_ready() has chosen.
 * Return: the flags for sched_leave().
 */
static ALWAYS_INLINE unsigned long sched_enter(void)
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

/* sched_block - sleep until sched_wake() or @deadline_ns; return at once if *@woken is
 * set. Spurious wake-ups happen.
 * Context: thread, preemptible, else refused.  Return: false when timed out.
 */
bool sched_block(const bool *woken, uint64_t deadline_ns);

/* sched_wake - end the wait of @t, if it waits.
 * Context: thread or irq, interrupts on or off.
 */
void sched_wake(struct thread *t);

/* sched_exit - leave the CPU for ever. */
_Noreturn void sched_exit(void);

/* sched_idle_threads - the idle thread of each CPU; immutable once the CPU is online. */
extern struct thread *sched_idle_threads[MAX_CPUS];

/* sched_idle - halt the CPU until a switch is due; for ever.
 * Context: thread, interrupts on or off.
 */
_Noreturn void sched_idle(void);

/* sched_adopt_cpu - turn the code that a further CPU executes, on the stack of its idle
 * thread, into this thread, and start the timer. Context: boot, interrupts off. The CPU
 * is not online yet.
 */
void sched_adopt_cpu(void);

/* sched_arrive - complete the switch to the current thread; a new thread calls this
 * first.
 * @left: the thread that has left the CPU
 */
void sched_arrive(struct thread *left);

/* sched_timer_start - tick @hz times a second, on CPU 0 and on CPUs that start later. */
void sched_timer_start(unsigned hz);

/* thread_create - make a thread that is not in the run queue yet. NULL without memory.
 * thread_create_idle - make the idle thread of CPU @cpu, with sched_set_idle().
 */
struct thread *thread_create(const struct clone_args *args);
struct thread *thread_create_idle(unsigned cpu);

/* thread_died - make @t dead: no CPU is on its stack, so it may be freed.
 * Locks: sched_lock held.
 * thread_bury - wake the joiners and the reaper, which free dead threads.
 * Locks: sched_lock not held.
 */
void thread_died(struct thread *t);
void thread_bury(void);

/* quiesce_epoch - the number of the latest quiesce(); the scheduler reads it. */
extern uint64_t quiesce_epoch;
