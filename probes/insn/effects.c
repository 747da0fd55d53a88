/* effects.c - registers and flags read, written and killed. Pure; any context.
 *
 * The tables give the general rule: the form names the operands, the op the implied
 * registers. Code handles the effects that depend on the values of the operands (a zeroing
 * idiom, a shift count) or on rep.
 */
#include "probes/insn/effects.h"

#include "probes/insn/opcode_map.h"
#include "probes/insn/operand.h"

#define BIT_OF(reg) (1u << (reg))

/* An operand. @reg: INSN_REG_NONE if it is memory, or if there is none. */
struct operand {
    uint8_t reg;
    uint8_t width; /* bytes */
};

static uint8_t place_reg(const struct insn *insn, unsigned place)
{
    switch (place) {
    case P_E:
        return insn->mod == 3 ? insn->rm : INSN_REG_NONE;
    case P_G:
        return insn->reg;
    case P_Z:
        return insn->rm;
    case P_A:
        return INSN_AX;
    case P_CL:
        return INSN_CX;
    default:
        return INSN_REG_NONE;
    }
}

/* Without REX the byte registers 4..7 are ah ch dh bh: parts of 0..3. */
static struct operand operand_of(const struct insn *insn, unsigned place, unsigned width)
{
    struct operand o = { place_reg(insn, place), insn->opsize };

    if (width == W_B)
        o.width = 1;
    if (o.reg == INSN_REG_NONE || place == P_A || place == P_CL)
        return o;
    if (width == W_B && !insn->rex && o.reg >= 4)
        o.reg &= 3;
    return o;
}

static void operand_read(struct insn_effects *out, struct operand o)
{
    if (o.reg != INSN_REG_NONE)
        out->regs_read |= BIT_OF(o.reg);
}

/* A write of 4 bytes clears the upper half, so it overwrites the whole register. A write of
 * 1 or 2 bytes keeps the other bytes, so their old value counts as read.
 */
static void operand_write(struct insn_effects *out, struct operand o)
{
    if (o.reg == INSN_REG_NONE)
        return;
    out->regs_written |= BIT_OF(o.reg);
    if (o.width >= 4)
        out->regs_killed |= BIT_OF(o.reg);
    else
        out->regs_read |= BIT_OF(o.reg);
}

static void address_read(const struct insn *insn, struct insn_effects *out)
{
    if (insn->base != INSN_REG_NONE)
        out->regs_read |= BIT_OF(insn->base);
    if (insn->index != INSN_REG_NONE)
        out->regs_read |= BIT_OF(insn->index);
}

/* Add all registers that modrm or vvvv could name, and all registers that any vector
 * instruction uses without naming them.
 */
static void vector_add(const struct insn *insn, struct insn_effects *out)
{
    uint32_t named = BIT_OF(insn->reg) | BIT_OF(insn->vvvv);

    if (!insn->has_mem)
        named |= BIT_OF(insn->rm);
    out->regs_read |=
        named | BIT_OF(INSN_AX) | BIT_OF(INSN_CX) | BIT_OF(INSN_DX) | BIT_OF(INSN_DI);
    out->regs_written |= named | BIT_OF(INSN_CX);
}

static void operands_add(const struct insn *insn, uint32_t use, struct insn_effects *out)
{
    const struct opcode_form_facts *form = opcode_form_facts(insn->form);
    struct operand first = operand_of(insn, form->place1, form->width1);
    struct operand second = operand_of(insn, form->place2, form->width2);
    bool zeroed = use & U_ZERO && insn->mod == 3 && first.width >= 4 &&
                  form->place2 != P_NO && first.reg == second.reg;

    if (use & U_R1 && !zeroed)
        operand_read(out, first);
    if (use & U_R2 && !zeroed)
        operand_read(out, second);
    if (use & U_W1)
        operand_write(out, first);
    if (use & U_W2)
        operand_write(out, second);
}

static void implied_add(const struct insn *insn, const struct opcode_op_facts *op,
                        struct insn_effects *out)
{
    out->regs_read |= op->regs_read;
    out->regs_written |= op->regs_written;
    if (op->use & U_WHOLE && insn->opsize >= 4)
        out->regs_killed |= op->regs_written;
    if (op->use & U_REP && insn->rep) {
        out->regs_read |= BIT_OF(INSN_CX);
        out->regs_written |= BIT_OF(INSN_CX);
    }
    if (insn->kind == INSN_LOOP && insn->loop != INSN_LOOP_ALWAYS)
        out->flags_read |= FLAGS_ZF;
}

/* The count of a shift; also 0 if the count is in CL, and so not known here. */
static unsigned shift_count(const struct insn *insn)
{
    const struct opcode_form_facts *form = opcode_form_facts(insn->form);
    unsigned mask = insn->opsize == 8 ? 63 : 31;

    if (form->place2 == P_CL)
        return 0;
    if (form->imm == I_NO)
        return 1;
    return (unsigned)insn->imm & mask;
}

static bool flags_are_certain(const struct insn *insn, uint32_t use)
{
    if (use & U_MAYBE || (use & U_REP && insn->rep))
        return false;
    if (use & U_ROTC)
        return shift_count(insn) == 1;
    if (use & U_COUNT)
        return shift_count(insn) != 0;
    return true;
}

static void flags_add(const struct insn *insn, const struct opcode_op_facts *op,
                      struct insn_effects *out)
{
    out->flags_read |= op->flags_read;
    out->flags_written |= op->flags_written;
    if (op->use & U_COND)
        out->flags_read |= (uint32_t)insn_cond_flags(insn->cond);
    if (flags_are_certain(insn, op->use))
        out->flags_killed |= op->flags_written;
}

void insn_effects(const struct insn *insn, struct insn_effects *out)
{
    const struct opcode_op_facts *op = opcode_op_facts(insn->op);

    *out = (struct insn_effects){ 0 };
    if (op->use & U_ANY) {
        out->regs_read = out->regs_written = INSN_REGS_ALL;
        out->flags_read = out->flags_written = INSN_FLAGS_ALL;
        return;
    }
    if (insn->kind != INSN_NOP)
        address_read(insn, out);
    if (op->use & U_VECTOR)
        vector_add(insn, out);
    operands_add(insn, op->use, out);
    implied_add(insn, op, out);
    flags_add(insn, op, out);
    out->regs_written |= out->regs_killed;
    out->regs_killed &= ~out->regs_read;
    out->flags_killed &= ~out->flags_read;
}
