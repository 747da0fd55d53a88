/* quiesce.c - looks at every thread until each has been outside the old code once.
 *
 * A round has two parts. First, an IPI makes each CPU look at the thread that runs there:
 * only this CPU can see where its thread is. The IPI interrupts thread code, since
 * interrupts do not nest. A halted CPU needs no IPI. Then the walk, under the scheduler's
 * lock, looks at the threads that do not run. If a thread moves between the two parts,
 * both may miss it; the next round looks at it again. A thread that was seen outside
 * stays outside: no way leads into the code any more.
 *
 * The quiesce_seen of a thread is the number of the last quiesce() that has counted the
 * thread as outside. A voluntary switch writes this number, too.
 *
 * A thread that spends nearly all of its time in hits would be seen inside in each round:
 * an interrupt comes in a handler, or as soon as the trap is over, in front of the copy.
 * So the ends of its hits count, too. If need_hit_end is set, the code that ends a hit
 * calls the scheduler, which notes the end; the thread goes on. The IPI sets need_hit_end
 * for the thread that it interrupts, and the scheduler sets it for a thread that gets a
 * CPU. When two ends have counted, the thread has left the old code in between:
 *
 *   1. If the ip with which the thread goes on is outside, the thread is outside, as if an
 *      IPI had come there. One such end is enough. All other ends go on inside.
 *   2. An int3 (TRAP_BP) or a detour (VECTOR_SWITCH) then goes on in front of a copy. This
 *      end counts: the way to a copy has only one. Behind a copy, where post-handlers run,
 *      a thread that notes an end leaves by the image, so 1 is about it.
 *   3. A #DB does not count: a copy may touch what a debug register watches, or be stepped,
 *      any number of times, and goes on behind the trap.
 *   4. From a copy the thread goes to the text. A link leads on to another detour, but a
 *      detour that is taken out of use has no link (probes/jump/link.c). Text that is
 *      about to be overwritten, which counts as inside, has no probe, and so no end of 2.
 *   5. So old code in which a thread was when all ways in were closed has at most one end
 *      of 2 before it. When the thread comes to another, it has been outside.
 */
#include "kernel/sync/quiesce.h"

#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/log.h"
#include "kernel/sync/mutex.h"
#include "kernel/thread/sched.h"
#include "kernel/time/clock.h"

#define POLL_NS UINT64_C(1000000)
#define REPORT_NS UINT64_C(10000000000)

uint64_t quiesce_epoch; /* [one] */

static struct mutex one = MUTEX_INIT(one);
static bool under_way;             /* [one] */
static quiesce_inside_t inside_fn; /* set at boot */

quiesce_inside_t quiesce_set_inside(quiesce_inside_t inside)
{
    quiesce_inside_t before = inside_fn;

    inside_fn = inside;
    return before;
}

/* is_outside_at - is a thread outside that was interrupted at @ip with preemption on? */
static bool is_outside_at(uintptr_t ip)
{
    return inside_fn ? !inside_fn(ip) : ip == cpu_idle_halted;
}

static void look_at_running(void *arg)
{
    const struct pt_regs *regs = smp_call_regs();

    (void)arg;
    if (!regs || (!preempt_is_off() && is_outside_at(regs->ip))) {
        thread_current()->quiesce_seen = quiesce_epoch;
        return;
    }
    this_cpu()->need_hit_end = true;
}

bool quiesce_waits_for(const struct thread *t)
{
    return READ_ONCE(under_way) && t->quiesce_seen != READ_ONCE(quiesce_epoch);
}

void quiesce_hit_ends(const struct pt_regs *regs)
{
    struct thread *t = thread_current();
    uint64_t epoch = READ_ONCE(quiesce_epoch);

    if (is_outside_at(regs->ip)) { /* 1 */
        t->quiesce_seen = epoch;
    } else if (regs->vector == TRAP_BP || regs->vector == VECTOR_SWITCH) { /* 2 */
        if (t->quiesce_hit == epoch)
            t->quiesce_seen = epoch; /* 5 */
        t->quiesce_hit = epoch;
    }
    this_cpu()->need_hit_end = quiesce_waits_for(t);
}

/* look_at_halted - count the idle thread of @cpu as outside: it is in cpu_idle_wait(),
 * and no interrupt handler runs on the CPU.
 */
static void look_at_halted(unsigned cpu, void *arg)
{
    (void)arg;
    WRITE_ONCE(sched_idle_threads[cpu]->quiesce_seen, quiesce_epoch);
}

static bool is_outside_off_cpu(const struct thread *t)
{
    switch (t->left_by) {
    case SWITCH_VOLUNTARY:
        return true;
    case SWITCH_IRQ:
        return is_outside_at(t->preempted_regs->ip);
    case SWITCH_PREEMPT:
        return false;
    }
    return false;
}

static bool has_been_outside(struct thread *t)
{
    if (t->quiesce_seen == quiesce_epoch || t->state == THREAD_DEAD)
        return true;
    if (t->state == THREAD_RUNNING || !is_outside_off_cpu(t))
        return false;
    t->quiesce_seen = quiesce_epoch;
    return true;
}

/* A thread that the walk has found, and that has not been outside yet. */
struct straggler {
    int tid;
    uintptr_t ip; /* where an interrupt has preempted it; 0: no interrupt has */
};

/* walk_threads - look at all threads that do not run.
 * Return: true: every thread has been outside; false: @left is a thread that has not.
 */
static bool walk_threads(struct straggler *left)
{
    unsigned long flags = sched_enter();
    struct thread *t;
    bool done = true;

    list_for_each(t, &sched_all, all_link) {
        if (has_been_outside(t))
            continue;
        done = false;
        left->tid = t->tid;
        left->ip = t->preempted_regs ? t->preempted_regs->ip : 0;
    }
    sched_leave(flags);
    return done;
}

static void straggler_report(const struct straggler *left)
{
    struct ksym sym;

    if (!left->ip || ksyms_at(left->ip, &sym))
        log_warn("quiesce: waiting for thread %d, which runs", left->tid);
    else
        log_warn("quiesce: waiting for thread %d, preempted at %s+0x%lx", left->tid,
                 sym.name, left->ip - sym.start);
}

/* look_at_all_cpus - do one round. Return: as walk_threads(). */
static bool look_at_all_cpus(struct straggler *left)
{
    smp_call_awake(look_at_running, look_at_halted, NULL);
    return walk_threads(left);
}

void quiesce(void)
{
    struct clock_wait wait;
    struct straggler left;

    smp_assert_not_held(__func__);
    mutex_lock(&one);
    __atomic_store_n(&quiesce_epoch, quiesce_epoch + 1, __ATOMIC_SEQ_CST);
    WRITE_ONCE(under_way, true);
    wait = (struct clock_wait){ .last = clock_ns() };
    while (!look_at_all_cpus(&left)) {
        if (clock_waited(&wait, REPORT_NS)) {
            straggler_report(&left);
            wait.ns = 0;
        }
        thread_sleep_ns(POLL_NS);
    }
    WRITE_ONCE(under_way, false);
    mutex_unlock(&one);
}
