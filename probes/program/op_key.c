/* op_key.c - operations that set the key: log2, linear, small. */
#include "probes/program/program_parts.h"

#define LOG2_MAX 64
#define KEY_SOURCE (ANY_SOURCE & ~(1u << KPROBE_IMM))

static void key_at_most(struct program_facts *f, uint64_t max)
{
    if (f->key_max < max)
        f->key_max = max;
}

/* ---- log2 ---- */

static const char *log2_check(struct program_facts *f, const struct kprobe_op *op)
{
    (void)op;
    key_at_most(f, LOG2_MAX);
    return NULL;
}

static void log2_run(struct program_state *s, const struct kprobe_op *op)
{
    uint64_t value = program_operand(s, op);

    if (op->sub & KPROBE_UP && value)
        value--;
    s->key = value ? 64u - (unsigned)__builtin_clzll(value) : 0;
}

static void log2_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    size_t jump;

    struct insn_place from = code_source(c, op);

    (void)i;
    if (op->sub & KPROBE_UP) {
        insn_build_get(c->b, CODE_KEY, from);
        from = insn_reg_place(CODE_KEY);
        insn_build_alu_imm(c->b, INSN_ALU_SUB, from, 1);
        insn_build_alu_imm(c->b, INSN_ALU_ADC, from, 0); /* 0 stays 0 */
    }
    insn_build_bsr(c->b, CODE_KEY, from);
    jump = insn_build_jcc(c->b, INSN_CC_NE);
    insn_build_imm(c->b, CODE_KEY, UINT64_MAX);
    insn_build_land(c->b, jump);
    insn_build_inc(c->b, insn_reg_place(CODE_KEY));
}

const struct program_op program_op_log2 = {
    .name = "log2",
    .sources = KEY_SOURCE,
    .check = log2_check,
    .run = log2_run,
    .emit = log2_emit,
    .clobbers = CLOBBERS_KEY | CLOBBERS_FLAGS,
    .sets = CLOBBERS_KEY,
    .sentence = "the key is the number of bits of $",
};

/* ---- linear ---- */

static uint64_t step_of(const struct kprobe_op *op)
{
    return op->imm & UINT32_MAX;
}

static uint64_t count_of(const struct kprobe_op *op)
{
    return op->imm >> 32;
}

/* The code divides by a multiplication with 2^64 / step, rounded up. The result is exact
 * as long as the dividend times the rounding error, which is less than step, is less than
 * 2^64.
 */
static const char *linear_check(struct program_facts *f, const struct kprobe_op *op)
{
    uint64_t step = step_of(op), range;

    if (!step || !count_of(op) || count_of(op) > KPROBE_PROGRAM_WORDS)
        return "it has no step, or not a possible number of steps";
    if (__builtin_mul_overflow(step * count_of(op), step, &range))
        return "its steps are too large";
    key_at_most(f, count_of(op) + 1);
    return NULL;
}

static void linear_run(struct program_state *s, const struct kprobe_op *op)
{
    int64_t value = (int64_t)program_operand(s, op), low = (int32_t)op->at;
    uint64_t over = (uint64_t)value - (uint64_t)low;

    if (value < low)
        s->key = 0;
    else if (over >= step_of(op) * count_of(op))
        s->key = count_of(op) + 1;
    else
        s->key = over / step_of(op) + 1;
}

static void linear_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    struct insn_builder *b = c->b;
    int32_t low = (int32_t)op->at;
    size_t below, above, first, second;

    (void)i;
    insn_build_get(b, CODE_AX, code_source(c, op));
    insn_build_alu_imm(b, INSN_ALU_CMP, insn_reg_place(CODE_AX), low);
    below = insn_build_jcc(b, INSN_CC_L);
    insn_build_alu_imm(b, INSN_ALU_SUB, insn_reg_place(CODE_AX), low);
    insn_build_imm(b, CODE_KEY, step_of(op) * count_of(op));
    insn_build_alu(b, INSN_ALU_CMP, insn_reg_place(CODE_AX), CODE_KEY);
    above = insn_build_jcc(b, INSN_CC_AE);
    if (step_of(op) == 1) {
        insn_build_get(b, CODE_KEY, insn_reg_place(CODE_AX));
    } else {
        insn_build_imm(b, CODE_KEY, UINT64_MAX / step_of(op) + 1);
        insn_build_mul(b, CODE_KEY);
    }
    insn_build_inc(b, insn_reg_place(CODE_KEY));
    first = insn_build_jmp(b);
    insn_build_land(b, below);
    insn_build_imm(b, CODE_KEY, 0);
    second = insn_build_jmp(b);
    insn_build_land(b, above);
    insn_build_imm(b, CODE_KEY, count_of(op) + 1);
    insn_build_land(b, first);
    insn_build_land(b, second);
}

const struct program_op program_op_linear = {
    .name = "linear",
    .sources = KEY_SOURCE,
    .check = linear_check,
    .run = linear_run,
    .emit = linear_emit,
    .clobbers = CLOBBERS_KEY | CLOBBERS_AX | CLOBBERS_FLAGS,
    .sets = CLOBBERS_KEY,
    .sentence = "the key is the step of $",
};

/* ---- small ---- */

static const char *key_small_check(struct program_facts *f, const struct kprobe_op *op)
{
    if (op->imm >= KPROBE_PROGRAM_WORDS)
        return "its key is too large for the program's memory";
    key_at_most(f, op->imm);
    return NULL;
}

static void small_run(struct program_state *s, const struct kprobe_op *op)
{
    uint64_t value = program_operand(s, op);

    s->key = value < op->imm ? value : op->imm;
}

static void small_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    size_t jump;

    (void)i;
    insn_build_get(c->b, CODE_KEY, code_source(c, op));
    insn_build_alu_imm(c->b, INSN_ALU_CMP, insn_reg_place(CODE_KEY), (int32_t)op->imm);
    jump = insn_build_jcc(c->b, INSN_CC_BE);
    insn_build_imm(c->b, CODE_KEY, op->imm);
    insn_build_land(c->b, jump);
}

const struct program_op program_op_small = {
    .name = "small",
    .sources = KEY_SOURCE,
    .check = key_small_check,
    .run = small_run,
    .emit = small_emit,
    .clobbers = CLOBBERS_KEY | CLOBBERS_FLAGS,
    .sets = CLOBBERS_KEY,
    .sentence = "the key is $, or # if it is more",
};
