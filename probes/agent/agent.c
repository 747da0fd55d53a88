/* agent.c - interpret agent expressions. The interpreter runs in hits, so it takes no
 * lock, allocates nothing, and has no unbounded loop.
 *
 * agent_verify() has checked the depth of the stack, the targets of jumps and the
 * operands, so the interpreter does not check them.
 */
#include "probes/agent/agent_op.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/base/registers.h"

#include <string.h>

#define NZ_PART 16 /* tracenz reads a string in pieces of this many bytes, aligned */

struct agent_run {
    const struct agent_world *world;
    const uint8_t *at; /* the instruction that is executed */
    uint64_t *top;     /* the word on top; if the stack is empty, stack[0] */
    uint64_t stack[AGENT_STACK_MAX + 1]; /* the first word is in stack[1] */
    const char *why;                     /* why the program has failed */
    uintptr_t addr;                      /* the memory that could not be read; or 0 */
};

uint64_t agent_register(const struct agent_world *world, unsigned number)
{
#define AT(field) offsetof(struct pt_regs, field)
#define BY_GDB(name, field, number, gdb, dwarf) [gdb] = AT(field),
    static const uint8_t offsets[AGENT_REGS] = {
        [AGENT_REG_IP] = AT(ip), AT(flags), AT(cs), AT(ss), REGISTERS(BY_GDB)
    };
    uint64_t word;

    if (number == AGENT_REG_IP)
        return world->ip;
    __builtin_memcpy(&word, (const uint8_t *)world->regs + offsets[number], sizeof(word));
    return word;
}

/* ---- instructions that may fail ---- */

static int fails(struct agent_run *run, int err, const char *why)
{
    run->why = why;
    return err;
}

static int unreadable(struct agent_run *run, uintptr_t addr)
{
    run->addr = addr;
    return fails(run, -EFAULT, "memory cannot be read");
}

static int reference(struct agent_run *run, size_t bytes)
{
    uintptr_t addr = *run->top;

    *run->top = 0;
    if (run->world->read(run->world->arg, run->top, addr, bytes))
        return unreadable(run, addr);
    return 0;
}

/* divide - pop the divisor, and replace the word below it by the quotient or the
 * remainder.
 */
static int divide(struct agent_run *run, uint8_t op)
{
    uint64_t by = *run->top--, of = *run->top;
    bool is_signed = op == OP_DIV_SIGNED || op == OP_REM_SIGNED;

    if (!by)
        return fails(run, -EDOM, "division by zero");
    if (is_signed && by == UINT64_MAX && of == UINT64_C(1) << 63)
        return fails(run, -EDOM, "the quotient is too large");
    switch (op) {
    case OP_DIV_SIGNED:
        *run->top = (uint64_t)((int64_t)of / (int64_t)by);
        break;
    case OP_DIV_UNSIGNED:
        *run->top = of / by;
        break;
    case OP_REM_SIGNED:
        *run->top = (uint64_t)((int64_t)of % (int64_t)by);
        break;
    default:
        *run->top = of % by;
    }
    return 0;
}

static int agent_variable(struct agent_run *run, bool set)
{
    unsigned number = (unsigned)agent_number(run->at + 1, 2);
    int64_t value = set ? (int64_t)*run->top : 0;
    int err = run->world->var(run->world->arg, number, set, &value);

    if (err)
        return fails(run, err, "there is no such variable");
    if (!set)
        *++run->top = (uint64_t)value;
    return 0;
}

/* ---- output ---- */

static int collect_bytes(struct agent_run *run, uintptr_t addr, uint64_t len)
{
    int err;

    if (len > AGENT_TRACE_MAX)
        return fails(run, -E2BIG, "it is more than 65535 bytes");
    err = run->world->collect(run->world->arg, addr, len);
    if (err == -EFAULT)
        return unreadable(run, addr);
    return err ? fails(run, err, "there is no room for it in the frame") : 0;
}

/* collect_text - collect the string at @addr: up to its NUL, which is included, but at
 * most @max bytes.
 */
static int collect_text(struct agent_run *run, uintptr_t addr, uint64_t max)
{
    char part[NZ_PART];
    size_t len = 0;

    if (max > AGENT_TRACE_MAX)
        max = AGENT_TRACE_MAX;
    while (len < max) {
        size_t take = NZ_PART - (addr + len) % NZ_PART, used;

        if (take > max - len)
            take = max - len;
        if (run->world->read(run->world->arg, part, addr + len, take))
            return unreadable(run, addr + len);
        used = strnlen(part, take);
        len += used;
        if (used < take) {
            len++;
            break;
        }
    }
    return collect_bytes(run, addr, len);
}

static int collect_agent_variable(struct agent_run *run)
{
    int err =
        run->world->collect_var(run->world->arg, (unsigned)agent_number(run->at + 1, 2));

    return err ? fails(run, err, "the variable cannot be collected") : 0;
}

/* print_words - carry out OP_PRINTF. The top two words of the stack are gdb's function
 * and channel, which are not used here. Below them are the words to print, the first one
 * uppermost. NOINLINE keeps text[] out of the stack frames of the callers.
 */
static NOINLINE int print_words(struct agent_run *run)
{
    char text[AGENT_TEXT_MAX];
    uint64_t word[AGENT_STACK_MAX];
    unsigned count = run->at[1];
    size_t len;
    int err;

    run->top -= 2;
    for (unsigned i = 0; i < count; i++)
        word[i] = *run->top--;
    len = agent_format((const char *)run->at + 4, word, run->world, text, sizeof(text));
    err = run->world->print(run->world->arg, text, len);
    return err ? fails(run, err, "it cannot be printed") : 0;
}

/* ---- instructions that cannot fail ---- */

/* two_to_one - the result of @op for the operands @a and @b. In every call @op is a
 * constant, so the compiler leaves only one case of the switch there.
 */
static ALWAYS_INLINE uint64_t two_to_one(uint8_t op, uint64_t a, uint64_t b)
{
    switch (op) {
    case OP_ADD:
        return a + b;
    case OP_SUB:
        return a - b;
    case OP_MUL:
        return a * b;
    case OP_LSH:
        return b < 64 ? a << b : 0;
    case OP_RSH_SIGNED:
        return (uint64_t)((int64_t)a >> (b < 64 ? b : 63));
    case OP_RSH_UNSIGNED:
        return b < 64 ? a >> b : 0;
    case OP_BIT_AND:
        return a & b;
    case OP_BIT_OR:
        return a | b;
    case OP_BIT_XOR:
        return a ^ b;
    case OP_EQUAL:
        return a == b;
    case OP_LESS_SIGNED:
        return (int64_t)a < (int64_t)b;
    default: /* OP_LESS_UNSIGNED */
        return a < b;
    }
}

static uint64_t extend(uint64_t word, unsigned bits, bool is_signed)
{
    unsigned unused = 64 - bits;

    return is_signed ? (uint64_t)((int64_t)(word << unused) >> unused)
                     : word << unused >> unused;
}

static void rotate(uint64_t *top)
{
    uint64_t last = top[0];

    top[0] = top[-1];
    top[-1] = top[-2];
    top[-2] = last;
}

static void swap_words(uint64_t *top)
{
    uint64_t last = top[0];

    top[0] = top[-1];
    top[-1] = last;
}

/* ---- one instruction ---- */

/* execute_op - execute an instruction that may fail. NOINLINE: otherwise this function's
 * variables would take registers from the loop of agent_run().
 */
static NOINLINE int execute_op(struct agent_run *run, uint8_t op)
{
    const uint8_t *operand = run->at + 1;

    switch (op) {
    case OP_REF8:
    case OP_REF16:
    case OP_REF32:
    case OP_REF64:
        return reference(run, 1u << (op - OP_REF8));
    case OP_GETV:
    case OP_SETV:
        return agent_variable(run, op == OP_SETV);
    case OP_TRACE:
        run->top -= 2;
        return collect_bytes(run, run->top[1], run->top[2]);
    case OP_TRACENZ:
        run->top -= 2;
        return collect_text(run, run->top[1], run->top[2]);
    case OP_TRACE_QUICK:
        return collect_bytes(run, *run->top, operand[0]);
    case OP_TRACE16:
        return collect_bytes(run, *run->top, agent_number(operand, 2));
    case OP_TRACEV:
        return collect_agent_variable(run);
    case OP_PRINTF:
        return print_words(run);
    default:
        return divide(run, op);
    }
}

/* next_insn - the instruction behind the one at @at. */
static const uint8_t *next_insn(const uint8_t *at)
{
    size_t len = 1u + agent_op_get(*at)->operands;

    return at + len + (*at == OP_PRINTF ? agent_number(at + 2, 2) : 0);
}

static int fails_at(const struct agent_run *run, const uint8_t *code, int err,
                    struct agent_problem *problem)
{
    if (problem)
        *problem = (struct agent_problem){ .why = run->why,
                                           .at = (uint16_t)(run->at - code),
                                           .op = *run->at,
                                           .addr = run->addr };
    return err;
}

/* agent_run() itself executes the instructions that cannot fail, with @at and @top in
 * registers. Conditions consist mostly of these. At most hits of a breakpoint the
 * condition is false, so the speed of these instructions decides what the breakpoint
 * costs.
 */
#define TWO_TO_ONE(op)                                                                   \
    case op:                                                                             \
        top--;                                                                           \
        *top = two_to_one(op, top[0], top[1]);                                           \
        at++;                                                                            \
        continue
#define CONSTANT(op, bytes)                                                              \
    case op:                                                                             \
        *++top = agent_number(at + 1, bytes);                                            \
        at += 1 + (bytes);                                                               \
        continue

int agent_run(const uint8_t *code, const struct agent_world *world, uint64_t *value,
              struct agent_problem *problem)
{
    struct agent_run run;
    const uint8_t *at = code;
    uint64_t *top = run.stack;
    int err;

    run.world = world;
    run.addr = 0;
    *top = 0;
    for (;;) {
        switch (*at) {
            TWO_TO_ONE(OP_ADD);
            TWO_TO_ONE(OP_SUB);
            TWO_TO_ONE(OP_MUL);
            TWO_TO_ONE(OP_LSH);
            TWO_TO_ONE(OP_RSH_SIGNED);
            TWO_TO_ONE(OP_RSH_UNSIGNED);
            TWO_TO_ONE(OP_BIT_AND);
            TWO_TO_ONE(OP_BIT_OR);
            TWO_TO_ONE(OP_BIT_XOR);
            TWO_TO_ONE(OP_EQUAL);
            TWO_TO_ONE(OP_LESS_SIGNED);
            TWO_TO_ONE(OP_LESS_UNSIGNED);
            CONSTANT(OP_CONST8, 1);
            CONSTANT(OP_CONST16, 2);
            CONSTANT(OP_CONST32, 4);
            CONSTANT(OP_CONST64, 8);
        case OP_REG:
            *++top = agent_register(world, (unsigned)agent_number(at + 1, 2));
            at += 3;
            continue;
        case OP_LOG_NOT:
            *top = !*top;
            at++;
            continue;
        case OP_BIT_NOT:
            *top = ~*top;
            at++;
            continue;
        case OP_EXT:
        case OP_ZERO_EXT:
            *top = extend(*top, at[1], *at == OP_EXT);
            at += 2;
            continue;
        case OP_DUP:
            top++;
            top[0] = top[-1];
            at++;
            continue;
        case OP_PICK:
            top++;
            top[0] = top[-1 - at[1]];
            at += 2;
            continue;
        case OP_POP:
            top--;
            at++;
            continue;
        case OP_SWAP:
            swap_words(top);
            at++;
            continue;
        case OP_ROT:
            rotate(top);
            at++;
            continue;
        case OP_IF_GOTO:
            at = *top-- ? code + agent_number(at + 1, 2) : at + 3;
            continue;
        case OP_GOTO:
            at = code + agent_number(at + 1, 2);
            continue;
        case OP_END:
            if (value)
                *value = *top;
            return 0;
        default:
            run.at = at;
            run.top = top;
            err = execute_op(&run, *at);
            if (err)
                return fails_at(&run, code, err, problem);
            top = run.top;
            at = next_insn(at);
        }
    }
}
