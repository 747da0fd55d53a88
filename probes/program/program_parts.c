/* program_parts.c - what operations use: their operands, in C and as code. Pure; any context.
 */
#include "probes/program/program_parts.h"

#include "kernel/base/registers.h"
#include "probes/program/program_code.h"

/* ---- in C ---- */

uint64_t program_operand(const struct program_state *s, const struct kprobe_op *op)
{
#define WORD(name, field, number, gdb, dwarf)                                            \
    [number] = offsetof(struct pt_regs, field) / sizeof(uint64_t),
    static const uint8_t words[REGISTERS_COUNT] = { REGISTERS(WORD) };

    if (op->source < REGISTERS_COUNT)
        return ((const uint64_t *)(const void *)s->hit->regs)[words[op->source]];
    return program_source_of(op)->take(s, op);
}

uint64_t *program_word(const struct program_state *s, const struct kprobe_op *op)
{
    return &s->words[op->at + (op->sub & KPROBE_KEYED ? s->key : 0)];
}

/* ---- as code ---- */

void code_get(struct program_code *c, unsigned reg, const struct kprobe_op *op)
{
    if (op->source == KPROBE_REG_SP)
        insn_build_address(c->b, reg, c->frame + c->returned);
    else if (op->source > KPROBE_VALUE)
        program_source_of(op)->emit(c, reg, op);
    else
        insn_build_get(c->b, reg, code_source(c, op));
}

struct insn_place code_source(struct program_code *c, const struct kprobe_op *op)
{
    if (op->source == KPROBE_VALUE)
        return insn_reg_place(CODE_VALUE);
    if (op->source >= REGISTERS_COUNT || op->source == KPROBE_REG_SP) {
        code_get(c, CODE_AX, op);
        return insn_reg_place(CODE_AX);
    }
    if (c->saved[op->source] >= 0)
        return insn_sp_place(c->saved[op->source]);
    return insn_reg_place(op->source);
}

unsigned code_register(struct program_code *c, const struct kprobe_op *op)
{
    struct insn_place from = code_source(c, op);

    if (from.kind == INSN_PLACE_REG)
        return from.reg;
    insn_build_get(c->b, CODE_AX, from);
    return CODE_AX;
}

struct insn_place code_word(const struct program_code *c, const struct kprobe_op *op)
{
    int32_t disp = c->words + 8 * (int32_t)op->at;

    return op->sub & KPROBE_KEYED ? insn_key_place(disp, CODE_KEY) : insn_gs_place(disp);
}

void code_jump_to(struct program_code *c, size_t jump, unsigned target)
{
    c->jumps[c->jump_count].jump = jump;
    c->jumps[c->jump_count++].target = target;
}

void code_skip(struct program_code *c, const struct kprobe_op *op, unsigned i,
               enum insn_cc cond)
{
    code_jump_to(c, insn_build_jcc(c->b, cond), i + 1 + op->skip);
}

size_t code_may_fail(struct program_code *c)
{
    static const uint8_t nop[8] = { PROGRAM_MARK & 0xff, PROGRAM_MARK >> 8 & 0xff,
                                    PROGRAM_MARK >> 16 & 0xff, PROGRAM_MARK >> 24 };

    insn_build_bytes(c->b, nop, sizeof(nop));
    return c->b->len;
}
