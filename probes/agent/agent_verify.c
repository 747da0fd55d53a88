/* agent_verify.c - check once, before a program is used, that it may be run. Pure; any
 * context.
 *
 * One pass from the first byte to the last is enough, because jumps lead forward only.
 * For each jump, the pass notes at the jump's target how deep the stack is there. So when
 * the pass comes to an instruction, it knows all ways to that instruction: the way from
 * the instruction in front of it, and the ways from jumps. A note at a byte in the middle
 * of an instruction means that a jump leads there, and the program is refused.
 */
#include "probes/agent/agent_op.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"

#include <string.h>

#define NO_WAY 0xff /* in place of a depth: no jump leads here */

struct verify {
    const uint8_t *code;
    size_t len, at;
    unsigned use;
    const struct agent_op *op;
    unsigned depth;                /* words on the stack before the instruction runs */
    uint8_t noted[AGENT_CODE_MAX]; /* depth of the stack after a jump to this offset */
    struct agent_problem *problem;
};

static NOINLINE int refuse_program(const struct verify *v, int err, const char *why)
{
    if (v->problem)
        *v->problem = (struct agent_problem){ .why = why,
                                              .at = (uint16_t)v->at,
                                              .op = v->at < v->len ? v->code[v->at] : 0 };
    return err;
}

static size_t length_of(const struct verify *v)
{
    const uint8_t *insn = v->code + v->at;
    size_t len = 1u + v->op->operands;

    if (v->op->shape == AGENT_FORMAT && v->len - v->at >= len)
        len += agent_number(insn + 2, 2);
    return len;
}

static int check_shape(struct verify *v, size_t len)
{
    const uint8_t *insn = v->code + v->at;

    if (v->op->shape == AGENT_NONE)
        return refuse_program(v, -EINVAL, "there is no such opcode");
    if (v->op->shape == AGENT_FLOAT)
        return refuse_program(v, -EOPNOTSUPP, "the kernel has no floating point");
    if (v->op->use & ~v->use)
        return refuse_program(v, -EOPNOTSUPP, "it is not allowed here");
    if (len > v->len - v->at)
        return refuse_program(v, -EINVAL, "the program ends within it");
    for (size_t i = 1; i < len; i++)
        if (v->noted[v->at + i] != NO_WAY)
            return refuse_program(v, -EINVAL, "a jump leads into the middle of it");
    if (v->op->shape == AGENT_WIDTH && (insn[1] < 1 || insn[1] > 64))
        return refuse_program(v, -EINVAL, "a width is 1 to 64 bits");
    if (v->op->shape == AGENT_REGISTER && agent_number(insn + 1, 2) >= AGENT_REGS)
        return refuse_program(v, -EINVAL, "there is no such register");
    if (v->op->shape == AGENT_PICK && insn[1] >= v->depth)
        return refuse_program(v, -EINVAL, "the stack is not that deep");
    return 0;
}

/* words_popped - how many words the instruction pops. printf pops the words to print, and
 * two more on top of them: gdb's function and channel.
 */
static unsigned words_popped(const struct verify *v)
{
    return v->op->shape == AGENT_FORMAT ? v->code[v->at + 1] + 2u : v->op->pops;
}

static int check_depth(struct verify *v)
{
    unsigned pops = words_popped(v);

    if (pops > v->depth)
        return refuse_program(v, -EINVAL, "the stack is empty");
    if (v->depth - pops + v->op->pushes > AGENT_STACK_MAX)
        return refuse_program(v, -EINVAL, "the stack is full");
    if (v->op->shape == AGENT_END && v->use & AGENT_VALUE && !v->depth)
        return refuse_program(v, -EINVAL, "no value is left");
    v->depth = v->depth - pops + v->op->pushes;
    return 0;
}

static int check_format(const struct verify *v, size_t len)
{
    const uint8_t *insn = v->code + v->at;
    const char *why = agent_format_check((const char *)insn + 4, len - 4, insn[1]);

    return why ? refuse_program(v, -EINVAL, why) : 0;
}

/* note_target - note the depth of the stack, @v->depth, at the target of a jump.
 * @len: of the jump, in bytes
 */
static int note_target(struct verify *v, size_t len)
{
    size_t target = agent_number(v->code + v->at + 1, 2);

    if (target < v->at + len)
        return refuse_program(v, -EINVAL, "it does not jump forward");
    if (target >= v->len)
        return refuse_program(v, -EINVAL, "it jumps out of the program");
    if (v->noted[target] != NO_WAY && v->noted[target] != v->depth)
        return refuse_program(v, -EINVAL,
                              "the stack is deeper by one way than by another");
    v->noted[target] = (uint8_t)v->depth;
    return 0;
}

/* enter_insn - check that a way leads to the next instruction, and that the stack has the
 * same depth on all ways. @falls: the instruction in front of it is such a way.
 */
static int enter_insn(struct verify *v, bool falls)
{
    uint8_t noted = v->noted[v->at];

    if (!falls && noted == NO_WAY)
        return refuse_program(v, -EINVAL, "nothing leads to it");
    if (falls && noted != NO_WAY && noted != v->depth)
        return refuse_program(v, -EINVAL,
                              "the stack is deeper by one way than by another");
    if (!falls)
        v->depth = noted;
    return 0;
}

/* check_insn - check the instruction at @v->at.
 * @len:   receives its length in bytes
 * @falls: can the program come from the instruction in front of this one? Receives
 *         whether it can go on from this one to the next
 */
static int check_insn(struct verify *v, size_t *len, bool *falls)
{
    int err = enter_insn(v, *falls);

    if (err)
        return err;
    v->op = agent_op_get(v->code[v->at]);
    *len = length_of(v);
    err = check_shape(v, *len);
    if (!err)
        err = check_depth(v);
    if (!err && v->op->shape == AGENT_FORMAT)
        err = check_format(v, *len);
    if (!err && (v->op->shape == AGENT_JUMP || v->op->shape == AGENT_BRANCH))
        err = note_target(v, *len);
    *falls = v->op->shape != AGENT_JUMP && v->op->shape != AGENT_END;
    return err;
}

int agent_verify(const uint8_t *code, size_t len, unsigned use,
                 struct agent_problem *problem)
{
    struct verify v = { .code = code, .len = len, .use = use, .problem = problem };
    bool falls = true;
    size_t insn;
    int err;

    if (len > AGENT_CODE_MAX)
        return refuse_program(&v, -E2BIG, "it is longer than 1024 bytes");
    memset(v.noted, NO_WAY, sizeof(v.noted));
    for (; v.at < len; v.at += insn) {
        err = check_insn(&v, &insn, &falls);
        if (err)
            return err;
    }
    return falls ? refuse_program(&v, -EINVAL, "it has no end") : 0;
}
