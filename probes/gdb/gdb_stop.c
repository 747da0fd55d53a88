/* gdb_stop.c - brings all CPUs to a stop, and lets them go on.
 *
 * A CPU that has a reason to stop becomes the owner, and stops the other CPUs by an NMI.
 * They may be anywhere, even where interrupts are off, and may hold any lock. So nothing
 * in this file, and nothing that serves the debugger, takes a lock or allocates memory.
 *
 *   1. A CPU stands: it publishes its image (cpus[].regs), and from then on changes
 *      nothing.
 *   2. The owner waits until all CPUs stand. From then on it holds the machine (smp_hold()),
 *      and serves the debugger.
 *   3. The debugger lets all CPUs go, or one CPU. The owner marks these CPUs, and waits
 *      until each of them has withdrawn its image. If the owner itself goes, it then
 *      withdraws its own image. It gives up the ownership last of all. So a CPU with an
 *      image does stand, and the next owner relies on that: a CPU that is leaving would
 *      not take the NMI of a stop.
 *   4. If another CPU has a reason of its own meanwhile, it stands and waits until there
 *      is no owner. Then it becomes the owner, if its reason still holds.
 *   5. A CPU that takes its NMI later than STAND_NS may come too late to be marked in 3.
 *      So after the CPU has published its image, it looks whether it shall still stand.
 *      The owner first says that all run (stopping), or that this CPU does (alone), and then
 *      looks for images. So either the CPU sees what the owner says, or the owner sees the
 *      image and marks the CPU. A CPU that has gone may find an NMI behind the stop, and
 *      looks in the same way.
 *
 *   6. An NMI may come between the cause of a stop and 1, and let this CPU stand for
 *      another owner. Meanwhile the debugger may have removed the breakpoint, or taken
 *      leave. So after the CPU has published its image, it asks whether it still has a
 *      reason. An NMI that comes later finds that this CPU stands, and changes nothing.
 *
 *   7. While one CPU runs alone, a CPU that stands listens to the line: the interrupt of
 *      the line goes to one fixed CPU, which may stand in an NMI and then does not take
 *      it. The CPU that listens first says so, and then looks for an owner. An owner waits
 *      until no CPU listens. So one CPU at a time reads the line; and if the debugger has
 *      just asked for a stop, this is that stop.
 *
 *   8. A CPU that stands in the NMI of a stop, and does not listen, halts: a CPU that spins
 *      takes the host's time from the emulator's main loop and from the debugger. An owner
 *      that marks a CPU, or makes it listen, ends its halt by an interrupt. The CPU halts
 *      only after it has looked for that, with interrupts off in between, so the interrupt
 *      cannot come too early.
 *
 *   9. A CPU does not stand in code on top of the program, such as an interrupt, nor in a
 *      detour. Its NMI returns, and the owner sends another one after AGAIN_NS. The
 *      interrupt ends meanwhile, or gives the CPU to another thread; and a CPU at a
 *      breakpoint stands by itself. Such code ends late in two cases. If it waits for a lock
 *      of a CPU that stands, it stands at once. If it keeps interrupts off for TOP_NS, the
 *      owner insists.
 */
#include "probes/gdb/gdb_stop.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/debug_reg.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/msr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/debug/backtrace.h"
#include "kernel/mm/paging.h"
#include "kernel/sync/spinlock.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "probes/core/extend.h"
#include "probes/core/insn_slot.h"
#include "probes/core/platform.h"
#include "probes/gdb/gdb_collect.h"
#include "probes/gdb/gdb_line.h"
#include "probes/gdb/gdb_step.h"
#include "probes/jump/detour.h"
#include "probes/jump/platform_jump.h"
#include "probes/returns/platform_returns.h"

#define NO_CPU GDB_ALL_CPUS
#define SPINS 2000         /* between two looks at what a CPU that stands waits for */
#define TRAMPOLINE_PUSHF 5 /* where it pushes the flags; until there it has no image */
#define STAND_NS UINT64_C(1000000000) /* longest wait for a CPU that takes no NMI */
#define TOP_NS UINT64_C(1000000000)   /* for the end of code on top of the program, */
#define AGAIN_NS UINT64_C(1000000)    /* and until the next look at it */

static struct gdb_cpu cpus[MAX_CPUS];
static int owner = NO_CPU;          /* atomic; NO_CPU: there is no owner */
static int alone = NO_CPU;          /* written by the owner: the only CPU that runs, */
static int listener = NO_CPU;       /* and the CPU that listens meanwhile, */
static bool listening;              /* which reads the line now; */
static bool asked;                  /* the debugger asks for a stop */
static bool stopping;               /* a CPU that takes an NMI shall stand, */
static bool insisting;              /* even in code on top of the program */
static void (*serve)(unsigned cpu); /* set at boot */

INIT void gdb_stop_init(void (*fn)(unsigned cpu))
{
    serve = fn;
}

bool gdb_is_serving(void)
{
    return __atomic_load_n(&owner, __ATOMIC_RELAXED) == (int)cpu_id();
}

bool gdb_is_stopping(void)
{
    return READ_ONCE(stopping);
}

struct gdb_cpu *gdb_cpu(unsigned cpu)
{
    return &cpus[cpu];
}

int gdb_cpu_of(const struct thread *t)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        if (percpu_of(cpu)->current == t && cpus[cpu].regs)
            return (int)cpu;
    return NO_CPU;
}

/* ---- 1 ---- */

static void gdb_stop_stand(struct gdb_cpu *me, struct pt_regs *regs)
{
    gdb_step_irqs(false); /* an interrupt ends the halt of step 8 */
    me->cr0 = read_cr0();
    me->cr2 = read_cr2();
    me->cr3 = read_cr3();
    me->cr4 = read_cr4();
    me->efer = rdmsr(MSR_EFER);
    me->fs_base = rdmsr(MSR_FS_BASE);
    me->gs_base = rdmsr(MSR_GS_BASE);
    me->go = false; /* before the image: an owner that has marked a CPU waits for it */
    __atomic_store_n(&me->regs, regs, __ATOMIC_RELEASE);
}

/* ---- 2 ---- */

static bool stands(unsigned cpu)
{
    return __atomic_load_n(&cpus[cpu].regs, __ATOMIC_ACQUIRE) != NULL;
}

static bool all_stand(void)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        if (!stands(cpu))
            return false;
    return true;
}

/* send_nmi - send the NMI of a stop to @cpu. While one is on its way, a second one is sent
 * only if @insist: the CPU would take it after the stop, as one that has no purpose.
 */
static void send_nmi(unsigned cpu, bool insist)
{
    bool sent = __atomic_load_n(&cpus[cpu].sent, __ATOMIC_SEQ_CST);

    if (stands(cpu) || (sent && !insist))
        return;
    __atomic_store_n(&cpus[cpu].sent, true, __ATOMIC_RELEASE);
    smp_send_nmi(cpu);
}

static void ask_to_stand(bool insist, uint64_t ns)
{
    uint64_t end = clock_ns() + ns;

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        send_nmi(cpu, insist);
    while (!all_stand() && clock_ns() < end)
        pause();
}

/* A CPU that is inside an NMI takes the next NMI when that one ends. */
static void stop_others(void)
{
    uint64_t end = clock_ns() + TOP_NS;

    __atomic_store_n(&stopping, true, __ATOMIC_SEQ_CST);
    while (!all_stand() && clock_ns() < end)
        ask_to_stand(false, AGAIN_NS);
    __atomic_store_n(&insisting, true, __ATOMIC_SEQ_CST);
    ask_to_stand(true, STAND_NS);
    __atomic_store_n(&insisting, false, __ATOMIC_SEQ_CST);
}

/* ---- 3 ---- */

static int first_but(int only)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        if ((int)cpu != only && stands(cpu))
            return (int)cpu;
    return NO_CPU;
}

static void end_halts(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        if (cpu != cpu_id() && (cpus[cpu].go || (int)cpu == listener))
            smp_end_halt(cpu);
}

void gdb_release(int only)
{
    bool all = only == GDB_ALL_CPUS || cpu_count() == 1;

    smp_unhold(all);
    if (all)
        __atomic_store_n(&stopping, false, __ATOMIC_SEQ_CST);
    else
        __atomic_store_n(&alone, only, __ATOMIC_SEQ_CST);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        if ((all || (int)cpu == only) && stands(cpu))
            __atomic_store_n(&cpus[cpu].go, true, __ATOMIC_RELEASE);
    listener = all ? NO_CPU : first_but(only);
    end_halts();
}

/* A marked CPU has gone when it has withdrawn its image. */
static void wait_for_those_that_go(unsigned self)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        while (cpu != self && cpus[cpu].go && stands(cpu))
            pause();
}

static void disown(void)
{
    __atomic_store_n(&owner, NO_CPU, __ATOMIC_SEQ_CST);
}

/* end_listening - do step 7 for the owner. */
static void end_listening(unsigned self)
{
    int cpu = listener;

    listener = NO_CPU;
    if (cpu == NO_CPU || cpu == (int)self)
        return;
    while (__atomic_load_n(&listening, __ATOMIC_SEQ_CST))
        pause();
    if (cpus[cpu].why == GDB_WHY_INTERRUPT)
        cpus[cpu].why = GDB_WHY_NONE;
}

static void own(unsigned self)
{
    alone = NO_CPU;
    end_listening(self);
    asked = false;
    stop_others();
    smp_hold();
    serve(self);
    cpus[self].why = GDB_WHY_NONE;
    wait_for_those_that_go(self);
    if (!cpus[self].go)
        disown();
}

/* ---- 4 ---- */

static bool become_owner(unsigned self)
{
    int nobody = NO_CPU;

    if (!__atomic_compare_exchange_n(&owner, &nobody, (int)self, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        return false;
    if (cpus[self].why)
        return true;
    disown(); /* another owner has just reported what this CPU has heard on the line */
    return false;
}

static void gdb_stop_serialise(void)
{
    uint32_t out[4];

    cpuid(0, 0, out);
}

static void listen(unsigned self)
{
    if (READ_ONCE(listener) != (int)self)
        return;
    __atomic_store_n(&listening, true, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&owner, __ATOMIC_SEQ_CST) == NO_CPU && gdb_line_poll()) {
        asked = true;
        if (!cpus[self].why)
            cpus[self].why = GDB_WHY_INTERRUPT;
    }
    __atomic_store_n(&listening, false, __ATOMIC_SEQ_CST);
}

/* may_report - may this CPU, which waits with a reason of its own, become the owner now?
 * While the debugger lets another CPU run alone it may not, unless the debugger asks for
 * a stop.
 */
static bool may_report(unsigned self)
{
    int runs = READ_ONCE(alone);

    if (!cpus[self].why || READ_ONCE(owner) != NO_CPU)
        return false;
    return runs == NO_CPU || runs == (int)self || READ_ONCE(asked);
}

/* rest - do step 8, or wait for a moment. */
static void rest(unsigned self)
{
    if (cpu_context() == CTX_NMI && !cpus[self].why && READ_ONCE(listener) != (int)self)
        lapic_halt();
    else
        spin_without_pause(SPINS);
}

static void gdb_stop_stay(unsigned self)
{
    while (!__atomic_load_n(&cpus[self].go, __ATOMIC_ACQUIRE)) {
        listen(self);
        if (may_report(self) && become_owner(self))
            own(self);
        else
            rest(self);
    }
}

/* gdb_stop_leave - end the stop of this CPU. The image is withdrawn after all else, and the
 * ownership is given up after the image: see 3. The CPU that held the machine may have
 * changed pages, text, debug registers, and its CR2 by an address that cannot be read.
 */
static void gdb_stop_leave(struct gdb_cpu *me)
{
    paging_flush_local(0, PAGING_FLUSH_ALL);
    debug_regs_load();
    write_cr2(me->cr2);
    gdb_stop_serialise();
    gdb_step_irqs(true);
    ext_resume(NULL, me->regs); /* the debugger may have set ip */
    __atomic_store_n(&me->regs, NULL, __ATOMIC_RELEASE);
    if (gdb_is_serving())
        disown();
}

static bool still_holds(bool (*wanted)(void *arg), void *arg)
{
    return gdb_line_attached() && (!wanted || wanted(arg));
}

/* stay_until_told - stand until this CPU may go and its own reason has been reported. If
 * the CPU is let go before that, it goes only if the reason no longer holds.
 */
static void stay_until_told(unsigned self, bool (*wanted)(void *arg), void *arg)
{
    struct gdb_cpu *me = &cpus[self];

    for (;;) {
        gdb_stop_stay(self);
        if (!me->why)
            return;
        if (!still_holds(wanted, arg))
            me->why = GDB_WHY_NONE;
        else
            __atomic_store_n(&me->go, false, __ATOMIC_RELEASE);
    }
}

/* reason_of - do step 6 for a CPU that wants to stop because of @why. In an NMI no other NMI
 * can have come.
 */
static enum gdb_why reason_of(enum gdb_why why, bool (*wanted)(void *arg), void *arg)
{
    return cpu_context() == CTX_NMI || still_holds(wanted, arg) ? why : GDB_WHY_NONE;
}

/* may_run - may this CPU run, as far as other CPUs are concerned? Either no CPU is to stand,
 * or this CPU runs alone.
 */
static bool may_run(unsigned self)
{
    return !READ_ONCE(stopping) || READ_ONCE(alone) == (int)self;
}

/* stand_on - stand, as long as there is a reason: this CPU's own, or that of step 5. */
static void stand_on(unsigned self, bool (*wanted)(void *arg), void *arg)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (cpus[self].why || !may_run(self))
        stay_until_told(self, wanted, arg);
    gdb_stop_leave(&cpus[self]);
}

bool gdb_stop(struct pt_regs *regs, enum gdb_why why, bool (*wanted)(void *arg),
              void *arg)
{
    unsigned self = cpu_id();
    struct gdb_cpu *me = &cpus[self];

    if (gdb_is_serving() || me->regs)
        return false;
    me->inside_nmi = cpu_context() == CTX_NMI && why != GDB_WHY_INTERRUPT;
    gdb_stop_stand(me, regs);
    me->why = reason_of(why, wanted, arg);
    stand_on(self, wanted, arg);
    return true;
}

bool gdb_stop_at(struct pt_regs *regs, enum gdb_why why, uintptr_t address,
                 const char *watch, bool (*wanted)(void *arg), void *arg)
{
    struct gdb_cpu *me = &cpus[cpu_id()];

    if (gdb_is_serving() || me->regs)
        return false;
    me->address = address;
    me->watch = watch;
    return gdb_stop(regs, why, wanted, arg);
}

/* other_code_is_on_top - does this CPU execute code on top of the program: an interrupt, a
 * hit, or the way into either and out? The debugger would see code that
 * it may not be able to step, or to leave; and a CPU that is at a breakpoint will soon stand
 * by itself, in the program. A CPU that waits for a lock of a CPU that stands would stay
 * there.
 */
static bool other_code_is_on_top(const struct pt_regs *regs)
{
    const struct spinlock *lock = this_cpu()->waits_for;
    unsigned holder = lock ? READ_ONCE(lock->holder) : 0;

    if (holder && stands(holder - 1))
        return false;
    return this_cpu()->irq_depth || hit_is_active() || !(regs->flags & FLAGS_IF) ||
           gdb_stop_in_detour(regs);
}

/* can_stand - can this CPU stand in the NMI that has come, or is a later one better? */
static bool can_stand(const struct gdb_cpu *me, const struct pt_regs *regs)
{
    return !me->regs && !gdb_is_serving() && !gdb_collect_defers() &&
           (READ_ONCE(insisting) || !other_code_is_on_top(regs));
}

bool gdb_stop_nmi(struct pt_regs *regs)
{
    unsigned self = cpu_id();
    struct gdb_cpu *me = &cpus[self];
    bool stand;

    if (may_run(self)) {
        __atomic_store_n(&me->sent, false, __ATOMIC_SEQ_CST);
        if (may_run(self)) /* an owner from now on sends another one */
            return false;
    }
    stand = can_stand(me, regs);
    if (stand) {
        me->inside_nmi = false;
        gdb_stop_stand(me, regs);
    }
    __atomic_store_n(&me->sent, false, __ATOMIC_RELEASE); /* behind the image */
    if (stand)
        stand_on(self, NULL, NULL);
    return true;
}

bool gdb_stop_in_detour(const struct pt_regs *regs)
{
    size_t off;
    const struct site *site = insn_slot_owner(regs->ip, &off);

    return plat_is_detour(regs->ip) ||
           regs->ip - (uintptr_t)kretprobe_trampoline <= TRAMPOLINE_PUSHF ||
           (site && regs->ip < detour_start(site, regs->ip - off));
}

uintptr_t gdb_stop_ip(const struct pt_regs *regs)
{
    return backtrace_original(regs->ip, NULL, regs->sp);
}
