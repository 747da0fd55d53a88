/* gdb_stub.c - connects the stub with the kernel: its handlers of NMIs and traps, its
 * part of the timer tick, and its thread.
 */
#include "probes/gdb/gdb_stub.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/ioapic.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/log.h"
#include "kernel/sync/wait.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "probes/gdb/gdb_break.h"
#include "probes/gdb/gdb_collect.h"
#include "probes/gdb/gdb_line.h"
#include "probes/gdb/gdb_monitor.h"
#include "probes/gdb/gdb_output.h"
#include "probes/gdb/gdb_place.h"
#include "probes/gdb/gdb_session.h"
#include "probes/gdb/gdb_step.h"
#include "probes/gdb/gdb_stop.h"
#include "probes/gdb/gdb_trace.h"
#include "probes/gdb/gdb_tracepoint.h"
#include "probes/gdb/gdb_wire.h"
#include "probes/port/port_held.h"

#define COM2_IRQ 3
#define CHANGE_NS UINT64_C(1000000000) /* a stop waits no longer for a better place */
#define SPINS 2000                     /* between two looks at a CPU that sends */
#define SEND_MOST 1024 /* bytes of text after which an NMI ends its sending */

static bool available; /* COM2 exists, and gdb_init() has succeeded */

/* From Ctrl-C, or from the first packet of a new debugger, to the stop of the kernel:
 *
 *   1. A byte arrives. The interrupt of the line is an NMI, so it also stops a CPU that
 *      has interrupts off. An interrupt may be lost: if two ticks in a row find a byte on
 *      the line, the second tick sends an NMI to its own CPU. The tick itself takes no
 *      byte.
 *   2. So while the kernel runs, the line is read only in NMIs. If a CPU is reading when
 *      it is to stop, it takes the NMI of the stop after its reading. So when a CPU
 *      serves, no other CPU is in the middle of reading a byte.
 *   3. The NMI has read Ctrl-C, or a packet: stop_wanted is set, and this NMI stops the
 *      kernel. If the kernel may not stop now, the next tick sends another NMI.
 *   4. Between 1 and 3 the kernel may stop for another reason: an NMI may hit a
 *      breakpoint on its way to 2, and any CPU may hit one while a change of text delays
 *      3. Then the debugger already has the stop that it wants. The serving CPU takes the
 *      byte itself, or gdb_serve() clears stop_wanted. By 2 no NMI is about to set it at
 *      that time. Otherwise the kernel would stop a second time, unasked, as soon as the
 *      debugger lets it go.
 */
static bool stop_wanted;          /* the debugger has asked for a stop */
static int looker = GDB_ALL_CPUS; /* the CPU that is in look(); this: none */
static struct wait_queue work = WAIT_QUEUE_INIT(work);
static bool served;            /* a debugger has let the kernel run */
static struct thread *exiting; /* the thread in gdb_exit(), or NULL */

/* A CPU that takes no NMI for long is not waited for: it may be in look(), with a packet half
 * sent. A debugger that watches the code of look() stops this CPU there.
 */
static void gdb_serve(unsigned cpu)
{
    int other;

    while ((other = __atomic_load_n(&looker, __ATOMIC_SEQ_CST)) != GDB_ALL_CPUS &&
           other != (int)cpu)
        spin_without_pause(SPINS);
    gdb_wire_listen(false);
    WRITE_ONCE(stop_wanted, false);
    gdb_session(cpu);
    WRITE_ONCE(served, true);
    gdb_wire_listen(true);
}

/* look - do step 2: read the line in an NMI. If nothing has arrived, send text that
 * waits: see gdb_output.c.
 */
static void look(void)
{
    int nobody = GDB_ALL_CPUS;

    if (!__atomic_compare_exchange_n(&looker, &nobody, (int)cpu_id(), false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return;
    if (gdb_is_stopping()) {
        /* an owner waits for this CPU, or serves already */
    } else if (gdb_line_poll()) {
        WRITE_ONCE(stop_wanted, true);
    } else if (gdb_line_attached()) {
        gdb_output_send(SEND_MOST);
    }
    __atomic_store_n(&looker, GDB_ALL_CPUS, __ATOMIC_SEQ_CST);
}

/* still_wanted - asked if the debugger was served for another reason before this stop was
 * reported: then the debugger has the stop that it wants.
 */
static bool still_wanted(void *unused)
{
    (void)unused;
    return false;
}

/* may_stop - may this CPU stop the kernel now? It may not while it collects for a
 * tracepoint (gdb_collect.h), nor, for CHANGE_NS at most, in the middle of a change of text
 * or in a detour: breakpoints and tracepoints that the debugger sets in such a stop, or a
 * step, would be refused. The next tick asks again.
 */
static bool may_stop(const struct pt_regs *regs)
{
    static uint64_t since; /* 0: no stop waits; a race between CPUs costs a tick */
    uint64_t now = clock_ns();

    if (gdb_collect_defers())
        return false;
    if (!since)
        since = now;
    if ((!port_can_arm() || gdb_stop_in_detour(regs)) && now - since < CHANGE_NS)
        return false;
    since = 0;
    return true;
}

static bool take_nmi(struct pt_regs *regs)
{
    if (gdb_stop_nmi(regs))
        return false;
    look();
    if (!READ_ONCE(stop_wanted) || !may_stop(regs) ||
        !__atomic_exchange_n(&stop_wanted, false, __ATOMIC_ACQ_REL))
        return false;
    if (!gdb_stop(regs, GDB_WHY_INTERRUPT, still_wanted, NULL))
        WRITE_ONCE(stop_wanted, true); /* this CPU is just about to leave a stop */
    return false;
}

static bool take_int3(struct pt_regs *regs)
{
    if (READ_ONCE(exiting) == this_cpu()->current)
        return !gdb_line_attached() || gdb_stop(regs, GDB_WHY_EXIT, NULL, NULL);
    return gdb_line_attached() && gdb_stop(regs, GDB_WHY_TRAP, NULL, NULL);
}

static bool has_work(void)
{
    return gdb_break_has_work() || gdb_monitor_has_work();
}

/* byte_is_left - did this tick and the tick before it both find a byte on the line? */
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
        lapic_send(this_cpu()->apic_id, LAPIC_NMI);
    if (has_work())
        wake_all(&work);
}

/* gdb_worker - do the work that cannot be done while the kernel stands still.
 * gdb_place_work() comes last because it has no flag of its own: gdb_break_work() sleeps
 * first, and then clears the flag for both. What a stop during that sleep leaves for
 * gdb_place_work() is done in the same turn.
 */
static int gdb_worker(void *unused UNUSED)
{
    do {
        gdb_monitor_work();
        gdb_break_work();
        gdb_place_work();
    } while (!wait_event_until(&work, has_work(), WAIT_FOREVER));
    return 0;
}

/* The debugger stops the kernel itself, by its first packet, and this CPU only waits for
 * that. With an int3 here, the kernel would stop a second time if the debugger came just
 * before the int3: its packet is an NMI, so it may come at any instruction. Each tick
 * ends a hlt, so the loop sees `served` even if it misses the debugger's interrupt.
 */
INIT void gdb_wait(void)
{
    if (!available) {
        log_warn("gdbwait: there is no COM2");
        return;
    }
    log_info("gdb: waiting for a debugger on COM2");
    while (!READ_ONCE(served))
        hlt();
}

/* The kernel may stop for another reason before the int3. Then the debugger hears of the
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
    if (!gdb_output_init()) {
        log_warn("gdb: no memory for what hits print");
        return;
    }
    if (!gdb_trace_init())
        log_warn("gdb: no tracepoints: no memory for frames, or more than %u CPUs",
                 MAX_CPUS_TRACED);
    gdb_stop_init(gdb_serve);
    trap_set_handler(TRAP_NMI, take_nmi);
    trap_set_handler(TRAP_DB, gdb_step_trap);
    trap_step_lost = gdb_step_lost;
    trap_set_handler(TRAP_BP, take_int3);
    if (kernel_clone(&(struct clone_args){
            .fn = gdb_worker, .name = "gdb", .detached = true }) < 0) {
        log_warn("gdb: no memory for the stub's thread");
        return;
    }
    port_held_refill(); /* a debugger may come before the thread does this */
    available = true;
    ioapic_route_nmi(COM2_IRQ, percpu_of(0)->apic_id);
    gdb_wire_listen(true);
}
