/* gdb_code.c - verifies the conditions and commands of breakpoints once, and runs them at
 * hits.
 */
#include "probes/gdb/gdb_code.h"

#include "kernel/base/compiler.h"
#include "kernel/mm/extable.h"
#include "kernel/sync/quiesce.h"
#include "probes/agent/agent.h"
#include "probes/gdb/gdb_output.h"
#include "probes/port/port_held.h"

#include <stdio.h>
#include <string.h>

#define CODES_MAX 16 /* of one breakpoint */
#define REASON_LEN 128

/* Immutable once a hit can find it. */
struct gdb_code {
    struct gdb_code *next; /* in the list of retired code */
    size_t count;
    size_t commands; /* how many of the programs, the last ones, are commands */
    struct {
        size_t at, len; /* in bytes */
    } each[CODES_MAX];
    uint8_t bytes[];
};

static struct gdb_code *retired; /* atomic */
static char refusal[REASON_LEN];

/* ---- at a hit ---- */

static int gdb_code_read(void *unused, void *dst, uintptr_t addr, size_t len)
{
    (void)unused;
    return copy_nofault(dst, (const void *)addr, len);
}

static int gdb_code_print(void *unused, const char *text, size_t len)
{
    (void)unused;
    gdb_output_put(text, len);
    return 0;
}

/* gdb_code_tell - report a program that has failed to the user of the debugger, as output. */
static void gdb_code_tell(const struct agent_world *world,
                          const struct agent_problem *problem)
{
    char text[REASON_LEN + 32];
    int len = scnprintf(text, sizeof(text), "[at 0x%lx: ", world->ip);

    agent_problem_text(problem, text + len, REASON_LEN);
    len = (int)strlen(text);
    memcpy(text + len, "]\n", 3);
    gdb_output_put(text, (size_t)len + 2);
}

/* do_hold - does a condition hold? Return: 1: one does, or there are none; 0: no; less
 * than 0: a condition could not be computed.
 */
static int do_hold(const struct gdb_code *code, const struct agent_world *world)
{
    size_t count = code->count - code->commands;

    for (size_t i = 0; i < count; i++) {
        struct agent_problem problem;
        uint64_t value = 0;
        int err = agent_run(code->bytes + code->each[i].at, world, &value, &problem);

        if (err)
            gdb_code_tell(world, &problem);
        if (err || value)
            return err ? err : 1;
    }
    return !count;
}

static void run_commands(const struct gdb_code *code, const struct agent_world *world)
{
    for (size_t i = code->count - code->commands; i < code->count; i++) {
        struct agent_problem problem;

        if (agent_run(code->bytes + code->each[i].at, world, NULL, &problem))
            gdb_code_tell(world, &problem);
    }
}

bool gdb_code_is_false(const struct gdb_code *code, uintptr_t addr,
                       const struct pt_regs *regs)
{
    struct agent_world world; /* only what a condition needs: the rest would cost time */
    size_t count = code ? code->count - code->commands : 0;
    uint64_t value;

    world.regs = regs;
    world.ip = addr;
    world.read = gdb_code_read;
    for (size_t i = 0; i < count; i++)
        if (agent_run(code->bytes + code->each[i].at, &world, &value, NULL) || value)
            return false;
    return count;
}

int gdb_code_ask(const struct gdb_code *code, uintptr_t addr, const struct pt_regs *regs)
{
    struct agent_world world = {
        .regs = regs, .ip = addr, .read = gdb_code_read, .print = gdb_code_print
    };
    int answer;

    if (!code)
        return 1;
    answer = do_hold(code, &world);
    if (answer != 1 || !code->commands)
        return answer;
    run_commands(code, &world);
    return 0;
}

/* ---- what a packet says ---- */

/* gdb_code_len - return how many bytes the programs in @text need at most. */
static size_t gdb_code_len(const char *text)
{
    return strlen(text) / 2;
}

static const char *gdb_code_take_one(struct gdb_request *r, struct gdb_code *code,
                                     size_t *at, unsigned use)
{
    struct agent_problem problem = { 0 };
    uint64_t len;

    if (code->count == CODES_MAX)
        return "more than 16 conditions and commands at one place";
    if (!gdb_take_number(&r->at, &len) || !gdb_take_char(&r->at, ','))
        return "a condition or command without a length";
    if (len > AGENT_CODE_MAX)
        return "the condition or command is too long";
    if (gdb_take_hex(&r->at, code->bytes + *at, len) != len)
        return "a condition or command is cut short";
    if (agent_verify(code->bytes + *at, len, use, &problem)) {
        agent_problem_text(&problem, refusal, sizeof(refusal));
        return refusal;
    }
    code->each[code->count].at = *at;
    code->each[code->count++].len = len;
    *at += len;
    return NULL;
}

static const char *take_all(struct gdb_request *r, struct gdb_code *code)
{
    const char *why = NULL;
    uint64_t persist;
    size_t at = 0;

    while (!why && gdb_take_word(&r->at, ";X"))
        why = gdb_code_take_one(r, code, &at, AGENT_VALUE);
    if (why || !*r->at)
        return why;
    if (!gdb_take_word(&r->at, ";cmds:") || !gdb_take_number(&r->at, &persist) ||
        !gdb_take_char(&r->at, ','))
        return "neither a condition nor a command";
    while (!why && gdb_take_char(&r->at, 'X')) {
        why = gdb_code_take_one(r, code, &at, AGENT_PRINT);
        code->commands++;
    }
    return why || !*r->at ? why : "rubbish behind the commands";
}

const char *gdb_code_take(struct gdb_request *r, struct gdb_code **out)
{
    struct gdb_code *code;
    const char *why;

    *out = NULL;
    if (!*r->at)
        return NULL;
    code = port_held_alloc(sizeof(*code) + gdb_code_len(r->at));
    if (!code)
        return "no memory for the condition or command";
    why = take_all(r, code);
    if (why)
        port_held_free(code);
    else
        *out = code;
    return why;
}

bool gdb_code_equal(const struct gdb_code *a, const struct gdb_code *b)
{
    size_t last;

    if (!a || !b || a->count != b->count || a->commands != b->commands)
        return a == b;
    if (!a->count)
        return true;
    last = a->count - 1;
    return !memcmp(a->each, b->each, sizeof(a->each)) &&
           !memcmp(a->bytes, b->bytes, a->each[last].at + a->each[last].len);
}

/* ---- the end of a program ---- */

void gdb_code_retire(struct gdb_code *code)
{
    if (!code)
        return;
    code->next = retired;
    retired = code;
}

void gdb_code_free(struct gdb_code *code)
{
    if (code)
        port_held_free(code);
}

void gdb_code_free_retired(void)
{
    struct gdb_code *code = __atomic_exchange_n(&retired, NULL, __ATOMIC_ACQ_REL);

    if (code)
        quiesce();
    while (code) {
        struct gdb_code *next = code->next;

        gdb_code_free(code);
        code = next;
    }
}
