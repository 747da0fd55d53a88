/* gdb_define.c - takes definitions of tracepoints and trace variables from the debugger,
 * and tells them to the next debugger.
 *
 * Definitions lie in memory of their own (store), which QTinit frees as a whole. That is
 * safe: all CPUs stand then, and none of them is collecting (gdb_collect.h).
 *
 * Source: GDB manual, "Tracepoint Packets".
 */
#include "probes/gdb/gdb_define.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/mm/heap.h"
#include "probes/agent/agent.h"
#include "probes/gdb/gdb_place.h"

#include <ctype.h>
#include <string.h>

#define STORE_LEN (96 * KiB)
#define POINTS_MAX 128
#define REASON_LEN 192
#define FAST_LEN 5 /* bytes: gdb opens no file with `ftrace` of a shorter instruction */

/* A piece of what the debugger calls the source of a tracepoint, kept for the next
 * debugger.
 */
struct gdb_source {
    struct gdb_source *next;
    size_t len;
    char text[]; /* type:start:length:hex */
};

static uint8_t *store; /* STORE_LEN bytes */
static size_t store_used;

static struct gdb_tracepoint *points[POINTS_MAX]; /* [0, point_count), in the store */
static size_t point_count;
static struct gdb_variable variables[GDB_VARIABLES_MAX];

static char refusal[REASON_LEN];
static unsigned told; /* qTsP: lines told so far; qTsV: variables[] that are left */
static bool is_new;   /* the debugger has not asked for the tracepoints yet */
static bool for_file; /* it has asked before: the list may be for a file of tsave */

/* ---- memory of definitions ---- */

INIT bool gdb_define_init(void)
{
    store = kzalloc(STORE_LEN);
    return store;
}

static void *store_alloc(size_t len)
{
    void *p = store + store_used;

    len = align_up(len, 16);
    if (!store || len > STORE_LEN - store_used)
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

struct gdb_tracepoint *gdb_take_point(struct gdb_request *r)
{
    uint64_t number, addr;

    if (!gdb_take_number(&r->at, &number) || !gdb_take_char(&r->at, ':') ||
        !gdb_take_number(&r->at, &addr))
        return NULL;
    return find_point((unsigned)number, addr);
}

struct gdb_tracepoint *gdb_point(size_t i)
{
    return i < point_count ? points[i] : NULL;
}

void gdb_define_forget(void)
{
    store_used = point_count = 0;
    memset(points, 0, sizeof(points));
    memset(variables, 0, sizeof(variables));
}

void gdb_define_restart(void)
{
    for (size_t i = 0; i < point_count; i++)
        points[i]->hits = points[i]->bytes = 0;
    for (size_t i = 0; i < GDB_VARIABLES_MAX; i++)
        variables[i].value = variables[i].initial;
}

/* take_code - read LENGTH,HEX: a program. It is verified. */
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

static const char *define_take_action(struct gdb_request *r, struct gdb_action *action)
{
    size_t unused;

    switch (*r->at++) {
    case 'R': /* all registers, whichever are asked for: they are one copy */
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
    case 'L':
        return "there are no static tracepoints";
    default:
        return "an action is R, M or X";
    }
}

static void append_action(struct gdb_tracepoint *tp, struct gdb_action *action)
{
    struct gdb_action **end = tp->steps_come ? &tp->step_actions : &tp->actions;

    if (!tp->steps_come)
        tp->only_registers = !*end && action->kind == GDB_REGISTERS;
    while (*end)
        end = &(*end)->next;
    *end = action;
}

/* take_actions - read actions. Those behind an S, and all that come later, are of steps. */
static const char *take_actions(struct gdb_request *r, struct gdb_tracepoint *tp)
{
    if (gdb_take_char(&r->at, 'S'))
        tp->steps_come = true;
    while (*r->at && *r->at != '-') {
        struct gdb_action *action = store_alloc(sizeof(*action));
        const char *from = r->at, *why;
        char *text;

        if (!action)
            return no_memory;
        why = define_take_action(r, action);
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

/* define_take_options - read what is behind the pass count: [:F LENGTH] [:X CONDITION]
 * [:S] [:H] [-]. S and H are refused.
 */
static const char *define_take_options(struct gdb_request *r, struct gdb_tracepoint *tp)
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

static const char *take_new(struct gdb_request *r)
{
    struct gdb_tracepoint *tp = store_alloc(sizeof(*tp));
    uint64_t number, addr;
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
        !gdb_take_number(&r->at, &tp->steps) || !gdb_take_char(&r->at, ':') ||
        !gdb_take_number(&r->at, &tp->pass))
        return "QTDP wants E or D, steps and a pass count";
    if (find_point(tp->number, tp->addr))
        return "this tracepoint is there already";
    why = define_take_options(r, tp);
    if (why)
        return why;
    points[point_count++] = tp;
    return *r->at == '-' || !gdb_trace_state.runs ? NULL : gdb_place_arm(tp);
}

static const char *take_more(struct gdb_request *r)
{
    struct gdb_tracepoint *tp = gdb_take_point(r);
    const char *why;

    if (!tp || !gdb_take_char(&r->at, ':'))
        return "there is no such tracepoint";
    why = take_actions(r, tp);
    if (why)
        return why;
    return *r->at == '-' || !gdb_trace_state.runs ? NULL : gdb_place_arm(tp);
}

/* If a part of a tracepoint is refused, the debugger gives up, so the tracepoint is never
 * armed.
 */
void gdb_define_point(struct gdb_request *r)
{
    gdb_done(r, gdb_take_char(&r->at, '-') ? take_more(r) : take_new(r));
}

void gdb_define_source(struct gdb_request *r)
{
    struct gdb_tracepoint *tp = gdb_take_point(r);
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

void gdb_define_variable(struct gdb_request *r)
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

/* ---- what a new debugger asks: qTfP, qTfV ---- */

void gdb_define_greet(void)
{
    is_new = true;
}

static void define_put_place(struct gdb_out *out, const char *letter,
                             const struct gdb_tracepoint *tp)
{
    gdb_put_text(out, letter);
    gdb_put_number(out, tp->number);
    gdb_put_text(out, ":");
    gdb_put_number(out, tp->addr);
    gdb_put_text(out, ":");
}

/* put_definition - tell the definition of @tp. The debugger compares its own tracepoints
 * with the first list that it asks for. Later lists are for files. gdb opens no file with
 * a fast tracepoint at an instruction of less than five bytes. So in a list for a file
 * such a tracepoint is told as an ordinary one, which does the same.
 */
static void put_definition(struct gdb_out *out, const struct gdb_tracepoint *tp)
{
    define_put_place(out, "T", tp);
    gdb_put_text(out, tp->is_enabled ? "E:" : "D:");
    gdb_put_number(out, tp->steps);
    gdb_put_text(out, ":");
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

/* define_put_action - tell action *@n of a list, as define_put_line() does. */
static bool define_put_action(struct gdb_out *out, const struct gdb_tracepoint *tp,
                              const char *letter, const struct gdb_action *a, unsigned *n)
{
    for (; a; a = a->next)
        if (!(*n)--) {
            define_put_place(out, letter, tp);
            gdb_put_text(out, a->text);
            return true;
        }
    return false;
}

/* define_put_line - tell line *@n of @tp: the lines are its definition, its actions, its
 * sources. Return: false: @tp has less lines, and *@n is reduced by their number.
 */
static bool define_put_line(struct gdb_out *out, const struct gdb_tracepoint *tp,
                            unsigned *n)
{
    if (!(*n)--) {
        put_definition(out, tp);
        return true;
    }
    if (define_put_action(out, tp, "A", tp->actions, n) ||
        define_put_action(out, tp, "S", tp->step_actions, n))
        return true;
    for (const struct gdb_source *s = tp->sources; s; s = s->next)
        if (!(*n)--) {
            define_put_place(out, "Z", tp);
            gdb_put_text(out, s->text);
            return true;
        }
    return false;
}

void gdb_tell_next_point(struct gdb_request *r)
{
    unsigned n = told++;

    for (size_t i = 0; i < point_count; i++)
        if (define_put_line(r->out, points[i], &n))
            return;
    gdb_put_text(r->out, "l");
}

void gdb_tell_points(struct gdb_request *r)
{
    told = 0;
    for_file = !is_new;
    is_new = false;
    gdb_tell_next_point(r);
}

/* The latest variable is told first: gdb defines the variables in the opposite order. */
void gdb_tell_next_variable(struct gdb_request *r)
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

void gdb_tell_variables(struct gdb_request *r)
{
    told = GDB_VARIABLES_MAX;
    gdb_tell_next_variable(r);
}
