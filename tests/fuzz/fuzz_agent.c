/* fuzz_agent.c - libFuzzer: gives any bytes to the verifier and the interpreter as a
 * program of gdb.
 *
 *     make build/fuzz/fuzz_agent && build/fuzz/fuzz_agent -max_len=96
 *
 * The first byte says what the program may do (enum agent_use). These facts must hold:
 *   - the verifier accepts exactly the programs that a second implementation of the rules
 *     accepts. That one, in this file, follows all ways through a program; the verifier
 *     makes one pass over its bytes;
 *   - an accepted program runs with any registers and memory. It stays inside its stack
 *     and its bytes, which the sanitizers check, and executes each of its instructions at
 *     most once;
 *   - a refusal, and a failure, names an instruction and a reason.
 */
#include "probes/agent/agent_op.h"

#include "kernel/base/err.h"
#include "tests/fuzz/fuzz_memory.h"

#include <stdlib.h>
#include <string.h>

#define MUST(cond)                                                                       \
    do {                                                                                 \
        if (!(cond))                                                                     \
            abort();                                                                     \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the second implementation of the rules ---- */

static size_t steps; /* instructions that were reached */

/* words - find how many words the instruction @insn pops and pushes. */
static void words(const uint8_t *insn, unsigned *pops, unsigned *pushes)
{
    const struct agent_op *op = agent_op_get(*insn);

    *pops = op->pops;
    *pushes = op->pushes;
    if (*insn == OP_PRINTF)
        *pops = insn[1] + 2u;
}

/* length - return the length of the instruction at @at; 0: it is none, or is cut off. */
static size_t length(const uint8_t *code, size_t len, size_t at)
{
    size_t bytes;

    if (at >= len || agent_op_get(code[at])->shape == AGENT_NONE)
        return 0;
    bytes = 1u + agent_op_get(code[at])->operands;
    if (bytes > len - at)
        return 0;
    if (code[at] == OP_PRINTF)
        bytes += (size_t)code[at + 2] << 8 | code[at + 3];
    return bytes > len - at ? 0 : bytes;
}

static bool operands_are_right(const uint8_t *insn, size_t len, unsigned depth)
{
    switch (*insn) {
    case OP_EXT:
    case OP_ZERO_EXT:
        return insn[1] >= 1 && insn[1] <= 64;
    case OP_REG:
        return !insn[1] && insn[2] < AGENT_REGS;
    case OP_PICK:
        return insn[1] < depth;
    case OP_PRINTF:
        return !agent_format_check((const char *)insn + 4, len - 4, insn[1]);
    default:
        return true;
    }
}

/* The depth of the stack in front of each instruction, by offset; -1: no way has come
 * there.
 */
static int depth_at[AGENT_CODE_MAX + 1];

/* follow - follow all ways from @at on, where the stack is @depth words deep.
 * Return: is every instruction on these ways right, up to an end?
 */
static bool follow(const uint8_t *code, size_t len, unsigned use, size_t at,
                   unsigned depth)
{
    for (;;) {
        size_t bytes = length(code, len, at), target;
        unsigned pops, pushes;

        if (!bytes || (agent_op_get(code[at])->use & ~use) ||
            agent_op_get(code[at])->shape == AGENT_FLOAT)
            return false;
        if (depth_at[at] >= 0)
            return depth_at[at] == (int)depth;
        depth_at[at] = (int)depth;
        steps++;
        words(code + at, &pops, &pushes);
        if (!operands_are_right(code + at, bytes, depth) || pops > depth ||
            depth - pops + pushes > AGENT_STACK_MAX)
            return false;
        depth = depth - pops + pushes;
        if (code[at] == OP_END)
            return depth || !(use & AGENT_VALUE);
        target = code[at] == OP_GOTO || code[at] == OP_IF_GOTO
                     ? (size_t)code[at + 1] << 8 | code[at + 2]
                     : len;
        if (code[at] == OP_IF_GOTO &&
            (target <= at || !follow(code, len, use, target, depth)))
            return false;
        if (code[at] == OP_GOTO && target <= at)
            return false;
        at = code[at] == OP_GOTO ? target : at + bytes;
    }
}

/* covers - was each instruction of the program reached, and does no way lead into the
 * middle of one?
 */
static bool covers(const uint8_t *code, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t bytes = length(code, len, at);

        if (depth_at[at] < 0)
            return false;
        for (size_t i = 1; i < bytes; i++)
            if (depth_at[at + i] >= 0)
                return false;
        at += bytes;
    }
    return true;
}

static bool is_right(const uint8_t *code, size_t len, unsigned use)
{
    if (len > AGENT_CODE_MAX)
        return false;
    memset(depth_at, -1, sizeof(depth_at));
    steps = 0;
    return follow(code, len, use, 0, 0) && covers(code, len);
}

/* ---- running ---- */

static size_t calls;
static volatile size_t sink; /* keeps the compiler from leaving out reads */

static int read_memory(void *arg, void *dst, uintptr_t addr, size_t len)
{
    (void)arg;
    calls++;
    return memory_read(dst, addr, len);
}

static int variable(void *arg, unsigned number, bool set, int64_t *value)
{
    static int64_t values[4];

    (void)arg;
    if (number >= 4)
        return -ENOENT;
    *(set ? &values[number] : value) = *(set ? value : &values[number]);
    return 0;
}

static int collect(void *arg, uintptr_t addr, size_t len)
{
    (void)arg;
    MUST(len <= AGENT_TRACE_MAX);
    return addr & 1 ? -EFAULT : 0;
}

static int collect_var(void *arg, unsigned number)
{
    (void)arg;
    return number > 3 ? -ENOSPC : 0;
}

static int print(void *arg, const char *text, size_t len)
{
    (void)arg;
    MUST(len < AGENT_TEXT_MAX && strlen(text) == len);
    sink += len;
    return 0;
}

static bool is_told(const struct agent_problem *problem, size_t len)
{
    char text[200];

    return problem->why && problem->at <= len &&
           agent_problem_text(problem, text, sizeof(text)) > 0;
}

static void run(const uint8_t *code, size_t len, uint64_t seed)
{
    struct agent_problem problem = { 0 };
    struct pt_regs regs;
    struct agent_world world = { .regs = &regs,
                                 .ip = seed,
                                 .read = read_memory,
                                 .var = variable,
                                 .collect = collect,
                                 .collect_var = collect_var,
                                 .print = print };
    uint64_t value = 0;

    memcpy(&regs, memory + 512, sizeof(regs));
    calls = 0;
    if (agent_run(code, &world, &value, &problem))
        MUST(is_told(&problem, len) && problem.at < len &&
             problem.op == code[problem.at]);
    sink += value;
    MUST(calls <= steps * (AGENT_TRACE_MAX / 16 + 2));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agent_problem problem = { 0 };
    uint64_t seed = 1;
    uint8_t *code;
    unsigned use;
    int err;

    if (!size)
        return 0;
    for (size_t i = 0; i < size; i++)
        seed = seed * 31 + data[i];
    use = data[0];
    code = malloc(size); /* the sanitizer catches reads behind it */
    memcpy(code, data + 1, size - 1);
    code = realloc(code, size - 1 + (size == 1));
    err = agent_verify(code, size - 1, use, &problem);
    MUST(!err == is_right(code, size - 1, use));
    fill_memory(seed);
    if (err)
        MUST(err < 0 && is_told(&problem, size - 1));
    else
        run(code, size - 1, seed);
    free(code);
    return 0;
}
