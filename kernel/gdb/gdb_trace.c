/* gdb_trace.c - tracepoints: defined, started, stopped, told.
 *
 * Definitions lie in memory of their own, which QTinit takes back whole: all CPUs stand then,
 * and none of them is collecting (gdb_collect.h). QTStart arms all places while all CPUs
 * stand, so all begin at once. QTStop leaves their probes for the stub's thread to take out,
 * as breakpoints' are: until then a hit finds no tracepoint, and does nothing.
 *
 * Source: GDB manual, "Tracepoint Packets".
 */
#include "kernel/gdb/gdb_trace.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/gdb/gdb_break.h"
#include "kernel/gdb/gdb_frame.h"
#include "kernel/gdb/gdb_stop.h"
#include "kernel/gdb/gdb_tracepoint.h"
#include "probes/agent/agent.h"
#include "probes/kprobe.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define PAGES 128 /* of frames, for each CPU */
#define STORE_LEN (96 * KiB)
#define POINTS_MAX 128
#define PLACES_MAX 128
#define CONSTANTS_MAX 8
#define NOTE_MAX 256
#define REASON_LEN 192
#define FAST_LEN 5 /* bytes: a file may have a fast tracepoint where so many are */

/* What the debugger calls the source of a tracepoint: kept for the next debugger. */
struct gdb_source {
    struct gdb_source *next;
    size_t len;
    char text[]; /* type:start:length:hex */
};

static uint8_t store[STORE_LEN] ALIGNED(16);
static size_t store_used;

static struct gdb_tracepoint *points[POINTS_MAX]; /* [0, point_count), in the store */
static size_t point_count;
static struct gdb_variable variables[GDB_VARIABLES_MAX];

/* An address at which tracepoints are armed.
 * Locks:  s while serving, read by hits   w the stub's thread as well
 */
static struct place {
    enum { FREE, THERE, LEAVING } state; /* [s, w] */
    struct gdb_tracepoint *first;        /* [s] NULL: the place is not wanted */
    struct kprobe kp;
} places[PLACES_MAX];

static struct {
    uintptr_t start, end;
} constants[CONSTANTS_MAX];
static size_t constant_count;

static uint64_t wanted_limit; /* 0: what there is */
static bool wanted_circular, stays_when_detached;
static char user[NOTE_MAX], notes[NOTE_MAX], stop_note[NOTE_MAX]; /* hex digits */
static char refusal[REASON_LEN];
static unsigned told; /* how many lines of qTfP; how many places of variables are left */
static bool is_new;   /* the debugger has not asked for the tracepoints yet, */
static bool for_file; /* or it has, and this list may be for a file of tsave */
static bool is_available;

bool gdb_trace_init(void)
{
    is_available = cpu_count() <= MAX_CPUS_TRACED && gdb_collect_init() &&
                   gdb_rings_init(&gdb_frames, PAGES, false);
    return is_available;
}

/* ---- memory of definitions ---- */

static void *store_alloc(size_t len)
{
    void *p = store + store_used;

    len = align_up(len, 16);
    if (len > STORE_LEN - store_used)
        return NULL;
    store_used += len;
    return memset(p, 0, len);
}

static const char *no_memory = "no memory: the tracepoints have more than 96 KiB";

/* ---- definitions ---- */

struct gdb_variable *gdb_variable_of(unsigned number)
{
    for (size_t i = 0; i < GDB_VARIABLES_MAX; i++)
        if (variables[i].is_there && variables[i].number == number)
            return &variables[i];
    return NULL;
}

static struct gdb_tracepoint *find_point(unsigned number, uintptr_t addr)
{
    for (size_t i = 0; i < point_count; i++)
        if (points[i]->number == number && points[i]->addr == addr)
            return points[i];
    return NULL;
}

/* take_point - NUMBER : ADDR, of one that is there. Return: NULL: it is not. */
static struct gdb_tracepoint *take_point(struct gdb_request *r)
{
    uint64_t number, addr;

    if (!gdb_take_number(&r->at, &number) || !gdb_take_char(&r->at, ':') ||
        !gdb_take_number(&r->at, &addr))
        return NULL;
    return find_point((unsigned)number, addr);
}

/* take_code - LENGTH , HEX: a program. */
static const char *take_code(struct gdb_request *r, unsigned use, const uint8_t **code,
                             size_t *out_len)
{
    struct agent_problem problem;
    uint8_t *to;
    uint64_t len;

    if (!gdb_take_number(&r->at, &len) || !gdb_take_char(&r->at, ','))
        return "a program without a length";
    if (len > AGENT_CODE_MAX)
        return "the program is too long";
    to = store_alloc(len);
    if (!to)
        return no_memory;
    if (gdb_take_hex(&r->at, to, len) != len)
        return "a program is cut short";
    if (agent_verify(to, len, use, &problem)) {
        agent_problem_text(&problem, refusal, sizeof(refusal));
        return refusal;
    }
    *code = to;
    *out_len = len;
    return NULL;
}

static const char *take_memory(struct gdb_request *r, struct gdb_action *action)
{
    uint64_t base = 0;
    bool is_absolute = gdb_take_word(&r->at, "-1");

    if (!is_absolute && !gdb_take_number(&r->at, &base))
        return "M wants a register, an offset and a length";
    action->base = is_absolute || (uint32_t)base == UINT32_MAX ? -1 : (int)base;
    if (action->base >= AGENT_REGS)
        return "there is no such register";
    if (!gdb_take_char(&r->at, ',') || !gdb_take_number(&r->at, &action->offset) ||
        !gdb_take_char(&r->at, ',') || !gdb_take_number(&r->at, &action->len))
        return "M wants a register, an offset and a length";
    return action->len > AGENT_TRACE_MAX ? "M: more than 65535 bytes" : NULL;
}

static const char *take_action(struct gdb_request *r, struct gdb_action *action)
{
    size_t unused;

    switch (*r->at++) {
    case 'R': /* all of them, whichever are asked for: they are one copy */
        while (isxdigit((unsigned char)*r->at))
            r->at++;
        action->kind = GDB_REGISTERS;
        return NULL;
    case 'M':
        action->kind = GDB_MEMORY;
        return take_memory(r, action);
    case 'X':
        action->kind = GDB_CODE;
        return take_code(r, AGENT_COLLECT | AGENT_VARS, &action->code, &unused);
    case 'S':
        return "while-stepping is not served: a step would trap at each instruction of "
               "a kernel that others use; set a tracepoint at each address instead";
    case 'L':
        return "there are no static tracepoints";
    default:
        return "an action is R, M or X";
    }
}

static void append_action(struct gdb_tracepoint *tp, struct gdb_action *action)
{
    struct gdb_action **end = &tp->actions;

    tp->only_registers = !*end && action->kind == GDB_REGISTERS;
    while (*end)
        end = &(*end)->next;
    *end = action;
}

static const char *take_actions(struct gdb_request *r, struct gdb_tracepoint *tp)
{
    while (*r->at && *r->at != '-') {
        struct gdb_action *action = store_alloc(sizeof(*action));
        const char *from = r->at, *why;
        char *text;

        if (!action)
            return no_memory;
        why = take_action(r, action);
        if (why)
            return why;
        action->text_len = (size_t)(r->at - from);
        text = store_alloc(action->text_len + 1);
        if (!text)
            return no_memory;
        memcpy(text, from, action->text_len);
        action->text = text;
        append_action(tp, action);
    }
    return NULL;
}

/* take_options - what is behind the pass count: [:F LENGTH] [:X CONDITION] [:S] [:H] [-]. */
static const char *take_options(struct gdb_request *r, struct gdb_tracepoint *tp)
{
    const char *why = NULL;

    while (!why && gdb_take_char(&r->at, ':')) {
        char option = *r->at++;

        if (option == 'F' && gdb_take_number(&r->at, &tp->fast))
            continue;
        if (option != 'X')
            return "neither F nor X: there are no static tracepoints";
        why = take_code(r, AGENT_VALUE | AGENT_VARS, &tp->condition, &tp->condition_len);
    }
    return why;
}

static const char *arm(struct gdb_tracepoint *tp);

static const char *take_new(struct gdb_request *r)
{
    struct gdb_tracepoint *tp = store_alloc(sizeof(*tp));
    uint64_t number, addr, step;
    const char *why;

    if (!tp || point_count == POINTS_MAX)
        return tp ? "there are 128 tracepoints already" : no_memory;
    if (!gdb_take_number(&r->at, &number) || !gdb_take_char(&r->at, ':') ||
        !gdb_take_number(&r->at, &addr) || !gdb_take_char(&r->at, ':'))
        return "QTDP wants a number and an address";
    tp->number = (unsigned)number;
    tp->addr = addr;
    tp->is_enabled = gdb_take_char(&r->at, 'E');
    if ((!tp->is_enabled && !gdb_take_char(&r->at, 'D')) || !gdb_take_char(&r->at, ':') ||
        !gdb_take_number(&r->at, &step) || !gdb_take_char(&r->at, ':') ||
        !gdb_take_number(&r->at, &tp->pass))
        return "QTDP wants E or D, steps and a pass count";
    if (step)
        return "while-stepping is not served";
    if (find_point(tp->number, tp->addr))
        return "this tracepoint is there already";
    why = take_options(r, tp);
    if (why)
        return why;
    points[point_count++] = tp;
    return *r->at == '-' || !gdb_trace_state.runs ? NULL : arm(tp);
}

static const char *take_more(struct gdb_request *r)
{
    struct gdb_tracepoint *tp = take_point(r);
    const char *why;

    if (!tp || !gdb_take_char(&r->at, ':'))
        return "there is no such tracepoint";
    why = take_actions(r, tp);
    if (why)
        return why;
    return *r->at == '-' || !gdb_trace_state.runs ? NULL : arm(tp);
}

/* A tracepoint of which a part was refused is none: the debugger gives up there. */
static void define(struct gdb_request *r)
{
    gdb_done(r, gdb_take_char(&r->at, '-') ? take_more(r) : take_new(r));
}

static void define_source(struct gdb_request *r)
{
    struct gdb_tracepoint *tp = take_point(r);
    struct gdb_source *source, **end;
    size_t len;

    if (!tp || !gdb_take_char(&r->at, ':')) {
        gdb_error(r, "there is no such tracepoint");
        return;
    }
    len = (size_t)(r->end - r->at);
    source = store_alloc(sizeof(*source) + len + 1);
    if (!source) {
        gdb_error(r, no_memory);
        return;
    }
    source->len = len;
    memcpy(source->text, r->at, len);
    for (end = &tp->sources; *end; end = &(*end)->next)
        continue;
    *end = source;
    gdb_ok(r);
}

static struct gdb_variable *room_for_variable(void)
{
    for (size_t i = 0; i < GDB_VARIABLES_MAX; i++)
        if (!variables[i].is_there)
            return &variables[i];
    return NULL;
}

static void define_variable(struct gdb_request *r)
{
    uint64_t number, value, builtin;
    struct gdb_variable *var;

    if (!gdb_take_number(&r->at, &number) || !gdb_take_char(&r->at, ':') ||
        !gdb_take_number(&r->at, &value) || !gdb_take_char(&r->at, ':') ||
        !gdb_take_number(&r->at, &builtin) || !gdb_take_char(&r->at, ':')) {
        gdb_error(r, "QTDV wants number, value, builtin and name");
        return;
    }
    var = gdb_variable_of((unsigned)number);
    var = var ? var : room_for_variable();
    if (!var || strlen(r->at) >= sizeof(var->name)) {
        gdb_error(r, var ? "the name is too long" : "there are 32 variables already");
        return;
    }
    *var = (struct gdb_variable){ .number = (unsigned)number,
                                  .is_there = true,
                                  .initial = (int64_t)value,
                                  .value = (int64_t)value,
                                  .builtin = builtin };
    memcpy(var->name, r->at, strlen(r->at) + 1);
    gdb_ok(r);
}

/* ---- places ---- */

static int hit(struct kprobe *kp, struct pt_regs *regs)
{
    struct place *place = CONTAINER_OF(kp, struct place, kp);
    struct gdb_tracepoint *first = READ_ONCE(place->first);

    if (first && READ_ONCE(gdb_trace_state.runs) && !gdb_is_serving())
        gdb_collect(first, regs);
    return 0;
}

static struct place *place_at(uintptr_t addr)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        if (places[i].state == THERE && (uintptr_t)places[i].kp.addr == addr)
            return &places[i];
    return NULL;
}

static struct place *free_place(void)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        if (places[i].state == FREE)
            return &places[i];
    return NULL;
}

static const char *arm(struct gdb_tracepoint *tp)
{
    struct place *place = place_at(tp->addr);
    struct gdb_tracepoint **end;
    const char *why;

    if (!place) {
        place = free_place();
        if (!place)
            return "128 addresses have tracepoints already: let the kernel run first";
        memset(place, 0, sizeof(*place));
        place->kp.pre_handler = hit;
        why = gdb_break_arm(&place->kp, tp->addr);
        if (why)
            return why;
        place->state = THERE;
    }
    tp->next = NULL;
    for (end = &place->first; *end; end = &(*end)->next)
        continue;
    WRITE_ONCE(*end, tp);
    return NULL;
}

static void leave_places(void)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        WRITE_ONCE(places[i].first, NULL);
    for (size_t i = 0; i < point_count; i++)
        points[i]->next = NULL;
}

/* take_out - a stop in the middle of this finds the place LEAVING, and takes another one. */
static void take_out(struct place *place)
{
    unsigned long flags = irq_save();
    bool goes = place->state == THERE && !place->first;

    if (goes)
        place->state = LEAVING;
    irq_restore(flags);
    if (!goes)
        return;
    unregister_kprobe(&place->kp);
    __atomic_store_n(&place->state, FREE, __ATOMIC_RELEASE);
}

void gdb_trace_work(void)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        take_out(&places[i]);
}

/* ---- a trace ---- */

static uint64_t room(void)
{
    return (uint64_t)cpu_count() * PAGES * RING_DATA_LEN;
}

static uint64_t limit(void)
{
    return wanted_limit ? wanted_limit : room();
}

static void stop(enum gdb_trace_end why)
{
    gdb_collect_end(why, 0);
    leave_places();
}

static void init(struct gdb_request *r)
{
    stop(GDB_TRACE_STOPPED);
    gdb_frame_forget();
    store_used = point_count = constant_count = 0;
    memset(points, 0, sizeof(points));
    memset(variables, 0, sizeof(variables));
    memset(&gdb_trace_state, 0, sizeof(gdb_trace_state));
    gdb_rings_reset(&gdb_frames);
    gdb_ok(r);
}

static void reset_counters(void)
{
    memset(&gdb_trace_state, 0, sizeof(gdb_trace_state));
    gdb_trace_state.is_circular = wanted_circular;
    gdb_trace_state.limit = limit();
    gdb_trace_state.keeps = wanted_circular ? wanted_limit : 0;
    for (size_t i = 0; i < point_count; i++)
        points[i]->hits = points[i]->bytes = 0;
    for (size_t i = 0; i < GDB_VARIABLES_MAX; i++)
        variables[i].value = variables[i].initial;
}

static void start(struct gdb_request *r)
{
    const char *why = NULL;

    stop(GDB_TRACE_STOPPED);
    gdb_frame_forget();
    gdb_rings_reset(&gdb_frames);
    gdb_rings_overwrite(&gdb_frames, wanted_circular);
    reset_counters();
    for (size_t i = 0; i < point_count && !why; i++) {
        why = arm(points[i]);
        if (why)
            scnprintf(refusal, sizeof(refusal), "tracepoint %u at 0x%lx: %s",
                      points[i]->number, points[i]->addr, why);
    }
    if (why)
        leave_places();
    else
        WRITE_ONCE(gdb_trace_state.runs, true);
    gdb_done(r, why ? refusal : NULL);
}

static void stop_trace(struct gdb_request *r)
{
    stop(GDB_TRACE_STOPPED);
    gdb_ok(r);
}

void gdb_trace_greet(void)
{
    is_new = true;
}

void gdb_trace_detach(void)
{
    gdb_frame_forget();
    if (!stays_when_detached)
        stop(GDB_TRACE_DISCONNECTED);
}

static void enable(struct gdb_request *r, bool on)
{
    struct gdb_tracepoint *tp = take_point(r);

    if (tp)
        WRITE_ONCE(tp->is_enabled, on);
    gdb_done(r, tp ? NULL : "there is no such tracepoint");
}

static void switch_on(struct gdb_request *r)
{
    enable(r, true);
}

static void switch_off(struct gdb_request *r)
{
    enable(r, false);
}

/* ---- settings ---- */

static void set_constants(struct gdb_request *r)
{
    uint64_t start, end;

    constant_count = 0;
    while (constant_count < CONSTANTS_MAX && gdb_take_char(&r->at, ':') &&
           gdb_take_number(&r->at, &start) && gdb_take_char(&r->at, ',') &&
           gdb_take_number(&r->at, &end)) {
        constants[constant_count].start = start;
        constants[constant_count++].end = end;
    }
    gdb_ok(r);
}

bool gdb_trace_is_constant(uintptr_t addr, size_t len)
{
    for (size_t i = 0; i < constant_count; i++)
        if (addr >= constants[i].start && addr + len <= constants[i].end)
            return true;
    return false;
}

static void set_circular(struct gdb_request *r)
{
    uint64_t value = 0;

    gdb_take_number(&r->at, &value);
    wanted_circular = value;
    gdb_ok(r);
}

static void set_size(struct gdb_request *r)
{
    uint64_t size;

    if (gdb_take_word(&r->at, "-1")) {
        wanted_limit = 0;
    } else if (!gdb_take_number(&r->at, &size) || !size) {
        gdb_error(r, "no size");
        return;
    } else if (size > room()) {
        scnprintf(refusal, sizeof(refusal), "the buffer has at most %lu bytes", room());
        gdb_error(r, refusal);
        return;
    } else {
        wanted_limit = size;
    }
    gdb_ok(r);
}

static void set_disconnected(struct gdb_request *r)
{
    uint64_t value = 0;

    gdb_take_number(&r->at, &value);
    stays_when_detached = value;
    gdb_ok(r);
}

static void take_note(struct gdb_request *r, char *to)
{
    size_t len = 0;

    for (; *r->at && *r->at != ';'; r->at++)
        if (len < NOTE_MAX - 1)
            to[len++] = *r->at;
    to[len & ~(size_t)1] = '\0';
}

static void set_notes(struct gdb_request *r)
{
    while (*r->at) {
        if (gdb_take_word(&r->at, "user:"))
            take_note(r, user);
        else if (gdb_take_word(&r->at, "notes:"))
            take_note(r, notes);
        else if (gdb_take_word(&r->at, "tstop:"))
            take_note(r, stop_note);
        else
            r->at++;
    }
    gdb_ok(r);
}

/* ---- what is told ---- */

static void put_text_as_hex(struct gdb_out *out, const char *text)
{
    gdb_put_hex(out, text, strlen(text));
}

static void put_field(struct gdb_out *out, const char *name, uint64_t value)
{
    gdb_put_text(out, ";");
    gdb_put_text(out, name);
    gdb_put_text(out, ":");
    gdb_put_number(out, value);
}

static void put_end(struct gdb_out *out)
{
    static const char *const names[] = { [GDB_TRACE_NOT_RUN] = ";tnotrun:0",
                                         [GDB_TRACE_FULL] = ";tfull:0",
                                         [GDB_TRACE_DISCONNECTED] = ";tdisconnected:0" };

    if (gdb_trace_state.runs) {
        gdb_put_text(out, ";tnotrun:0");
    } else if (gdb_trace_state.end == GDB_TRACE_PASSED) {
        put_field(out, "tpasscount", gdb_trace_state.end_number);
    } else if (gdb_trace_state.end == GDB_TRACE_STOPPED) {
        gdb_put_text(out, ";tstop:");
        gdb_put_text(out, stop_note);
        gdb_put_text(out, ":0");
    } else {
        gdb_put_text(out, names[gdb_trace_state.end]);
    }
}

/* put_losses - behind the notes, where the user of the debugger reads them. */
static void put_losses(struct gdb_out *out)
{
    static const char *const names[GDB_LOSSES] = {
        [GDB_LOST_FULL] = "frames lost, no room",
        [GDB_LOST_RECURSION] = "hits lost, of code that collects",
        [GDB_LOST_CUT] = "pieces lost, the frame was full",
        [GDB_LOST_FAULT] =
            "pieces or conditions lost, memory not readable or division by 0",
    };
    char text[96];

    for (size_t i = 0; i < GDB_LOSSES; i++) {
        uint64_t lost = gdb_trace_state.lost[i];

        if (!lost)
            continue;
        scnprintf(text, sizeof(text), " [%lu %s]", lost, names[i]);
        put_text_as_hex(out, text);
    }
}

static void tell_status(struct gdb_request *r)
{
    uint64_t used = gdb_trace_state.used, most = limit();

    if (gdb_trace_state.is_circular)
        used = gdb_rings_bytes(&gdb_frames);
    gdb_put_text(r->out, gdb_trace_state.runs ? "T1" : "T0");
    put_end(r->out);
    put_field(r->out, "tframes", gdb_frame_count());
    put_field(r->out, "tcreated", gdb_trace_state.created);
    put_field(r->out, "tfree", used < most ? most - used : 0);
    put_field(r->out, "tsize", most);
    put_field(r->out, "circular", wanted_circular);
    put_field(r->out, "disconn", stays_when_detached);
    gdb_put_text(r->out, ";starttime:0;stoptime:0;username:");
    gdb_put_text(r->out, user);
    gdb_put_text(r->out, ";notes:");
    gdb_put_text(r->out, notes);
    put_losses(r->out);
}

static void tell_hits(struct gdb_request *r)
{
    const struct gdb_tracepoint *tp = take_point(r);

    if (!tp)
        return; /* an empty answer: unknown */
    gdb_put_text(r->out, "V");
    gdb_put_number(r->out, tp->hits);
    gdb_put_text(r->out, ":");
    gdb_put_number(r->out, tp->bytes);
}

static void tell_variable(struct gdb_request *r)
{
    const struct gdb_variable *var;
    uint64_t number;
    int64_t value = 0;
    bool is_known;

    if (!gdb_take_number(&r->at, &number)) {
        gdb_error(r, "no number");
        return;
    }
    var = gdb_variable_of((unsigned)number);
    if (gdb_frame_is_selected())
        is_known = gdb_frame_variable((unsigned)number, &value);
    else if ((is_known = var != NULL))
        value = var->value;
    if (!is_known) {
        gdb_put_text(r->out, "U");
        return;
    }
    gdb_put_text(r->out, "V");
    gdb_put_number(r->out, (uint64_t)value);
}

/* ---- what a debugger that has just come asks: qTfP, qTfV ---- */

static void put_place(struct gdb_out *out, const char *letter,
                      const struct gdb_tracepoint *tp)
{
    gdb_put_text(out, letter);
    gdb_put_number(out, tp->number);
    gdb_put_text(out, ":");
    gdb_put_number(out, tp->addr);
    gdb_put_text(out, ":");
}

/* put_definition - the debugger compares its own tracepoints with the first list that it asks
 * for. Later lists are for files. gdb opens no file with a fast tracepoint at an instruction
 * of less than five bytes: there it is told as an ordinary one, which does the same.
 */
static void put_definition(struct gdb_out *out, const struct gdb_tracepoint *tp)
{
    put_place(out, "T", tp);
    gdb_put_text(out, tp->is_enabled ? "E:0:" : "D:0:");
    gdb_put_number(out, tp->pass);
    if (tp->fast && (tp->fast >= FAST_LEN || !for_file)) {
        gdb_put_text(out, ":F");
        gdb_put_number(out, tp->fast);
    }
    if (tp->condition) {
        gdb_put_text(out, ":X");
        gdb_put_number(out, tp->condition_len);
        gdb_put_text(out, ",");
        gdb_put_hex(out, tp->condition, tp->condition_len);
    }
}

/* put_line - line @n of all that is to be told of @tp. Return: false: it has less. */
static bool put_line(struct gdb_out *out, const struct gdb_tracepoint *tp, unsigned *n)
{
    if (!(*n)--) {
        put_definition(out, tp);
        return true;
    }
    for (const struct gdb_action *a = tp->actions; a; a = a->next)
        if (!(*n)--) {
            put_place(out, "A", tp);
            gdb_put_text(out, a->text);
            return true;
        }
    for (const struct gdb_source *s = tp->sources; s; s = s->next)
        if (!(*n)--) {
            put_place(out, "Z", tp);
            gdb_put_text(out, s->text);
            return true;
        }
    return false;
}

static void tell_next_point(struct gdb_request *r)
{
    unsigned n = told++;

    for (size_t i = 0; i < point_count; i++)
        if (put_line(r->out, points[i], &n))
            return;
    gdb_put_text(r->out, "l");
}

static void tell_points(struct gdb_request *r)
{
    told = 0;
    for_file = !is_new;
    is_new = false;
    tell_next_point(r);
}

/* tell_next_variable - the latest first: gdb defines them in the opposite order. */
static void tell_next_variable(struct gdb_request *r)
{
    const struct gdb_variable *var;

    while (told && !variables[told - 1].is_there)
        told--;
    if (!told) {
        gdb_put_text(r->out, "l");
        return;
    }
    var = &variables[--told];
    gdb_put_number(r->out, var->number);
    gdb_put_text(r->out, ":");
    gdb_put_number(r->out, (uint64_t)var->initial);
    gdb_put_text(r->out, var->builtin ? ":1:" : ":0:");
    gdb_put_text(r->out, var->name);
}

static void tell_variables(struct gdb_request *r)
{
    told = GDB_VARIABLES_MAX;
    tell_next_variable(r);
}

/* An instruction of any length can have a jump: pads lie behind the bytes that follow it. */
static void tell_shortest(struct gdb_request *r)
{
    gdb_put_text(r->out, "1");
}

/* ---- dispatch ---- */

struct row {
    const char *word;
    void (*fn)(struct gdb_request *r);
};

static void dispatch(struct gdb_request *r, const struct row *rows, size_t count)
{
    for (size_t i = 0; is_available && i < count; i++) {
        if (!gdb_take_word(&r->at, rows[i].word))
            continue;
        rows[i].fn(r);
        return;
    }
}

void gdb_trace_packet(struct gdb_request *r)
{
    static const struct row rows[] = {
        { "DPsrc:", define_source },
        { "DP:", define },
        { "DV:", define_variable },
        { "init", init },
        { "Start", start },
        { "Stop", stop_trace },
        { "Frame:", gdb_frame_find },
        { "Enable:", switch_on },
        { "Disable:", switch_off },
        { "ro", set_constants },
        { "Buffer:circular:", set_circular },
        { "Buffer:size:", set_size },
        { "Disconnected:", set_disconnected },
        { "Notes:", set_notes },
    };

    dispatch(r, rows, ARRAY_LEN(rows));
}

void gdb_trace_query(struct gdb_request *r)
{
    static const struct row rows[] = {
        { "Status", tell_status },       { "P:", tell_hits },
        { "V:", tell_variable },         { "fP", tell_points },
        { "sP", tell_next_point },       { "fV", tell_variables },
        { "sV", tell_next_variable },    { "Buffer:", gdb_frame_upload },
        { "MinFTPILen", tell_shortest },
    };

    dispatch(r, rows, ARRAY_LEN(rows));
}
