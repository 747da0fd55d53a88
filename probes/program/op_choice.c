/* op_choice.c - operations that skip others: if, unless, every. */
#include "probes/program/program_parts.h"

/* ---- if ---- */

static const char *if_check(struct program_facts *f, const struct kprobe_op *op)
{
    static const uint32_t conditions =
        1u << KPROBE_B | 1u << KPROBE_AE | 1u << KPROBE_E | 1u << KPROBE_NE |
        1u << KPROBE_BE | 1u << KPROBE_A | 1u << KPROBE_L | 1u << KPROBE_GE |
        1u << KPROBE_LE | 1u << KPROBE_G | 1u << KPROBE_ANY | 1u << KPROBE_NONE;

    (void)f;
    return op->sub < 32 && conditions >> op->sub & 1 ? NULL
                                                     : "there is no such condition";
}

static bool if_holds(uint64_t a, uint64_t b, unsigned condition)
{
    switch (condition) {
    case KPROBE_B:
        return a < b;
    case KPROBE_AE:
        return a >= b;
    case KPROBE_E:
        return a == b;
    case KPROBE_NE:
        return a != b;
    case KPROBE_BE:
        return a <= b;
    case KPROBE_A:
        return a > b;
    case KPROBE_L:
        return (int64_t)a < (int64_t)b;
    case KPROBE_GE:
        return (int64_t)a >= (int64_t)b;
    case KPROBE_LE:
        return (int64_t)a <= (int64_t)b;
    case KPROBE_G:
        return (int64_t)a > (int64_t)b;
    case KPROBE_ANY:
        return a & b;
    default: /* KPROBE_NONE */
        return !(a & b);
    }
}

static void if_run(struct program_state *s, const struct kprobe_op *op)
{
    if (!if_holds(program_operand(s, op), op->imm, op->sub))
        s->next += op->skip;
}

static void if_compare(struct program_code *c, const struct kprobe_op *op, bool bits)
{
    struct insn_place left = code_source(c, op);

    if (code_is_short(op) && bits) {
        insn_build_test_imm(c->b, left, (int32_t)op->imm);
    } else if (code_is_short(op)) {
        insn_build_alu_imm(c->b, INSN_ALU_CMP, left, (int32_t)op->imm);
    } else {
        insn_build_imm(c->b, CODE_AX, op->imm);
        if (bits)
            insn_build_test(c->b, left, CODE_AX);
        else
            insn_build_alu(c->b, INSN_ALU_CMP, left, CODE_AX);
    }
}

static void if_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    bool bits = op->sub >= KPROBE_ANY;
    enum insn_cc holds_if = op->sub == KPROBE_ANY    ? INSN_CC_NE
                            : op->sub == KPROBE_NONE ? INSN_CC_E
                                                     : (enum insn_cc)op->sub;

    if_compare(c, op, bits);
    code_skip(c, op, i, (enum insn_cc)(holds_if ^ 1));
}

const struct program_op program_op_if = {
    .name = "if",
    .sources = ANY_SOURCE & ~(1u << KPROBE_IMM),
    .check = if_check,
    .run = if_run,
    .emit = if_emit,
    .clobbers = CLOBBERS_FLAGS,
    .compares = true,
    .sentence = "go on if $?",
};

/* ---- unless ---- */

static const char *unless_check(struct program_facts *f, const struct kprobe_op *op)
{
    (void)f;
    return op->imm && code_is_short(op) ? NULL : "its byte is out of reach";
}

static void unless_run(struct program_state *s, const struct kprobe_op *op)
{
    if (__atomic_load_n((const uint8_t *)(uintptr_t)op->imm, __ATOMIC_RELAXED))
        s->next += op->skip;
}

/* cmp byte [disp32], 0 */
static void unless_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    static const uint8_t compare[] = { 0x80, 0x3c, 0x25 }, zero[] = { 0 };
    int32_t address = (int32_t)op->imm;

    insn_build_bytes(c->b, compare, sizeof(compare));
    insn_build_bytes(c->b, (const uint8_t *)&address, sizeof(address));
    insn_build_bytes(c->b, zero, sizeof(zero));
    code_skip(c, op, i, INSN_CC_NE);
}

const struct program_op program_op_unless = {
    .name = "unless",
    .check = unless_check,
    .run = unless_run,
    .emit = unless_emit,
    .clobbers = CLOBBERS_FLAGS,
    .sentence = "go on unless the byte at # is set",
};

/* ---- every ---- */

/* The word counts down from N - 1. The hit that makes it negative is the N-th: it adds N.
 * If an NMI hits between the two, or the thread changes its CPU, the word of a CPU may be
 * negative once more: so a hit comes earlier, and the one behind it later, but none is lost.
 */
static const char *every_check(struct program_facts *f, const struct kprobe_op *op)
{
    (void)f;
    return op->imm && op->imm <= INT32_MAX ? NULL : "it counts from 1 to 2147483647";
}

static uint64_t every_begins(const struct kprobe_op *op)
{
    return op->imm - 1;
}

static void every_run(struct program_state *s, const struct kprobe_op *op)
{
    uint64_t *word = program_word(s, op);

    if ((int64_t)__atomic_sub_fetch(word, 1, __ATOMIC_RELAXED) >= 0)
        s->next += op->skip;
    else
        __atomic_add_fetch(word, op->imm, __ATOMIC_RELAXED);
}

static void every_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    insn_build_dec(c->b, code_word(c, op));
    code_skip(c, op, i, INSN_CC_NS);
    insn_build_alu_imm(c->b, INSN_ALU_ADD, code_word(c, op), (int32_t)op->imm);
}

const struct program_op program_op_every = {
    .name = "every",
    .check = every_check,
    .run = every_run,
    .emit = every_emit,
    .clobbers = CLOBBERS_FLAGS,
    .counts_word = true,
    .begins = every_begins,
    .sentence = "go on at every hit number # of a CPU",
};
