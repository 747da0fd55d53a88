/* quiesce.c - looks at every thread until each has been outside the old code once.
 *
 * A round has two parts. The IPI looks at what runs, where only its own CPU can: what it
 * interrupts is thread code, since interrupts do not nest. A CPU that is halted needs none.
 * The walk, under the scheduler's lock, looks at what does not run. A thread that moves
 * between the two is seen by neither and is left for the next round. A thread that was seen
 * outside stays outside: there is no way in.
 *
 * Each thread's progress is its quiesce_seen: the number of the last quiesce() that
 * may count it as outside. A voluntary switch writes the number itself.
 *
 * A thread that spends nearly all of its time in hits would be seen inside again and again:
 * an interrupt comes in a handler, or as soon as the trap is over, in front of the copy. But
 * the end of a hit is passed once. A thread that comes to the end of a hit, and later in the
 * same quiesce() to the end of a hit once more, has left the first one meanwhile. The code
 * that ends a hit calls the scheduler when it is asked to, and asking is what need_hit_end
 * is for: the IPI sets it for what it has interrupted, and the scheduler for a thread that
 * gets a CPU. The thread itself goes on.
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

/* is_outside_at - a thread was interrupted, preemptible, at @ip. */
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

/* was_end_of_hit - else it was an interrupt, which may come anywhere. */
static bool was_end_of_hit(const struct pt_regs *regs)
{
    return regs->vector == TRAP_BP || regs->vector == TRAP_DB ||
           regs->vector == VECTOR_SWITCH;
}

bool quiesce_waits_for(const struct thread *t)
{
    return READ_ONCE(under_way) && t->quiesce_seen != READ_ONCE(quiesce_epoch);
}

void quiesce_hit_ends(const struct pt_regs *regs)
{
    struct thread *t = thread_current();
    uint64_t epoch = READ_ONCE(quiesce_epoch);

    if (was_end_of_hit(regs)) {
        if (t->quiesce_hit == epoch)
            t->quiesce_seen = epoch;
        t->quiesce_hit = epoch;
    }
    this_cpu()->need_hit_end = quiesce_waits_for(t);
}

/* look_at_halted - its idle thread is in cpu_idle_wait(), and no interrupt on top of it. */
static void look_at_halted(unsigned cpu, void *arg)
{
    (void)arg;
    WRITE_ONCE(sched_idle_thread(cpu)->quiesce_seen, quiesce_epoch);
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

/* A thread that is still to be waited for, as of the walk. */
struct straggler {
    int tid;
    uintptr_t ip; /* 0: it runs */
};

/* walk - Return: true when no thread is left inside; else @left tells of one. */
static bool walk(struct straggler *left)
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

/* look_at_all - one round. Return: true when every thread has been outside. */
static bool look_at_all(struct straggler *left)
{
    smp_call_awake(look_at_running, look_at_halted, NULL);
    return walk(left);
}

void quiesce(void)
{
    uint64_t report_ns = wait_deadline(REPORT_NS);
    struct straggler left;

    mutex_lock(&one);
    __atomic_store_n(&quiesce_epoch, quiesce_epoch + 1, __ATOMIC_SEQ_CST);
    WRITE_ONCE(under_way, true);
    while (!look_at_all(&left)) {
        if (clock_ns() >= report_ns) {
            straggler_report(&left);
            report_ns = wait_deadline(REPORT_NS);
        }
        thread_sleep_ns(POLL_NS);
    }
    WRITE_ONCE(under_way, false);
    mutex_unlock(&one);
}
