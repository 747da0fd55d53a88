/* gdb_session.c - runs a session: it takes packets and sends answers, while all CPUs
 * stand still.
 *
 * It runs on the serving CPU with interrupts off, in the context in which that CPU has
 * stopped; gdb_stop.c says what is forbidden there. The state of a session is kept in the
 * kernel. So a debugger may die, and the next debugger finds the kernel as the first one
 * has left it.
 *
 * Source: GDB manual, "Remote Protocol".
 */
#include "probes/gdb/gdb_session.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/time/clock.h"
#include "probes/gdb/gdb_break.h"
#include "probes/gdb/gdb_define.h"
#include "probes/gdb/gdb_frame.h"
#include "probes/gdb/gdb_line.h"
#include "probes/gdb/gdb_memory.h"
#include "probes/gdb/gdb_monitor.h"
#include "probes/gdb/gdb_output.h"
#include "probes/gdb/gdb_regs.h"
#include "probes/gdb/gdb_step.h"
#include "probes/gdb/gdb_stop.h"
#include "probes/gdb/gdb_threads.h"
#include "probes/gdb/gdb_trace.h"
#include "probes/gdb/gdb_transfer.h"

#include <string.h>

#define ALL_THREADS UINT64_MAX /* "-1" */
#define CHUNK (GDB_PACKET_MAX / 2)

static struct gdb_out out;
static struct thread *selected;  /* Hg: the thread that g, p and so on are about */
static struct thread *continued; /* Hc: what s steps; NULL: the serving CPU's thread */
static unsigned serving;         /* the serving CPU */
static bool resumed;             /* the packet has let a CPU go */
static uint8_t exit_status;      /* of the kernel, for GDB_WHY_EXIT */

static unsigned signal_of(enum gdb_why why)
{
    return why == GDB_WHY_INTERRUPT || why == GDB_WHY_NONE ? 2 : 5;
}

/* put_expedited - put in the registers that gdb would ask for first: rbp, rsp, rip. */
static void put_expedited(struct gdb_out *to, const struct thread *t)
{
    static const unsigned numbers[] = { 6, 7, 16 };

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        gdb_put_number(to, numbers[i]);
        gdb_put_text(to, ":");
        gdb_regs_put_one(to, t, numbers[i]);
        gdb_put_text(to, ";");
    }
}

static void put_reason(struct gdb_out *to, const struct gdb_cpu *cpu)
{
    switch (cpu->why) {
    case GDB_WHY_BREAK:
        gdb_put_text(to, "swbreak:;");
        break;
    case GDB_WHY_HARDWARE:
        gdb_put_text(to, "hwbreak:;");
        break;
    case GDB_WHY_WATCH:
        gdb_put_text(to, cpu->watch);
        gdb_put_text(to, ":");
        gdb_put_number(to, cpu->address);
        gdb_put_text(to, ";");
        break;
    default:
        break;
    }
}

static void put_stop(struct gdb_out *to)
{
    const struct gdb_cpu *cpu = gdb_cpu(serving);
    const struct thread *t = percpu_of(serving)->current;
    uint8_t number = (uint8_t)signal_of(cpu->why);

    if (cpu->why == GDB_WHY_EXIT) {
        gdb_put_text(to, "W");
        gdb_put_hex(to, &exit_status, 1);
        return;
    }
    gdb_put_text(to, "T");
    gdb_put_hex(to, &number, 1);
    gdb_put_text(to, "thread:");
    gdb_thread_put(to, t);
    gdb_put_text(to, ";core:");
    gdb_put_number(to, serving);
    gdb_put_text(to, ";");
    put_reason(to, cpu);
    put_expedited(to, t);
}

/* ---- ?, H, T, D, k ---- */

static void take_why(struct gdb_request *r)
{
    put_stop(r->out);
}

/* take_thread_id - read the number of a thread: 0 means any thread, -1 all threads. */
static bool take_thread_id(struct gdb_request *r, uint64_t *id)
{
    if (gdb_take_word(&r->at, "-1")) {
        *id = ALL_THREADS;
        return true;
    }
    return gdb_take_number(&r->at, id);
}

static void take_thread(struct gdb_request *r)
{
    bool is_for_g = *r->at == 'g';
    struct thread *t = NULL;
    uint64_t id;

    r->at++;
    if (!take_thread_id(r, &id)) {
        gdb_error(r, "no thread number");
        return;
    }
    if (id && id != ALL_THREADS) {
        t = gdb_thread_find((unsigned)id);
        if (!t) {
            gdb_error(r, "no such thread");
            return;
        }
    }
    if (!is_for_g)
        continued = t;
    else if (t || !selected)
        selected = t ? t : percpu_of(serving)->current;
    gdb_ok(r);
}

static void take_alive(struct gdb_request *r)
{
    uint64_t id;

    if (gdb_take_number(&r->at, &id) && gdb_thread_find((unsigned)id))
        gdb_ok(r);
    else
        gdb_error(r, "no such thread");
}

static void go_all(void)
{
    gdb_frame_forget();
    gdb_break_settle();
    gdb_release(GDB_ALL_CPUS);
    resumed = true;
}

static void take_detach(struct gdb_request *r)
{
    gdb_ok(r);
    gdb_line_answer(r->out);
    gdb_out_start(r->out);
    gdb_line_detach();
    gdb_break_remove_all();
    gdb_trace_detach();
    go_all();
}

static void take_kill(struct gdb_request *r)
{
    (void)r;
    gdb_line_detach();
    gdb_break_remove_all();
    gdb_trace_detach();
    go_all();
}

/* ---- registers and memory ---- */

static void take_read_registers(struct gdb_request *r)
{
    gdb_regs_put(r->out, selected);
}

static void take_write_registers(struct gdb_request *r)
{
    gdb_done(r, gdb_regs_set_all(selected, &r->at));
}

static void take_read_register(struct gdb_request *r)
{
    uint64_t number;

    if (!gdb_take_number(&r->at, &number) ||
        !gdb_regs_put_one(r->out, selected, (unsigned)number))
        gdb_error(r, "no such register");
}

static void take_write_register(struct gdb_request *r)
{
    uint64_t number;

    if (!gdb_take_number(&r->at, &number) || !gdb_take_char(&r->at, '='))
        gdb_error(r, "no register number");
    else
        gdb_done(r, gdb_regs_set(selected, (unsigned)number, &r->at));
}

static void take_read_memory(struct gdb_request *r)
{
    static uint8_t bytes[CHUNK];
    uint64_t addr, len;
    size_t n;

    if (!gdb_take_range(r, &addr, &len)) {
        gdb_error(r, "no address or length");
        return;
    }
    len = len < CHUNK ? len : CHUNK;
    n = gdb_frame_is_selected() ? gdb_frame_read(bytes, addr, len)
                                : gdb_memory_read(bytes, addr, len);
    if (!n && len)
        gdb_put_text(r->out, "E0e"); /* EFAULT */
    else
        gdb_put_hex(r->out, bytes, n);
}

/* write_memory - write memory of the kernel. Return: NULL; or why it is refused. */
static const char *write_memory(uintptr_t addr, const void *bytes, size_t len)
{
    if (gdb_frame_is_selected())
        return "a trace frame cannot be changed: tfind none";
    return gdb_memory_write(addr, bytes, len);
}

static void take_write_hex(struct gdb_request *r)
{
    static uint8_t bytes[CHUNK];
    uint64_t addr, len;

    if (!gdb_take_range(r, &addr, &len) || !gdb_take_char(&r->at, ':'))
        gdb_error(r, "no address or length");
    else if (len > CHUNK || gdb_take_hex(&r->at, bytes, len) != len)
        gdb_error(r, "too few digits");
    else
        gdb_done(r, write_memory(addr, bytes, len));
}

static void take_write_binary(struct gdb_request *r)
{
    uint64_t addr, len;

    if (!gdb_take_range(r, &addr, &len) || !gdb_take_char(&r->at, ':'))
        gdb_error(r, "no address or length");
    else if (len != (uint64_t)(r->end - r->at))
        gdb_error(r, "not as many bytes as it says");
    else
        gdb_done(r, write_memory(addr, r->at, len));
}

/* ---- resuming ---- */

/* What a vCont packet asks for: at most one thread steps; other threads continue or stay.
 */
struct resume_plan {
    struct thread *steps, *runs;
    uintptr_t start, end; /* step until the thread is outside [start, end) */
    bool all_run;
};

static bool take_range_step(struct gdb_request *r, struct resume_plan *plan)
{
    uint64_t start, end;

    if (!gdb_take_number(&r->at, &start) || !gdb_take_char(&r->at, ',') ||
        !gdb_take_number(&r->at, &end))
        return false;
    plan->start = start;
    plan->end = end;
    return true;
}

/* take_plan_action - read one action of vCont into @plan. Return: NULL; or why it is refused.
 */
static const char *take_plan_action(struct gdb_request *r, struct resume_plan *plan)
{
    char action = *r->at++;
    uint64_t number, id = ALL_THREADS;
    struct thread *t = NULL;

    if (action == 'C' || action == 'S')
        gdb_take_number(&r->at, &number); /* number of a signal; there are no signals */
    if (action == 'r' && !take_range_step(r, plan))
        return "vCont;r needs a range";
    if (gdb_take_char(&r->at, ':') && !take_thread_id(r, &id))
        return "no thread number";
    if (id != ALL_THREADS) {
        t = id ? gdb_thread_find((unsigned)id) : selected;
        if (!t)
            return "no such thread";
    }
    switch (action) {
    case 'c':
    case 'C':
        plan->all_run |= !t;
        plan->runs = t ? t : plan->runs;
        return NULL;
    case 's':
    case 'S':
    case 'r':
        plan->steps = t ? t : selected;
        return NULL;
    default:
        return "vCont: c, C, s, S or r";
    }
}

static const char *carry_out_plan(const struct resume_plan *plan, struct gdb_request *r)
{
    struct thread *t = plan->steps ? plan->steps : plan->runs;
    int cpu = GDB_ALL_CPUS;
    const char *why = NULL;
    bool done = false;

    if (!plan->all_run) {
        cpu = t ? gdb_cpu_of(t) : GDB_ALL_CPUS;
        if (cpu < 0)
            return "the thread is not on a CPU: it cannot run alone";
    }
    if (plan->steps)
        why = gdb_step_start(plan->steps, plan->start, plan->end, !plan->all_run, &done);
    if (why)
        return why;
    if (done) {
        gdb_cpu(serving)->why = GDB_WHY_STEP;
        put_stop(r->out);
        return NULL;
    }
    if (cpu == GDB_ALL_CPUS)
        gdb_break_settle();
    gdb_frame_forget();
    gdb_release(cpu);
    resumed = true;
    return NULL;
}

static void take_vcont(struct gdb_request *r)
{
    struct resume_plan plan = { 0 };
    const char *why = NULL;

    while (!why && gdb_take_char(&r->at, ';'))
        why = take_plan_action(r, &plan);
    if (!why)
        why = carry_out_plan(&plan, r);
    if (why)
        gdb_error(r, why);
}

/* take_old_resume - answer c or s. An address may follow, at which the serving CPU goes
 * on.
 */
static void take_old_resume(struct gdb_request *r, bool steps)
{
    struct resume_plan plan = { .all_run = true };
    struct gdb_cpu *cpu = gdb_cpu(serving);
    const char *why;
    uint64_t ip;

    if (gdb_take_number(&r->at, &ip))
        cpu->regs->ip = ip;
    if (steps)
        plan.steps = continued ? continued : percpu_of(serving)->current;
    why = carry_out_plan(&plan, r);
    if (why)
        gdb_error(r, why);
}

static void take_continue(struct gdb_request *r)
{
    take_old_resume(r, false);
}

static void take_step(struct gdb_request *r)
{
    take_old_resume(r, true);
}

/* ---- q ---- */

static void query_supported(struct gdb_request *r)
{
    gdb_line_greet();
    gdb_define_greet();
    gdb_put_text(r->out, "PacketSize=");
    gdb_put_number(r->out, GDB_PACKET_MAX);
    gdb_put_text(r->out, ";QStartNoAckMode+;vContSupported+;swbreak+;hwbreak+;"
                         "ConditionalBreakpoints+;BreakpointCommands+;"
                         "ConditionalTracepoints+;FastTracepoints+;InstallInTrace+;"
                         "EnableDisableTracepoints+;TracepointSource+;QTBuffer:size+;"
                         "tracenz+;DisconnectedTracing+;qXfer:traceframe-info:read+;"
                         "qXfer:features:read+;qXfer:threads:read+");
}

static void query_current(struct gdb_request *r)
{
    gdb_put_text(r->out, "QC");
    gdb_thread_put(r->out, selected);
}

static void query_attached(struct gdb_request *r)
{
    gdb_put_text(r->out, "1");
}

static void query_no_acks(struct gdb_request *r)
{
    gdb_ok(r);
    gdb_line_answer(r->out);
    gdb_line_no_acks();
    gdb_out_start(r->out);
    resumed = false;
}

/* ---- dispatch ---- */

static void list_actions(struct gdb_request *r)
{
    gdb_put_text(r->out, "vCont;c;C;s;S;r");
}

static void ok_kill(struct gdb_request *r)
{
    gdb_ok(r);
    gdb_line_answer(r->out);
    gdb_out_start(r->out);
    take_kill(r);
}

/* dispatch_packet() calls the function of the first row with a word that the packet
 * begins with. So if one word begins with another word, the longer one comes first
 * ("vCont?" before "vCont"). A packet that fits no row gets an empty answer: for gdb that
 * means "not supported".
 */
static const struct {
    const char *word;
    void (*fn)(struct gdb_request *r);
} packets[] = {
    { "?", take_why },
    { "H", take_thread },
    { "T", take_alive },
    { "D", take_detach },
    { "k", take_kill },
    { "g", take_read_registers },
    { "G", take_write_registers },
    { "p", take_read_register },
    { "P", take_write_register },
    { "m", take_read_memory },
    { "M", take_write_hex },
    { "X", take_write_binary },
    { "Z", gdb_break_insert },
    { "z", gdb_break_remove },
    { "c", take_continue },
    { "s", take_step },
    { "vCont?", list_actions },
    { "vCont", take_vcont },
    { "vKill", ok_kill },
    { "QStartNoAckMode", query_no_acks },
    { "qSupported", query_supported },
    { "qRcmd,", gdb_monitor_command },
    { "qC", query_current },
    { "qAttached", query_attached },
    { "qfThreadInfo", gdb_query_threads },
    { "qsThreadInfo", gdb_query_more_threads },
    { "qXfer:features:read:target.xml:", gdb_query_target },
    { "qXfer:threads:read::", gdb_query_thread_document },
    { "qXfer:traceframe-info:read::", gdb_query_collected },
    { "QT", gdb_trace_packet },
    { "qThreadExtraInfo,", gdb_query_thread_text },
    { "qT", gdb_trace_query },
};

static void dispatch_packet(const char *data, size_t len)
{
    struct gdb_request r = { .at = data, .end = data + len, .out = &out };

    for (size_t i = 0; i < ARRAY_LEN(packets); i++) {
        if (!gdb_take_word(&r.at, packets[i].word))
            continue;
        packets[i].fn(&r);
        return;
    }
}

static uint64_t waiting_since; /* time stamp: since then this CPU has only waited */

/* next_packet - wait for the next packet. The clock does not count the time of the wait. It
 * is moved before the packet is looked at: the packet may change text, whose time is noted,
 * or let a CPU run, which would see its time run backwards.
 */
static const char *next_packet(size_t *len)
{
    const char *data = gdb_line_packet(len);

    clock_skip(rdtsc() - waiting_since);
    return data;
}

static void answer_next(void)
{
    size_t len;
    const char *data = next_packet(&len);
    bool silent;

    gdb_out_start(&out);
    resumed = false;
    if (data)
        dispatch_packet(data, len);
    else
        gdb_error(&(struct gdb_request){ .out = &out }, "the packet is too long");
    waiting_since = rdtsc();
    silent = resumed || (data && !strncmp(data, "QStartNoAckMode", 15));
    if (!silent)
        gdb_line_answer(&out);
}

/* The debugger has let the kernel run, and so it waits for a report of the next stop. A
 * debugger that has just connected gets no report: it sends the first packet.
 */
static bool told_to_run;

void gdb_session(unsigned cpu)
{
    waiting_since = rdtsc();
    serving = cpu;
    selected = percpu_of(cpu)->current;
    gdb_step_cancel(selected);
    if (told_to_run && !gdb_line_has_packet()) {
        gdb_output_send(SIZE_MAX);
        gdb_out_start(&out);
        put_stop(&out);
        gdb_line_answer(&out);
    }
    if (gdb_cpu(cpu)->why == GDB_WHY_EXIT) {
        gdb_line_detach();
        gdb_release(GDB_ALL_CPUS);
        return;
    }
    do {
        answer_next();
    } while (!resumed);
    told_to_run = gdb_line_attached();
}

void gdb_session_ends(unsigned status)
{
    exit_status = (uint8_t)status;
}
