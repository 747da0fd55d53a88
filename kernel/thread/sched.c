/* sched.c - decides which thread runs on which CPU: the run queue, the switch, sleeping,
 * ticks, idling.
 *
 * All CPUs share one queue. A CPU that switches takes the first thread in the queue that
 * may run on it; if there is none, it takes its idle thread, which halts. A CPU that
 * makes a thread ready marks an idle CPU that may run the thread, and sends the
 * reschedule IPI to this CPU. Both CPUs hold sched_lock meanwhile. So either the idle CPU
 * is seen idle and is marked, or it looks at the queue after the thread was put in.
 *
 * The IPI is sent after sched_lock was released. The woken CPU needs the lock at once,
 * and would spin as long as the sending takes; under an emulator that is long.
 */
#include "kernel/thread/sched.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/marker.h"
#include "kernel/sync/quiesce.h"
#include "kernel/sync/wait.h"
#include "kernel/time/clock.h"

struct spinlock sched_lock = SPINLOCK_INIT;
struct list sched_all = LIST_INIT(sched_all);
struct list sched_queue = LIST_INIT(sched_queue);
uint64_t jiffies;

static struct list sleepers = LIST_INIT(sleepers); /* [sched_lock] earliest first */
static uint64_t next_deadline_ns = WAIT_FOREVER;   /* [sched_lock to write] of sleepers */
struct thread *sched_idle_threads[MAX_CPUS];       /* immutable once the CPU is online */
static uint64_t marked;   /* [sched_lock] bit N: CPU N is to get its IPI */
static unsigned timer_hz; /* immutable */

static bool may_run_on(const struct thread *t, unsigned cpu)
{
    return t->cpus & BIT(cpu);
}

/* ---- making ready ---------------------------------------------------------------------- */

/* cpu_wake - make @cpu look at the queue. need_resched was not set: a CPU that has it set
 * is not woken again, since its IPI is under way, or it is about to look at the queue
 * itself.
 */
static void cpu_wake(struct percpu *cpu)
{
    WRITE_ONCE(cpu->need_resched, true);
    if (cpu != this_cpu())
        marked |= BIT(cpu->id);
}

/* sched_release - give up sched_lock, and wake the CPUs that were marked.
 * Context: interrupts off.
 */
static void sched_release(void)
{
    uint64_t cpus = marked;

    marked = 0;
    spin_release(&sched_lock);
    for (; cpus; cpus &= cpus - 1)
        smp_send_reschedule(bit_lowest(cpus));
}

void sched_leave(unsigned long flags)
{
    sched_release();
    irq_restore(flags);
    preempt_enable();
}

static bool wakeable_for(const struct thread *t, const struct percpu *cpu)
{
    return cpu->idle && !READ_ONCE(cpu->need_resched) && may_run_on(t, cpu->id);
}

/* idle_cpu_wake - wake one idle CPU for @t. The best is the executing CPU: if it is idle,
 * it is in an interrupt now, and needs no IPI. The second best is the CPU that @t ran on
 * last.
 */
static void idle_cpu_wake(const struct thread *t)
{
    struct percpu *best[] = { this_cpu(), percpu_of(t->cpu) };

    for (size_t i = 0; i < ARRAY_LEN(best); i++) {
        if (!best[i] || !wakeable_for(t, best[i]))
            continue;
        cpu_wake(best[i]);
        return;
    }
    for (unsigned n = 0; n < cpu_count(); n++) {
        struct percpu *cpu = percpu_of(n);

        if (!wakeable_for(t, cpu))
            continue;
        cpu_wake(cpu);
        return;
    }
}

void sched_make_ready(struct thread *t)
{
    ASSERT(spin_held(&sched_lock));
    t->state = THREAD_READY;
    list_append(&sched_queue, &t->queue_link);
    idle_cpu_wake(t);
}

/* make_ready_first - give the next turn to @t, which has slept, and so has not used up
 * its last turn. At the end of the queue @t would wait for a turn of each thread that
 * computes.
 */
static void make_ready_first(struct thread *t)
{
    t->state = THREAD_READY;
    list_insert(&sched_queue, &t->queue_link);
    idle_cpu_wake(t);
}

/* ---- switching ------------------------------------------------------------------------- */

static struct thread *queue_take(unsigned cpu)
{
    struct thread *t;

    list_for_each(t, &sched_queue, queue_link) {
        if (!may_run_on(t, cpu))
            continue;
        list_remove(&t->queue_link);
        return t;
    }
    return NULL;
}

static void count_switch(struct thread *t, enum thread_switch how)
{
    t->left_by = how;
    if (how == SWITCH_VOLUNTARY)
        t->voluntary++;
    else
        t->involuntary++;
}

/* account - count the time until now for @prev, and begin to count for @next. */
static void account(struct thread *prev, struct thread *next)
{
    uint64_t now = clock_ns();

    prev->run_ns += now - prev->account_ns;
    next->account_ns = now;
    next->turn_start_ns = now;
}

/* cpu_give_to - note that the executing CPU is about to switch to @next. */
static void cpu_give_to(struct thread *next)
{
    struct percpu *cpu = this_cpu();

    next->state = THREAD_RUNNING;
    next->cpu = cpu->id;
    next->preempted_regs = NULL;
    cpu->idle = thread_is_idle(next);
    cpu->current = next;
    cpu->tid = next->tid;
    cpu->stack_base = (uintptr_t)next->stack_top - next->stack_len;
    cpu->thread_probe = next->probe;
    /* The tracer is not preempted while it records a hit. */
    cpu->own_work = next->own_work ? OWN_WORK_TASK : 0;
}
NORETPROBE(cpu_give_to);

/* choose - find the next thread for this CPU: @prev itself if @prev may go on and the
 * queue has no thread for the CPU.
 */
static struct thread *choose(struct thread *prev)
{
    unsigned cpu = this_cpu()->id;
    struct thread *next = queue_take(cpu);

    if (next)
        return next;
    if (prev->state == THREAD_RUNNING && may_run_on(prev, cpu))
        return prev;
    return sched_idle_threads[cpu];
}

/* put_back - put @prev into the queue again if it could go on. Idle threads stay outside
 * the queue: choose() takes them when the queue has no thread for the CPU.
 */
static void put_back(struct thread *prev)
{
    if (prev->state != THREAD_RUNNING)
        return;
    if (thread_is_idle(prev))
        prev->state = THREAD_READY;
    else
        sched_make_ready(prev);
}

/* sched_arrive - runs on the new stack: only now is no CPU on the stack of @left any
 * more. Interrupts and preemption are off.
 */
void sched_arrive(struct thread *left)
{
    bool died = left->state == THREAD_EXITING;

    if (died)
        thread_died(left);
    sched_release();
    if (died)
        thread_bury();
}

/* leave_cpu - switch to the next thread. The state of the current thread says whether it
 * can go on. The caller holds sched_lock. The function returns in the same thread, maybe
 * on another CPU, with sched_lock released; then the caller must enable preemption.
 * @how:  the reason of the switch
 * @regs: for SWITCH_IRQ the image that the thread goes on with; else NULL
 */
static void leave_cpu(enum thread_switch how, struct pt_regs *regs)
{
    struct thread *prev = thread_current();
    struct thread *next;

    ASSERT(preempt_count() == 1);
    next = choose(prev);
    WRITE_ONCE(this_cpu()->need_resched, false);
    this_cpu()->need_hit_end = quiesce_waits_for(next);
    if (next == prev) {
        prev->turn_start_ns = clock_ns();
        sched_release();
        return;
    }
    MARK(sched_switch, "from %d to %d", prev->tid, next->tid);
    put_back(prev);
    prev->preempted_regs = regs;
    count_switch(prev, how);
    account(prev, next);
    cpu_give_to(next);
    sched_arrive(switch_to(prev, &prev->sp, next->sp));
}

/* leave_willingly - switch voluntarily. The caller holds sched_lock. */
static void leave_willingly(unsigned long flags)
{
    thread_current()->quiesce_seen = READ_ONCE(quiesce_epoch);
    leave_cpu(SWITCH_VOLUNTARY, NULL);
    preempt_enable_no_resched();
    irq_restore(flags);
}

void (*thread_sleep_hook)(void); /* set at boot */

void thread_assert_may_sleep(void)
{
    smp_assert_not_held(__func__);
    if (unlikely(!irqs_enabled() || preempt_is_off()) && thread_sleep_hook)
        thread_sleep_hook();
    ASSERT(cpu_context() == CTX_THREAD);
    ASSERT(!preempt_is_off());
}

static void assert_may_switch(void)
{
    thread_assert_may_sleep();
    ASSERT(irqs_enabled());
}

NOINLINE void schedule(void) /* one place where all voluntary switches can be probed */
{
    assert_may_switch();
    leave_willingly(sched_enter());
}

void schedule_preempt(void)
{
    unsigned long flags;

    assert_may_switch();
    flags = sched_enter();
    leave_cpu(SWITCH_PREEMPT, NULL);
    preempt_enable_no_resched();
    irq_restore(flags);
}

void schedule_irq(struct pt_regs *regs)
{
    quiesce_hit_ends(regs);
    /* By CR8 a debugger keeps interrupts away, so that a step ends in the same thread. */
    if (!READ_ONCE(this_cpu()->need_resched) || read_cr8())
        return;
    spin_lock(&sched_lock);
    leave_cpu(SWITCH_IRQ, regs);
    preempt_enable_no_resched();
}

void sched_exit(void)
{
    assert_may_switch();
    sched_enter();
    thread_current()->state = THREAD_EXITING;
    leave_cpu(SWITCH_VOLUNTARY, NULL);
    panic("a thread that had exited ran again");
}

/* ---- sleeping -------------------------------------------------------------------------- */

static void next_deadline_set(void)
{
    uint64_t next = WAIT_FOREVER;

    if (!list_empty(&sleepers))
        next = list_first(&sleepers, struct thread, sleeper_link)->deadline_ns;
    WRITE_ONCE(next_deadline_ns, next);
}

static void sleepers_add(struct thread *t, uint64_t deadline_ns)
{
    struct thread *later;

    t->deadline_ns = deadline_ns;
    list_for_each(later, &sleepers, sleeper_link)
        if (later->deadline_ns > deadline_ns)
            break;
    list_append(&later->sleeper_link, &t->sleeper_link);
    next_deadline_set();
}

static void sleepers_remove(struct thread *t)
{
    list_remove(&t->sleeper_link);
    next_deadline_set();
}

bool sched_block(const bool *woken, uint64_t deadline_ns)
{
    struct thread *t = thread_current();
    unsigned long flags;

    assert_may_switch();
    flags = sched_enter();
    t->timed_out = deadline_ns <= clock_ns();
    if (READ_ONCE(*woken) || t->timed_out) {
        sched_leave(flags);
        return READ_ONCE(*woken);
    }
    if (deadline_ns != WAIT_FOREVER)
        sleepers_add(t, deadline_ns);
    t->state = THREAD_WAITING;
    leave_willingly(flags);
    return !t->timed_out;
}

static void wake_locked(struct thread *t)
{
    if (t->state != THREAD_WAITING)
        return;
    if (!list_empty(&t->sleeper_link))
        sleepers_remove(t);
    sched_make_ready(t);
}

void sched_wake(struct thread *t)
{
    unsigned long flags = sched_enter();

    MARK(sched_wake, "tid %d", t->tid);
    wake_locked(t);
    sched_leave(flags);
}

static void sleepers_wake(uint64_t now)
{
    unsigned long flags = sched_enter();
    struct thread *t, *tmp;

    list_for_each_safe(t, tmp, &sleepers, sleeper_link) {
        if (t->deadline_ns > now)
            break;
        t->timed_out = true;
        sleepers_remove(t);
        make_ready_first(t);
    }
    sched_leave(flags);
}

void thread_sleep_ns(uint64_t ns)
{
    const bool never_woken = false;
    uint64_t deadline_ns = wait_deadline(ns);

    while (sched_block(&never_woken, deadline_ns))
        continue;
}

void thread_yield(void)
{
    schedule();
}

/* ---- ticks ----------------------------------------------------------------------------- */

static bool turn_is_over(uint64_t now)
{
    const struct thread *t = thread_current();

    return !thread_is_idle(t) && now - t->turn_start_ns >= THREAD_SLICE_NS;
}

void (*sched_tick_hook)(void); /* set at boot */

void (*sched_look_hook)(const struct pt_regs *regs); /* set at boot */

static void tick_boot_cpu(void)
{
    jiffies++;
    if (sched_tick_hook)
        sched_tick_hook();
}

/* sched_tick - handle the timer interrupt, on every CPU. */
static void sched_tick(struct pt_regs *regs)
{
    uint64_t now = clock_ns();

    lapic_eoi();
    MARK(timer_tick, "now %lu", now);
    if (cpu_id() == 0)
        tick_boot_cpu();
    if (READ_ONCE(next_deadline_ns) <= now)
        sleepers_wake(now);
    if (turn_is_over(now))
        WRITE_ONCE(this_cpu()->need_resched, true);
    if (sched_look_hook)
        sched_look_hook(regs);
}

INIT void sched_timer_start(unsigned hz)
{
    timer_hz = hz < THREAD_HZ_MIN   ? THREAD_HZ_MIN
               : hz > THREAD_HZ_MAX ? THREAD_HZ_MAX
                                    : hz;
    irq_set_handler(VECTOR_TIMER, "timer", sched_tick);
    lapic_timer_init(timer_hz);
}

/* ---- idling ---------------------------------------------------------------------------- */

/* No interrupt comes between the look at need_resched and the halt: an interrupt that
 * arrives after the cli waits until the hlt, and ends the halt.
 */
void sched_idle(void)
{
    for (;;) {
        cli();
        if (!READ_ONCE(this_cpu()->need_resched)) {
            cpu_idle_wait();
            continue;
        }
        sti();
        schedule();
    }
}

void sched_adopt_cpu(void)
{
    struct thread *t = sched_idle_threads[cpu_id()];

    t->account_ns = clock_ns();
    cpu_give_to(t);
    lapic_timer_init(timer_hz);
}
