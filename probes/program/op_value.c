/* op_value.c - operations on the accumulator: get, load, arithmetic. */
#include "kernel/base/bits.h"
#include "probes/program/platform_program.h"
#include "probes/program/program_parts.h"

#define PAGE_LEN 4096u

/* ---- end, get ---- */

static const char *end_check(struct program_facts *f, const struct kprobe_op *op)
{
    (void)op;
    f->ends = true;
    return NULL;
}

static void end_run(struct program_state *s, const struct kprobe_op *op)
{
    (void)op;
    s->next = KPROBE_OPS_MAX;
}

static void end_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    (void)op;
    if (i + 1u < c->program->count)
        code_jump_to(c, insn_build_jmp(c->b), c->program->count);
}

const struct program_op program_op_end = {
    .name = "end",
    .check = end_check,
    .run = end_run,
    .emit = end_emit,
    .sentence = "the program ends",
};

static void get_run(struct program_state *s, const struct kprobe_op *op)
{
    s->value = program_operand(s, op);
}

static void get_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    (void)i;
    code_get(c, CODE_VALUE, op);
}

const struct program_op program_op_get = {
    .name = "get",
    .sources = ~(1u << KPROBE_VALUE),
    .run = get_run,
    .emit = get_emit,
    .clobbers = CLOBBERS_VALUE,
    .sets = CLOBBERS_VALUE,
    .sentence = "take $",
};

/* ---- load ---- */

static unsigned size_of_load(const struct kprobe_op *op)
{
    return op->sub >> 4;
}

static const char *load_check(struct program_facts *f, const struct kprobe_op *op)
{
    unsigned size = size_of_load(op);

    if ((size != 1 && size != 2 && size != 4 && size != 8) || op->sub & 0x9)
        return "it loads 1, 2, 4 or 8 bytes";
    f->ends |= !(op->sub & KPROBE_OR_ZERO);
    return NULL;
}

static uint64_t load_extend(uint64_t value, unsigned size, bool is_signed)
{
    unsigned rest = 64 - 8 * size;

    if (is_signed)
        return (uint64_t)((int64_t)(value << rest) >> rest);
    return value << rest >> rest;
}

/* plat_load() reads eight bytes. It reads no byte of a page on which the field does not
 * lie: the field comes last in the word, unless it is among the first bytes of its page.
 */
static void load_run(struct program_state *s, const struct kprobe_op *op)
{
    unsigned size = size_of_load(op), before = 8 - size;
    uintptr_t at = s->value + (uint64_t)(int64_t)(int32_t)op->at;
    uint64_t word;

    if (at % PAGE_LEN < before)
        before = 0;
    if (plat_load(&word, at - before)) {
        __atomic_add_fetch(s->faults, 1, __ATOMIC_RELAXED);
        s->value = 0;
        s->next = op->sub & KPROBE_OR_ZERO ? s->next + op->skip : KPROBE_OPS_MAX;
        return;
    }
    s->value = load_extend(word >> 8 * before, size, op->sub & KPROBE_SIGNED);
}

static void load_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    insn_build_load(c->b, CODE_VALUE, insn_at_place(CODE_VALUE, (int32_t)op->at),
                    size_of_load(op), op->sub & KPROBE_SIGNED);
    c->loads[c->load_count].mark = code_may_fail(c);
    c->loads[c->load_count++].index = i;
}

const struct program_op program_op_load = {
    .name = "load",
    .check = load_check,
    .run = load_run,
    .emit = load_emit,
    .clobbers = CLOBBERS_VALUE,
    .loads = true,
    .sentence = "load from memory there",
};

/* ---- arithmetic ---- */

static void alu_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    static const uint8_t numbers[] = {
        [KPROBE_OP_ADD] = INSN_ALU_ADD, [KPROBE_OP_SUB] = INSN_ALU_SUB,
        [KPROBE_OP_AND] = INSN_ALU_AND, [KPROBE_OP_OR] = INSN_ALU_OR,
        [KPROBE_OP_XOR] = INSN_ALU_XOR,
    };
    enum insn_alu alu = numbers[op->code];

    (void)i;
    if (op->source == KPROBE_IMM && code_is_short(op))
        insn_build_alu_imm(c->b, alu, insn_reg_place(CODE_VALUE), (int32_t)op->imm);
    else
        insn_build_alu_to(c->b, alu, CODE_VALUE, code_source(c, op));
}

#define ARITHMETIC(op_name, operator, text)                                              \
    static void op_name##_run(struct program_state *s, const struct kprobe_op *op)       \
    {                                                                                    \
        s->value = s->value operator program_operand(s, op);                             \
    }                                                                                    \
                                                                                         \
    const struct program_op program_op_##op_name = {                                     \
        .name = #op_name,                                                                \
        .sources = ANY_SOURCE | 1u << KPROBE_ENTRY,                                      \
        .run = op_name##_run,                                                            \
        .emit = alu_emit,                                                                \
        .clobbers = CLOBBERS_VALUE | CLOBBERS_FLAGS,                                     \
        .sentence = text,                                                                \
    };

ARITHMETIC(add, +, "add $")
ARITHMETIC(sub, -, "subtract $")
ARITHMETIC(and, &, "keep the bits of $")
ARITHMETIC(or, |, "set the bits of $")
ARITHMETIC(xor, ^, "change the bits of $")

static const char *shift_check(struct program_facts *f, const struct kprobe_op *op)
{
    (void)f;
    return op->imm < 64 ? NULL : "it shifts by 0 to 63 bits";
}

static void shift_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    enum insn_shift shift = op->code == KPROBE_OP_SHL   ? INSN_SHIFT_LEFT
                            : op->code == KPROBE_OP_SHR ? INSN_SHIFT_RIGHT
                                                        : INSN_SHIFT_ARITHMETIC;

    (void)i;
    insn_build_shift(c->b, shift, CODE_VALUE, (unsigned)op->imm);
}

#define SHIFT(op_name, result, text)                                                     \
    static void op_name##_run(struct program_state *s, const struct kprobe_op *op)       \
    {                                                                                    \
        s->value = result;                                                               \
    }                                                                                    \
                                                                                         \
    const struct program_op program_op_##op_name = {                                     \
        .name = #op_name,                                                                \
        .check = shift_check,                                                            \
        .run = op_name##_run,                                                            \
        .emit = shift_emit,                                                              \
        .clobbers = CLOBBERS_VALUE | CLOBBERS_FLAGS,                                     \
        .sentence = text,                                                                \
    };

SHIFT(shl, s->value << op->imm, "shift left by # bits")
SHIFT(shr, s->value >> op->imm, "shift right by # bits")
SHIFT(sar, (uint64_t)((int64_t)s->value >> op->imm),
      "shift right by # bits, with the sign")

static const char *extend_check(struct program_facts *f, const struct kprobe_op *op)
{
    unsigned size = size_of_load(op);

    (void)f;
    if ((size != 1 && size != 2 && size != 4) || op->sub & 0xd)
        return "it extends 1, 2 or 4 bytes";
    return NULL;
}

static void extend_run(struct program_state *s, const struct kprobe_op *op)
{
    s->value = load_extend(s->value, size_of_load(op), op->sub & KPROBE_SIGNED);
}

static void extend_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    (void)i;
    insn_build_extend(c->b, CODE_VALUE, CODE_VALUE, size_of_load(op),
                      op->sub & KPROBE_SIGNED);
}

const struct program_op program_op_extend = {
    .name = "extend",
    .check = extend_check,
    .run = extend_run,
    .emit = extend_emit,
    .clobbers = CLOBBERS_VALUE,
    .sentence = "extend its low bytes",
};
