/* smp.c - calls functions on other CPUs, and sends IPIs.
 *
 * Each CPU has a list of calls that wait for it. A caller pushes its call without a lock,
 * and sends the IPI if the list was empty; the callee takes the whole list at once. The
 * calls that a caller pushes lie in its CPU's row of `calls`. Preemption is off while the
 * caller waits, so no other caller uses this row.
 */
#include "kernel/cpu/smp.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/log.h"
#include "kernel/debug/marker.h"
#include "kernel/debug/panic.h"
#include "kernel/time/clock.h"

#define LIMIT_NS UINT64_C(10000000000)   /* without an answer: report */
#define GIVE_UP_NS UINT64_C(60000000000) /* without an answer: panic */
#define NMI_ANSWER_NS UINT64_C(1000000000)

/* Locks:  r written by the caller before the push   d by the callee, at the very end */
struct call {
    struct call *next;     /* [r] in the callee's list */
    void (*fn)(void *arg); /* [r] */
    void *arg;             /* [r] */
    bool is_own;           /* [r] it is the tracer's own work */
    bool done;             /* [d] */
};

/* Locks:  a atomic, by any CPU   c owning CPU only */
struct callee {
    struct call *pending;       /* [a] newest first */
    const struct pt_regs *regs; /* [c] what the running call interrupted */
    bool asked;                 /* [a] an NMI shall note the ip; the NMI clears it */
    uintptr_t ip;               /* [a] what the NMI has interrupted */
    bool irqs_on;               /* [a] */
} ALIGNED(64);

static struct callee callees[MAX_CPUS];
static struct call calls[MAX_CPUS][MAX_CPUS]; /* [caller][callee] */
uint64_t smp_call_limit_ns = LIMIT_NS;
uint64_t smp_unanswered_count;
static bool others_stand; /* written by the CPU that held the machine: smp_unhold() */

static NOINLINE void send_ipi(unsigned cpu, uint32_t command)
{
    lapic_send(percpu_of(cpu)->apic_id, command);
}

/* ---- the callee ------------------------------------------------------------------------ */

/* in_order - reverse the list, so that the oldest call comes first. */
static struct call *in_order(struct call *newest)
{
    struct call *list = NULL;

    while (newest) {
        struct call *next = newest->next;

        newest->next = list;
        list = newest;
        newest = next;
    }
    return list;
}

static void call_irq(struct pt_regs *regs)
{
    struct callee *self = &callees[cpu_id()];
    struct call *call;

    lapic_eoi();
    self->regs = regs;
    call = in_order(__atomic_exchange_n(&self->pending, NULL, __ATOMIC_ACQ_REL));
    while (call) {
        struct call *next = call->next; /* the caller reuses the call once it is done */

        own_work_set_task(call->is_own);
        call->fn(call->arg);
        own_work_set_task(false);
        __atomic_store_n(&call->done, true, __ATOMIC_RELEASE);
        call = next;
    }
    self->regs = NULL;
}
NOKPROBE(call_irq);

const struct pt_regs *smp_call_regs(void)
{
    return callees[cpu_id()].regs;
}

/* The sender has set need_resched; switch_if_due looks at it when this interrupt ends. */
static void resched_irq(struct pt_regs *regs)
{
    lapic_eoi();
    MARK(irq_resched, "vector %u ip 0x%lx", regs->vector, regs->ip);
}

/* ---- a callee that does not answer ----------------------------------------------------- */

static bool where_nmi(struct pt_regs *regs)
{
    struct callee *self = &callees[cpu_id()];

    if (!__atomic_load_n(&self->asked, __ATOMIC_ACQUIRE))
        return false;
    self->ip = regs->ip;
    self->irqs_on = regs->flags & FLAGS_IF;
    __atomic_store_n(&self->asked, false, __ATOMIC_RELEASE);
    return true;
}

/* where_is - send @cpu an NMI that notes what the CPU executes.
 * Return: false: the CPU does not take the NMI.
 */
static bool where_is(unsigned cpu)
{
    struct callee *callee = &callees[cpu];
    struct clock_wait wait = { .last = clock_ns() };

    __atomic_store_n(&callee->asked, true, __ATOMIC_RELEASE);
    smp_send_nmi(cpu);
    while (__atomic_load_n(&callee->asked, __ATOMIC_ACQUIRE)) {
        if (clock_waited(&wait, NMI_ANSWER_NS))
            return false;
        pause();
    }
    return true;
}

/* A place without a symbol is printed as 0 and the distance to it. */
static void report_unanswered(unsigned cpu, uint64_t waited_ns)
{
    const struct callee *callee = &callees[cpu];
    unsigned long long ms = waited_ns / 1000000;
    struct ksym sym;

    if (!where_is(cpu)) {
        log_error("smp: CPU %u has not answered for %llu ms, not even an NMI", cpu, ms);
    } else {
        if (ksyms_at(callee->ip, &sym)) {
            sym.name = "0";
            sym.offset = callee->ip;
        }
        log_error("smp: CPU %u has not answered for %llu ms; it is at %s+0x%lx, "
                  "interrupts %s",
                  cpu, ms, sym.name, sym.offset, callee->irqs_on ? "on" : "off");
    }
    __atomic_add_fetch(&smp_unanswered_count, 1, __ATOMIC_RELAXED);
}

void smp_wait(const bool *flag, unsigned cpu)
{
    struct clock_wait wait = { .last = clock_ns() };
    uint64_t reported_ns = 0;

    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
        pause();
        if (READ_ONCE(others_stand))
            wait.ns = reported_ns = 0;
        if (!clock_waited(&wait, smp_call_limit_ns))
            continue;
        reported_ns += wait.ns;
        wait.ns = 0;
        report_unanswered(cpu, reported_ns);
        if (reported_ns >= GIVE_UP_NS && !__atomic_load_n(flag, __ATOMIC_ACQUIRE))
            panic("CPU %u does not answer", cpu);
    }
}

/* ---- a CPU that holds the machine ------------------------------------------------------ */

void smp_hold(void)
{
    WRITE_ONCE(others_stand, false);
    WRITE_ONCE(this_cpu()->held, 1);
}

void smp_unhold(bool all_go)
{
    WRITE_ONCE(this_cpu()->held, 0);
    WRITE_ONCE(others_stand, !all_go);
}

void smp_assert_not_held(const char *what)
{
    if (unlikely(cpu_context() == CTX_HELD))
        panic("%s(): a debugger has stopped all other CPUs, and nothing can wait for "
              "them: the context is `held`",
              what);
}

/* ---- the caller ------------------------------------------------------------------------ */

/* Two CPUs that call each other with interrupts off would both wait for ever. */
static void assert_may_call(const char *what)
{
    smp_assert_not_held(what);
    ASSERT(cpu_context() == CTX_THREAD);
    ASSERT(irqs_enabled() || cpu_count() == 1);
}

static void call_here(void (*fn)(void *arg), void *arg)
{
    unsigned long flags = irq_save();

    fn(arg);
    irq_restore(flags);
}

/* push - put @call into the list of CPU @cpu. Return: true when the list was empty. */
static bool push(unsigned cpu, struct call *call)
{
    struct call *head = __atomic_load_n(&callees[cpu].pending, __ATOMIC_RELAXED);

    do {
        call->next = head;
    } while (!__atomic_compare_exchange_n(&callees[cpu].pending, &head, call, false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return !head;
}

/* call_post - let CPU @cpu run @fn. Return: the call; it is `done` when @fn has returned.
 *
 * The caller that finds the list empty sends the IPI, and later callers rely on it. So this
 * caller may not be interrupted before the IPI is sent: stop_machine() could park its CPU
 * there, and the call of stop_machine() itself relies on that IPI.
 */
static struct call *call_post(unsigned cpu, void (*fn)(void *arg), void *arg)
{
    struct call *call = &calls[cpu_id()][cpu];
    unsigned long flags;

    *call = (struct call){ .fn = fn, .arg = arg, .is_own = own_work() };
    flags = irq_save();
    if (push(cpu, call))
        send_ipi(cpu, LAPIC_IPI | VECTOR_CALL);
    irq_restore(flags);
    return call;
}

void smp_call(unsigned cpu, void (*fn)(void *arg), void *arg)
{
    assert_may_call(__func__);
    ASSERT(cpu < cpu_count());
    preempt_disable();
    if (cpu == cpu_id())
        call_here(fn, arg);
    else
        smp_wait(&call_post(cpu, fn, arg)->done, cpu);
    preempt_enable();
}

/* smp_call_each - call @fn on all CPUs.
 * @halted: called for each halted CPU instead; NULL: halted CPUs are called, too
 */
static void smp_call_each(void (*fn)(void *arg), void (*halted)(unsigned cpu, void *arg),
                          void *arg)
{
    struct call *posted[MAX_CPUS] = { NULL };
    unsigned count, self;

    assert_may_call("smp_call_all");
    preempt_disable();
    count = cpu_count();
    self = cpu_id();
    for (unsigned cpu = 0; cpu < count; cpu++) {
        if (cpu == self)
            continue;
        if (halted && READ_ONCE(percpu_of(cpu)->halted))
            halted(cpu, arg);
        else
            posted[cpu] = call_post(cpu, fn, arg);
    }
    call_here(fn, arg);
    for (unsigned cpu = 0; cpu < count; cpu++)
        if (posted[cpu])
            smp_wait(&posted[cpu]->done, cpu);
    preempt_enable();
}

void smp_call_all(void (*fn)(void *arg), void *arg)
{
    smp_call_each(fn, NULL, arg);
}

/* The fence orders the caller's earlier writes before the look at `halted`: see WAKE in
 * entry.asm.
 */
void smp_call_awake(void (*fn)(void *arg), void (*halted)(unsigned cpu, void *arg),
                    void *arg)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    smp_call_each(fn, halted, arg);
}

/* ---- bare interrupts ------------------------------------------------------------------- */

void smp_send_nmi(unsigned cpu)
{
    send_ipi(cpu, LAPIC_NMI);
}

void smp_end_halt(unsigned cpu)
{
    send_ipi(cpu, LAPIC_IPI | VECTOR_STAND);
}

void smp_send_reschedule(unsigned cpu)
{
    send_ipi(cpu, LAPIC_IPI | VECTOR_RESCHED);
}

void smp_stop_others(void)
{
    unsigned self = cpu_id();

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        if (cpu != self)
            smp_send_nmi(cpu);
}

INIT void smp_init(void)
{
    irq_set_handler(VECTOR_CALL, "call", call_irq);
    irq_set_handler(VECTOR_RESCHED, "reschedule", resched_irq);
    trap_set_handler(TRAP_NMI, where_nmi);
}
