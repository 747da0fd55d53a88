/* op_by.c - the operation that sets the key by a table: by.
 *
 * The table is one for all CPUs, so that a thread that changes its CPU behind this operation
 * still counts for the right value. A value lies among the 16 places of the bucket that a
 * multiplication chooses. It is read first, and one exchange writes it where a place is
 * free: so a value that is known costs no locked instruction. A place never changes again.
 */
#include "probes/program/program_parts.h"

#define BUCKET_BITS 4
#define BUCKET (1u << BUCKET_BITS) /* places */
#define BITS_MIN 5
#define BITS_MAX 13
#define TABLE_ALIGN (BUCKET * sizeof(uint64_t))
#define MULTIPLIER UINT64_C(0x9e3779b97f4a7c15) /* 2^64 by the golden ratio */

static const char *by_check(struct program_facts *f, const struct kprobe_op *op)
{
    if (op->at < BITS_MIN || op->at > BITS_MAX)
        return "its table has 32 to 8192 places";
    if (!op->imm || op->imm % TABLE_ALIGN)
        return "its table does not begin at a multiple of 128";
    if (f->key_max < KPROBE_BY_FULL(op->at))
        f->key_max = KPROBE_BY_FULL(op->at);
    return NULL;
}

/* bucket_shift - the high bits of the product choose the bucket. */
static unsigned bucket_shift(const struct kprobe_op *op)
{
    return 64 + BUCKET_BITS - op->at;
}

static void by_run(struct program_state *s, const struct kprobe_op *op)
{
    uint64_t *table = (uint64_t *)(uintptr_t)op->imm, key, found;

    s->key = KPROBE_BY_ZERO(op->at);
    if (!s->value)
        return;
    key = (s->value * MULTIPLIER >> bucket_shift(op)) * BUCKET;
    for (unsigned i = 0; i < BUCKET; i++, key++) {
        found = __atomic_load_n(&table[key], __ATOMIC_RELAXED);
        if (!found && __atomic_compare_exchange_n(&table[key], &found, s->value, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            found = s->value;
        s->key = key;
        if (found == s->value)
            return;
    }
    s->key = KPROBE_BY_FULL(op->at);
}

/* rdx: where the CPU looks. */
static void by_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    static const uint8_t lock[] = { 0xf0 };
    struct insn_builder *b = c->b;
    struct insn_place key = insn_reg_place(CODE_KEY), rax = insn_reg_place(CODE_AX);
    struct insn_place place = insn_at_place(CODE_KEY, 0);
    size_t zero, top, found, taken, next, known, full;

    (void)i;
    insn_build_imm(b, CODE_KEY, KPROBE_BY_ZERO(op->at));
    insn_build_test(b, insn_reg_place(CODE_VALUE), CODE_VALUE);
    zero = insn_build_jcc(b, INSN_CC_E);
    insn_build_imm(b, CODE_AX, MULTIPLIER);
    insn_build_mul(b, CODE_VALUE);
    insn_build_shift(b, INSN_SHIFT_RIGHT, CODE_AX, bucket_shift(op));
    insn_build_shift(b, INSN_SHIFT_LEFT, CODE_AX, BUCKET_BITS + 3);
    insn_build_imm(b, CODE_KEY, op->imm);
    insn_build_alu(b, INSN_ALU_ADD, key, CODE_AX);
    top = b->len;
    insn_build_load(b, CODE_AX, place, 8, false);
    insn_build_alu(b, INSN_ALU_CMP, rax, CODE_VALUE);
    found = insn_build_jcc(b, INSN_CC_E);
    insn_build_test(b, rax, CODE_AX);
    taken = insn_build_jcc(b, INSN_CC_NE);
    insn_build_bytes(b, lock, sizeof(lock));
    insn_build_exchange(b, place, CODE_VALUE);
    insn_build_land_at(b, insn_build_jcc(b, INSN_CC_NE),
                       top); /* look what is there now */
    known = insn_build_jmp(b);
    insn_build_land(b, taken);
    insn_build_alu_imm(b, INSN_ALU_ADD, key, sizeof(uint64_t));
    insn_build_test_imm(b, key, TABLE_ALIGN - 1);
    next = insn_build_jcc(b, INSN_CC_NE);
    insn_build_land_at(b, next, top);
    insn_build_imm(b, CODE_KEY, KPROBE_BY_FULL(op->at));
    full = insn_build_jmp(b);
    insn_build_land(b, found);
    insn_build_land(b, known);
    insn_build_imm(b, CODE_AX, op->imm);
    insn_build_alu(b, INSN_ALU_SUB, key, CODE_AX);
    insn_build_shift(b, INSN_SHIFT_RIGHT, CODE_KEY, 3);
    insn_build_land(b, zero);
    insn_build_land(b, full);
}

const struct program_op program_op_by = {
    .name = "by",
    .sources = 1u << KPROBE_VALUE,
    .check = by_check,
    .run = by_run,
    .emit = by_emit,
    .clobbers = CLOBBERS_KEY | CLOBBERS_AX | CLOBBERS_FLAGS,
    .sets = CLOBBERS_KEY,
    .sentence = "the key is the place of the value in a table",
};
