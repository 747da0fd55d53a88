/* thread.h - kernel threads: made, scheduled, joined.
 *
 * Threads are preemptive, round-robin, 10 ms a turn. One run queue serves all CPUs; a
 * thread runs on any CPU of its affinity mask. A CPU that finds nothing to run halts in
 * its idle thread, and is woken by the reschedule IPI as soon as there is something.
 */
#pragma once

#include "kernel/base/list.h"
#include "kernel/base/regs.h"
#include "kernel/cpu/percpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THREAD_NAME_LEN 16
#define THREAD_STACK_LEN (16 * KiB)
#define THREAD_SLICE_NS UINT64_C(10000000)
#define THREAD_HZ_DEFAULT 250u
#define THREAD_HZ_MIN 10u
#define THREAD_HZ_MAX 1000u

enum thread_state {
    THREAD_READY,   /* in the run queue */
    THREAD_RUNNING, /* on a CPU */
    THREAD_WAITING, /* blocked or asleep */
    THREAD_EXITING, /* for the last time on its stack */
    THREAD_DEAD,    /* off its stack; waits for its joiner or the reaper */
};

/* How a thread left its CPU, as long as it is off it. */
enum thread_switch {
    SWITCH_VOLUNTARY, /* schedule(): it asked for it */
    SWITCH_IRQ,       /* an interrupt's way out; preempted_regs is what it interrupted */
    SWITCH_PREEMPT,   /* preempt_enable(): at that call, somewhere in its stack */
};

/* Locks:  S the scheduler's lock   I immutable   c the thread itself */
struct thread {
    uintptr_t sp;                   /* [S] saved stack pointer, while switched out */
    int tid;                        /* [I] 1 is the boot thread; idle threads have 0 */
    char name[THREAD_NAME_LEN];     /* [I] NUL-terminated */
    enum thread_state state;        /* [S] */
    enum thread_switch left_by;     /* [S] */
    unsigned cpu;                   /* [S] where it runs, or ran last */
    uint64_t cpus;                  /* [S] affinity: bit n allows CPU n */
    void *stack_top;                /* [I] */
    size_t stack_len;               /* [I] bytes below stack_top */
    struct pt_regs *preempted_regs; /* [S] while switched out by SWITCH_IRQ; else NULL */
    uint64_t voluntary;             /* [S] switches, by cause */
    uint64_t involuntary;           /* [S] */
    uint64_t run_ns;                /* [S] on a CPU, up to the last switch */
    void *probe;                    /* the probe engine's, which says how it is guarded */
    struct held_lock *mutexes;      /* [c] that it owns */

    /* The rest is the scheduler's own. */
    int (*fn)(void *arg);     /* [I] */
    void *arg;                /* [I] */
    bool detached;            /* [I] the reaper frees it */
    bool joined;              /* [S] its one joiner has come */
    uint64_t born;            /* [I] counts up; the order of the list of all threads */
    int exit_code;            /* [c], then read by the joiner */
    unsigned pins;            /* [S] thread_for_each() is looking at it */
    uint64_t turn_start_ns;   /* [S] when it got its CPU, or its present slice */
    uint64_t account_ns;      /* [S] up to when run_ns counts */
    uint64_t quiesce_seen;    /* [S or c with IF=0] last quiesce() that saw it outside */
    uint64_t quiesce_hit;     /* [c with IF=0] last quiesce() in which it ended a hit */
    uint64_t deadline_ns;     /* [S] while in the list of sleepers */
    bool timed_out;           /* [S] the deadline has woken it */
    struct list all_link;     /* [S] in the list of all threads */
    struct list queue_link;   /* [S] in the run queue, or in the reaper's list */
    struct list sleeper_link; /* [S] in the list of sleepers, or empty */
};

struct clone_args {
    int (*fn)(void *arg); /* its return value is the exit code */
    void *arg;
    const char *name; /* cut to 15 characters; NULL: "thread" */
    size_t stack_len; /* bytes, a multiple of the page size; 0: THREAD_STACK_LEN */
    uint64_t cpus;    /* affinity mask; 0: any CPU */
    bool detached;    /* it will not be joined */
};

/* jiffies - timer ticks since boot, counted by CPU 0. */
extern uint64_t jiffies;

/* thread_init - make what is executing the boot thread, tid 1. Needs no memory.
 * @stack_top, @stack_len: the boot stack
 *
 * Context: boot, after percpu_init_boot(), before the first mutex or wait.
 */
void thread_init(void *stack_top, size_t stack_len);

/* sched_start - give CPU 0 its idle thread and its timer, and start the reaper.
 * @hz: ticks per second on every CPU; brought into THREAD_HZ_MIN..THREAD_HZ_MAX
 *
 * From here on threads can be made; they run once interrupts are on.
 * Context: boot, after heap, clock and lapic.
 */
void sched_start(unsigned hz);

/* sched_set_tick_hook - @fn runs in each tick of CPU 0. Context: boot; @fn: irq. */
void sched_set_tick_hook(void (*fn)(void));

/* kernel_clone - create a thread. The one way to do it.
 *
 * Context: thread, interrupts on.
 * Return:  its tid, > 0; -EINVAL no function, a bad stack length or no online CPU in the
 *          mask; -ENOMEM, with nothing left behind.
 */
int kernel_clone(const struct clone_args *args);

/* do_exit - end the current thread with @code; same as returning it from its function. */
_Noreturn void do_exit(int code);

/* thread_join - wait until thread @tid has ended, and free what is left of it. Each thread
 * can be joined once.
 * @code: receives its exit code; may be NULL
 *
 * Context: thread, preemptible.
 * Return:  0; -ENOENT unknown, detached or joined already; -EDEADLK the caller itself.
 */
int thread_join(int tid, int *code);

/* thread_yield - let others run first. Counts as a voluntary switch even when there are
 * none. Context: thread, preemptible.
 */
void thread_yield(void);

/* thread_sleep_ns - sleep for @ns nanoseconds at least, and about a tick more at most.
 * Context: thread, preemptible.
 */
void thread_sleep_ns(uint64_t ns);

/* thread_set_affinity - let the current thread run on the CPUs of @mask only; on return it
 * does. Return: 0; -EINVAL no such CPU is online. Context: thread, preemptible.
 */
int thread_set_affinity(uint64_t mask);

/* thread_current - Context: any. thread_tid - its number. */
static inline struct thread *thread_current(void)
{
    return percpu_current();
}

int thread_tid(void);

/* thread_is_idle - is @t the idle thread of a CPU? Context: any. */
static inline bool thread_is_idle(const struct thread *t)
{
    return t->tid == 0;
}

/* thread_for_each - call @fn for every thread that exists now, idle threads included. The
 * thread stays allocated while @fn looks at it, but it may run, and end, meanwhile. @fn
 * may sleep.
 *
 * Context: thread; with interrupts off when @fn does not sleep (stop_machine).
 */
void thread_for_each(void (*fn)(struct thread *t, void *arg), void *arg);

/* thread_state_name - "ready", "running", ... Context: any. */
const char *thread_state_name(enum thread_state state);

/* thread_set_exit_hook - @fn runs in each thread that ends, as its last act that may
 * sleep. Context: boot.
 */
void thread_set_exit_hook(void (*fn)(struct thread *t));

/* thread_set_birth_hook - @fn is told of each new thread, which is in the list of all
 * threads but has not run yet; it runs in the one that makes it, and may sleep.
 * thread_set_burial_hook - @fn is told of each thread that is about to be freed; no CPU is
 * on its stack any more. It may sleep.
 * Context: boot.
 */
void thread_set_birth_hook(void (*fn)(struct thread *t));
void thread_set_burial_hook(void (*fn)(struct thread *t));

/* thread_assert_may_sleep - for functions that may sleep, before they begin. It is a bug to
 * call them with preemption off, or outside of a thread. Context: thread, preemptible.
 */
void thread_assert_may_sleep(void);

/* thread_set_sleep_hook - @fn is called when a thread is about to sleep with interrupts or
 * preemption off, and need not return. Context: boot.
 */
void thread_set_sleep_hook(void (*fn)(void));

/* schedule - the voluntary switch: let another thread have the CPU.
 * Context: thread, preemptible.
 */
void schedule(void);

/* schedule_irq - the involuntary switch, on the way out of an interrupt.
 * @regs: what was interrupted, preemptible and with interrupts on
 *
 * Context: entry code, interrupts off, irq_depth 0.
 */
void schedule_irq(struct pt_regs *regs);

/* schedule_preempt - the involuntary switch of preempt_enable(), when one is due.
 * Context: thread, preemptible, interrupts on.
 */
void schedule_preempt(void);
