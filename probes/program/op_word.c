/* op_word.c - operations that change a word of the program's memory: count, sum, min,
 * max.
 */
#include "probes/program/program_parts.h"

/* ---- count, sum ---- */

static void count_run(struct program_state *s, const struct kprobe_op *op)
{
    __atomic_add_fetch(program_word(s, op), 1, __ATOMIC_RELAXED);
}

static void count_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    (void)i;
    insn_build_inc(c->b, code_word(c, op));
}

const struct program_op program_op_count = {
    .name = "count",
    .run = count_run,
    .emit = count_emit,
    .clobbers = CLOBBERS_FLAGS,
    .counts_word = true,
    .sentence = "word @ counts",
};

static void sum_run(struct program_state *s, const struct kprobe_op *op)
{
    __atomic_add_fetch(program_word(s, op), program_operand(s, op), __ATOMIC_RELAXED);
}

static void sum_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    (void)i;
    if (op->source == KPROBE_IMM && code_is_short(op))
        insn_build_alu_imm(c->b, INSN_ALU_ADD, code_word(c, op), (int32_t)op->imm);
    else
        insn_build_alu(c->b, INSN_ALU_ADD, code_word(c, op), code_register(c, op));
}

const struct program_op program_op_sum = {
    .name = "sum",
    .sources = ANY_SOURCE,
    .run = sum_run,
    .emit = sum_emit,
    .clobbers = CLOBBERS_FLAGS,
    .wants_reg = true,
    .counts_word = true,
    .sentence = "word @ adds $",
};

/* ---- min, max ---- */

/* rax belongs to the exchange, so the operand has to be in another register. Of those
 * that are possible here, only the frame of a light handler saves any, and there one is
 * spare.
 */
#define EXTREME_SOURCE                                                                   \
    (ANY_SOURCE & ~(1u << KPROBE_IMM | 1u << KPROBE_REG_AX | 1u << KPROBE_REG_CX |       \
                    1u << KPROBE_REG_DX))

static bool is_below(uint64_t a, uint64_t b, bool is_signed)
{
    return is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static void extreme_run(struct program_state *s, const struct kprobe_op *op, bool least)
{
    uint64_t *word = program_word(s, op), value = program_operand(s, op);
    uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
    bool is_signed = op->sub & KPROBE_SIGNED;

    while (least ? is_below(value, old, is_signed) : is_below(old, value, is_signed))
        if (__atomic_compare_exchange_n(word, &old, value, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return;
}

/* The exchange fails if an interrupt has changed the word, or the thread has changed its
 * CPU and the word there is another: then it is compared again.
 */
static void extreme_emit(struct program_code *c, const struct kprobe_op *op,
                         enum insn_cc is_no_better)
{
    struct insn_place from = code_source(c, op);
    unsigned value = from.kind == INSN_PLACE_REG ? from.reg : CODE_SPARE;
    size_t top, done;

    if (from.kind != INSN_PLACE_REG)
        insn_build_get(c->b, CODE_SPARE, from);
    top = c->b->len;
    insn_build_get(c->b, CODE_AX, code_word(c, op));
    insn_build_alu(c->b, INSN_ALU_CMP, insn_reg_place(value), CODE_AX);
    done = insn_build_jcc(c->b, is_no_better);
    insn_build_exchange(c->b, code_word(c, op), value);
    insn_build_land_at(c->b, insn_build_jcc(c->b, INSN_CC_NE), top);
    insn_build_land(c->b, done);
}

static uint64_t min_begins(const struct kprobe_op *op)
{
    return op->sub & KPROBE_SIGNED ? INT64_MAX : UINT64_MAX;
}

static void min_run(struct program_state *s, const struct kprobe_op *op)
{
    extreme_run(s, op, true);
}

static void min_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    (void)i;
    extreme_emit(c, op, op->sub & KPROBE_SIGNED ? INSN_CC_GE : INSN_CC_AE);
}

const struct program_op program_op_min = {
    .name = "min",
    .sources = EXTREME_SOURCE,
    .run = min_run,
    .emit = min_emit,
    .clobbers = CLOBBERS_AX | CLOBBERS_FLAGS,
    .wants_reg = true,
    .counts_word = true,
    .begins = min_begins,
    .sentence = "word @ keeps the least of $",
};

static uint64_t max_begins(const struct kprobe_op *op)
{
    return op->sub & KPROBE_SIGNED ? (uint64_t)INT64_MIN : 0;
}

static void max_run(struct program_state *s, const struct kprobe_op *op)
{
    extreme_run(s, op, false);
}

static void max_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    (void)i;
    extreme_emit(c, op, op->sub & KPROBE_SIGNED ? INSN_CC_LE : INSN_CC_BE);
}

const struct program_op program_op_max = {
    .name = "max",
    .sources = EXTREME_SOURCE,
    .run = max_run,
    .emit = max_emit,
    .clobbers = CLOBBERS_AX | CLOBBERS_FLAGS,
    .wants_reg = true,
    .counts_word = true,
    .begins = max_begins,
    .sentence = "word @ keeps the greatest of $",
};
