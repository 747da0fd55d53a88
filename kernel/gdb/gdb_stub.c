/* gdb_stub.c - the interrupts, traps and the thread by which the kernel stops for a debugger.
 */
#include "kernel/gdb/gdb_stub.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/ioapic.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/log.h"
#include "kernel/gdb/gdb_break.h"
#include "kernel/gdb/gdb_collect.h"
#include "kernel/gdb/gdb_line.h"
#include "kernel/gdb/gdb_monitor.h"
#include "kernel/gdb/gdb_output.h"
#include "kernel/gdb/gdb_place.h"
#include "kernel/gdb/gdb_session.h"
#include "kernel/gdb/gdb_step.h"
#include "kernel/gdb/gdb_stop.h"
#include "kernel/gdb/gdb_trace.h"
#include "kernel/gdb/gdb_wire.h"
#include "kernel/sync/wait.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "probes/port/port_held.h"

#define COM2_IRQ 3
#define CHANGE_NS UINT64_C(1000000000) /* a change of text takes at most so long */
#define SEND_MOST 1024                 /* bytes of text that an NMI sends */

static bool available; /* there is a COM2 */

/* From Ctrl-C, or from the first packet of a debugger that comes anew, to a stop:
 *
 *   1. a byte arrives. The line's interrupt is an NMI: it stops what has interrupts off, too.
 *      An interrupt may be lost: a byte that two ticks find on the line makes the second one
 *      send an NMI to its own CPU. The tick itself takes no byte
 *   2. so the line is read in NMIs only, while the kernel runs. A CPU that reads takes the
 *      NMI of a stop behind its reading, so no CPU that serves finds a byte half taken
 *   3. Ctrl-C has been read: a stop is wanted. This NMI stops the CPU; where that may not be
 *      now, the next tick sends another one
 *   4. another reason may stop the kernel between 1 and 3: a breakpoint, which each NMI may
 *      meet on its way to 2, and each CPU while a change of text delays 3. Then the debugger
 *      has the stop that it wants. It takes the byte itself, or gdb_serve() forgets the wish;
 *      by 2 no wish is under way then. Otherwise the kernel would stop once more, unasked, as
 *      soon as the debugger lets it go
 */
static bool stop_wanted; /* by the debugger */
static bool looking;
static struct wait_queue work = WAIT_QUEUE_INIT(work);
static bool waits;             /* gdb_wait() */
static struct thread *exiting; /* gdb_exit() */

void gdb_serve(unsigned cpu)
{
    gdb_wire_listen(false);
    WRITE_ONCE(stop_wanted, false);
    gdb_session(cpu);
    gdb_wire_listen(true);
}

/* look - 2. Text that waits goes out as well: see gdb_output.c. */
static void look(void)
{
    if (gdb_is_stopping() || __atomic_exchange_n(&looking, true, __ATOMIC_ACQUIRE))
        return;
    if (gdb_line_poll())
        WRITE_ONCE(stop_wanted, true);
    else if (gdb_line_attached())
        gdb_output_send(SEND_MOST);
    __atomic_store_n(&looking, false, __ATOMIC_RELEASE);
}

/* still_wanted - the debugger has been served meanwhile, for another reason. */
static bool still_wanted(void *unused)
{
    (void)unused;
    return false;
}

/* may_stop - not in the middle of a change of text, and not within a collection: breakpoints
 * and tracepoints that the debugger sets then would be refused. The tick asks again.
 */
static bool may_stop(void)
{
    static uint64_t since; /* CPU 0, or the CPU that ticks: a race costs a tick */
    uint64_t now = clock_ns();

    if (gdb_collect_defers())
        return false;
    if (!since)
        since = now;
    if (!port_can_hold() && now - since < CHANGE_NS)
        return false;
    since = 0;
    return true;
}

static bool take_nmi(struct pt_regs *regs)
{
    if (gdb_stop_nmi(regs))
        return false;
    look();
    if (!READ_ONCE(stop_wanted) || !may_stop() ||
        !__atomic_exchange_n(&stop_wanted, false, __ATOMIC_ACQ_REL))
        return false;
    if (!gdb_stop(regs, GDB_WHY_INTERRUPT, still_wanted, NULL))
        WRITE_ONCE(stop_wanted, true); /* this CPU is just about to leave a stop */
    return false;
}

static bool take_debug(struct pt_regs *regs)
{
    bool mine = gdb_break_trap(regs);

    return gdb_step_trap(regs) || mine;
}

static bool take_int3(struct pt_regs *regs)
{
    if (READ_ONCE(exiting) == this_cpu()->current)
        return !gdb_line_attached() || gdb_stop(regs, GDB_WHY_EXIT, NULL, NULL);
    if (!gdb_line_attached() && !READ_ONCE(waits))
        return false;
    return gdb_stop(regs, GDB_WHY_TRAP, NULL, NULL);
}

static bool has_work(void)
{
    return gdb_break_has_work() || gdb_monitor_has_work();
}

/* byte_is_left - has the last tick found a byte as well? */
static bool byte_is_left(void)
{
    static bool was_there;
    bool is_there = gdb_wire_has_byte(), is_left = is_there && was_there;

    was_there = is_there;
    return is_left;
}

void gdb_poll(void)
{
    if (!available)
        return;
    if (byte_is_left() || READ_ONCE(stop_wanted) ||
        (gdb_output_is_waiting() && gdb_line_attached()))
        lapic_send_nmi(this_cpu()->apic_id);
    if (has_work())
        wake_all(&work);
}

/* What cannot be done while the kernel stands still. The trace comes last: what it leaves
 * while gdb_break_work() waits is work for this turn, as that says that all is done.
 */
static int worker(void *unused UNUSED)
{
    do {
        gdb_monitor_work();
        gdb_break_work();
        gdb_place_work();
    } while (!wait_event_until(&work, has_work(), WAIT_FOREVER));
    return 0;
}

INIT void gdb_wait(void)
{
    if (!available) {
        log_warn("gdbwait: there is no COM2");
        return;
    }
    log_info("gdb: waiting for a debugger on COM2");
    WRITE_ONCE(waits, true);
    int3();
    WRITE_ONCE(waits, false);
}

/* The debugger may be served for another reason in front of the int3: then it hears of the
 * end when it next lets the kernel run.
 */
void gdb_exit(unsigned status)
{
    if (!gdb_line_attached())
        return;
    gdb_session_ends(status);
    WRITE_ONCE(exiting, this_cpu()->current);
    int3();
}

INIT void gdb_init(void)
{
    if (!gdb_wire_init())
        return;
    if (!gdb_output_init() || !gdb_trace_init()) {
        log_warn("gdb: no memory for what hits print and collect");
        return;
    }
    trap_set_handler(TRAP_NMI, take_nmi);
    trap_set_handler(TRAP_DB, take_debug);
    trap_set_handler(TRAP_BP, take_int3);
    if (kernel_clone(
            &(struct clone_args){ .fn = worker, .name = "gdb", .detached = true }) < 0) {
        log_warn("gdb: no memory for the stub's thread");
        return;
    }
    port_held_refill(); /* the debugger may come before the thread has run */
    available = true;
    ioapic_route_nmi(COM2_IRQ, percpu_of(0)->apic_id);
    gdb_wire_listen(true);
}
