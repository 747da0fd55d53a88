/* thread.h - makes, schedules and joins kernel threads.
 *
 * Threads are preemptive, round-robin, 10 ms a turn. One run queue serves all CPUs; a
 * thread runs on any CPU of its affinity mask. A CPU that finds nothing to run halts in
 * its idle thread, and the reschedule IPI wakes it as soon as a thread is ready.
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

/* How a thread left its CPU; valid while no CPU runs the thread. */
enum thread_switch {
    SWITCH_VOLUNTARY, /* the thread gave the CPU up, such as in schedule() */
    SWITCH_IRQ,       /* at the end of an interrupt or a hit, with preempted_regs */
    SWITCH_PREEMPT,   /* in a preempt_enable() that the thread called */
};

/* What lies at the saved sp of a thread that is off its CPU: switch.asm pushes it, and pops
 * it when the thread goes on.
 */
struct switch_frame {
    uint64_t flags, r15, r14, r13, r12, bx, bp;
    uintptr_t ip; /* in the function that has called switch_to() */
};

/* Locks:  S the scheduler's lock   I immutable   c the thread itself */
struct thread {
    uintptr_t sp;                   /* [S] of a struct switch_frame, while switched out */
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
    void *probe;                    /* belongs to the probe engine, as do its locks */
    struct held_lock *mutexes;      /* [c] the mutexes that it owns, for reports */
    unsigned mutex_count; /* how many it owns; the call that makes it an owner counts */
    bool own_work;        /* [c] all that it does is the tracer's own work */

    /* The rest is the scheduler's own. */
    int (*fn)(void *arg);     /* [I] */
    void *arg;                /* [I] */
    bool detached;            /* [I] the reaper frees it */
    bool joined;              /* [S] its one joiner has come */
    uint64_t born;            /* [I] its number; the list of all threads has this order */
    int exit_code;            /* [c], then read by the joiner */
    unsigned pins;            /* [S] how many calls of thread_for_each() look at it */
    uint64_t turn_start_ns;   /* [S] when it got its CPU, or its present slice */
    uint64_t account_ns;      /* [S] the time up to which run_ns counts */
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

/* thread_init - make the code that executes now the boot thread, tid 1. Needs no memory.
 * @stack_top, @stack_len: the boot stack
 *
 * Context: boot, after percpu_init_boot(). It comes before the first mutex or wait.
 */
void thread_init(void *stack_top, size_t stack_len);

/* sched_start - give CPU 0 its idle thread and its timer, and start the reaper.
 * @hz: ticks per second on every CPU; limited to THREAD_HZ_MIN..THREAD_HZ_MAX
 *
 * From here on threads can be made; they run once interrupts are on.
 * Context: boot. The heap, the clock and the local APIC are ready.
 */
void sched_start(unsigned hz);

/* sched_tick_hook - a socket: called in each tick of CPU 0, in `irq`. Set at boot. */
extern void (*sched_tick_hook)(void);

/* sched_look_hook - a socket: called in each tick of each CPU, in `irq`, with the registers
 * of the code that the tick has interrupted. Set at boot.
 */
extern void (*sched_look_hook)(const struct pt_regs *regs);

/* kernel_clone - create a thread, and let it run. This is the only way to make one.
 * Context: boot; thread, interrupts on.
 * Return:  its tid, > 0; -EINVAL no function, a bad stack length or no online CPU in the
 *          mask; -ENOMEM, with nothing left behind.
 */
int kernel_clone(const struct clone_args *args);

/* do_exit - end the current thread with @code, as if its function had returned @code. */
_Noreturn void do_exit(int code);

/* thread_join - wait until thread @tid has ended, and free the thread. Each thread
 * can be joined once.
 * @code: receives its exit code; may be NULL
 *
 * Context: thread, preemptible.
 * Return:  0; -ENOENT unknown, detached or joined already; -EDEADLK the caller itself, or
 *          it cannot wait: wait_check().
 */
int thread_join(int tid, int *code);

/* thread_yield - let other threads run first. For quiesce() this is a voluntary switch
 * even if no other thread is ready. Context: thread, preemptible.
 */
void thread_yield(void);

/* thread_sleep_ns - sleep for @ns nanoseconds at least, and about a tick more at most.
 * Context: thread, preemptible.
 */
void thread_sleep_ns(uint64_t ns);

/* thread_set_affinity - let the current thread run only on the CPUs of @mask. On return
 * the thread runs on such a CPU.
 * Context: thread, preemptible.
 * Return:  0; -EINVAL no CPU of @mask is online; -EDEADLK the caller cannot wait.
 */
int thread_set_affinity(uint64_t mask);

/* thread_set_own_work - say whether all that the calling thread does from now on is the
 * tracer's own work; see own_work_begin(). Return: was it? Context: thread.
 */
bool thread_set_own_work(bool is_own);

/* thread_current - get the thread that executes. Context: any.
 * thread_tid - get its tid. Context: any.
 */
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
 * thread stays allocated while @fn looks at it, but the thread may run, and end,
 * meanwhile. @fn may sleep.
 * Context: thread or stopped or held. With interrupts off, or in `stopped` or `held`, @fn
 *          does not sleep.
 */
void thread_for_each(void (*fn)(struct thread *t, void *arg), void *arg);

/* thread_state_name - "ready", "running", ... Context: any. */
const char *thread_state_name(enum thread_state state);

/* thread_birth_hook - a socket: called for each new thread, which is in the list of all
 * threads then, but has not run yet; in the thread that makes the new one. It may sleep.
 * thread_burial_hook - a socket: called for each thread that is about to be freed; no CPU is
 * on the stack of this thread any more. At the first call, and at more if a walk pins the
 * thread (@is_listed), the thread is in the list of all threads. At the last call it is not,
 * so no call of thread_for_each() looks at it. It may sleep. Both are set at boot.
 */
extern void (*thread_birth_hook)(struct thread *t);
extern void (*thread_burial_hook)(struct thread *t, bool is_listed);

/* thread_assert_may_sleep - panic if the caller may not sleep: preemption is off, or the
 * code runs outside of a thread. Functions that may sleep call this first. Context: any.
 */
void thread_assert_may_sleep(void);

/* thread_sleep_hook - a socket: called when a thread is about to sleep with interrupts or
 * preemption off. It need not return. Set at boot.
 */
extern void (*thread_sleep_hook)(void);

/* schedule - switch voluntarily: let another thread have the CPU.
 * Context: thread, preemptible.
 */
void schedule(void);

/* schedule_irq - at the end of an interrupt or a hit, tell quiesce() of it, and switch
 * involuntarily if a switch is due. While CR8 keeps interrupts away, it stays due.
 * @regs: the image that the thread goes on with, preemptible and with interrupts on
 *
 * Context: any, interrupts off. It is entry code, and irq_depth is 0.
 */
void schedule_irq(struct pt_regs *regs);

/* schedule_preempt - switch involuntarily; preempt_enable() calls it if a switch is due.
 * Context: thread, preemptible, interrupts on.
 */
void schedule_preempt(void);

/* switch_to - change from the stack of @prev to another thread's: see switch.asm. Its code
 * ends where thread_entry() begins, the code to which a new thread returns from it.
 */
struct thread *switch_to(struct thread *prev, uintptr_t *save_sp, uintptr_t load_sp);
void thread_entry(void);
