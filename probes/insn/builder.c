/* builder.c - instructions with operands, one after the other. Pure; any context. */
#include "probes/insn/builder.h"

#include "probes/insn/encode.h"

#define REX_W 8u
#define GS_PREFIX 0x65
#define OPERAND_16 0x66
#define DISP_LEN 4

static void builder_byte(struct insn_builder *b, unsigned value)
{
    if (b->len == b->max)
        b->full = true;
    else
        b->out[b->len++] = (uint8_t)value;
}

static void builder_disp32(struct insn_builder *b, uint32_t value)
{
    for (unsigned i = 0; i < DISP_LEN; i++)
        builder_byte(b, value >> (8 * i) & 0xff);
}

void insn_build_bytes(struct insn_builder *b, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        builder_byte(b, bytes[i]);
}

/* builder_modrm - append ModRM, SIB and displacement for register field @field and operand
 * @p.
 */
static void builder_modrm(struct insn_builder *b, unsigned field, struct insn_place p)
{
    unsigned middle = (field & 7) << 3, reg = p.reg & 7;
    bool is_short = p.disp == (int8_t)p.disp;
    unsigned mod = is_short ? 0x40 : 0x80;

    switch (p.kind) {
    case INSN_PLACE_REG:
        builder_byte(b, 0xc0 | middle | reg);
        return;
    case INSN_PLACE_SP:
        builder_byte(b, mod | 0x04 | middle);
        builder_byte(b, 0x24);
        break;
    case INSN_PLACE_GS:
        builder_byte(b, 0x04 | middle);
        builder_byte(b, 0x25);
        is_short = false;
        break;
    case INSN_PLACE_GS_KEY:
        builder_byte(b, 0x04 | middle);
        builder_byte(b, 0xc5 | reg << 3);
        is_short = false;
        break;
    default: /* INSN_PLACE_AT */
        builder_byte(b, mod | middle | reg);
        if (reg == INSN_SP) /* r12, too */
            builder_byte(b, 0x24);
    }
    if (is_short)
        builder_byte(b, (uint8_t)p.disp);
    else
        builder_disp32(b, (uint32_t)p.disp);
}

/* builder_insn - append an instruction with ModRM. @rex: REX_W or 0; @always: a REX prefix
 * in any case, for the low bytes of rsi and rdi.
 */
static void builder_insn(struct insn_builder *b, unsigned rex, bool always,
                         unsigned opcode, unsigned field, struct insn_place p)
{
    bool is_key = p.kind == INSN_PLACE_GS_KEY;

    if (p.kind == INSN_PLACE_GS || is_key)
        builder_byte(b, GS_PREFIX);
    rex |= (field >> 3 & 1) << 2;
    if (is_key)
        rex |= (p.reg >> 3 & 1u) << 1;
    else if (p.kind == INSN_PLACE_REG || p.kind == INSN_PLACE_AT)
        rex |= p.reg >> 3 & 1u;
    if (rex || always)
        builder_byte(b, 0x40 | rex);
    if (opcode & INSN_BUILD_0F)
        builder_byte(b, 0x0f);
    builder_byte(b, opcode & 0xff);
    builder_modrm(b, field, p);
}

void insn_build_op(struct insn_builder *b, unsigned opcode, unsigned field,
                   struct insn_place p)
{
    builder_insn(b, REX_W, false, opcode, field, p);
}

void insn_build_put(struct insn_builder *b, struct insn_place to, unsigned reg,
                    unsigned size)
{
    if (size == 2)
        builder_byte(b, OPERAND_16);
    builder_insn(b, size == 8 ? REX_W : 0, size == 1, size == 1 ? 0x88 : 0x89, reg, to);
}

void insn_build_load(struct insn_builder *b, unsigned reg, struct insn_place from,
                     unsigned size, bool is_signed)
{
    if (size == 8)
        insn_build_op(b, 0x8b, reg, from);
    else if (size == 4 && is_signed)
        insn_build_op(b, 0x63, reg, from);
    else if (size == 4)
        builder_insn(b, 0, false, 0x8b, reg, from);
    else
        insn_build_op(b, INSN_BUILD_0F | (is_signed ? 0xbe : 0xb6) | (size == 2), reg,
                      from);
}

void insn_build_put_imm(struct insn_builder *b, struct insn_place to, int32_t value,
                        unsigned size)
{
    if (size == 2)
        builder_byte(b, OPERAND_16);
    builder_insn(b, size == 8 ? REX_W : 0, false, size == 1 ? 0xc6 : 0xc7, 0, to);
    for (unsigned i = 0; i < (size < 4 ? size : 4); i++)
        builder_byte(b, (uint32_t)value >> (8 * i) & 0xff);
}

void insn_build_call(struct insn_builder *b, uintptr_t target)
{
    uint8_t bytes[INSN_CALL32_LEN] = { 0 };

    if (insn_encode_call32(bytes, b->at + b->len, target))
        b->far = true;
    insn_build_bytes(b, bytes, sizeof(bytes));
}

void insn_build_imm(struct insn_builder *b, unsigned reg, uint64_t value)
{
    uint8_t bytes[INSN_MOV_IMM_MAX_LEN];

    insn_build_bytes(b, bytes, insn_encode_mov_imm(bytes, reg, value));
}

void insn_build_alu_imm(struct insn_builder *b, enum insn_alu op, struct insn_place left,
                        int32_t value)
{
    bool is_short = value == (int8_t)value;

    insn_build_op(b, is_short ? 0x83 : 0x81, op, left);
    if (is_short)
        builder_byte(b, (uint8_t)value);
    else
        builder_disp32(b, (uint32_t)value);
}

void insn_build_test_imm(struct insn_builder *b, struct insn_place left, int32_t value)
{
    insn_build_op(b, 0xf7, 0, left);
    builder_disp32(b, (uint32_t)value);
}

void insn_build_shift(struct insn_builder *b, enum insn_shift op, unsigned reg,
                      unsigned count)
{
    insn_build_op(b, 0xc1, op, insn_reg_place(reg));
    builder_byte(b, count);
}

void insn_build_push(struct insn_builder *b, unsigned reg)
{
    uint8_t bytes[2];

    insn_build_bytes(b, bytes, insn_encode_push(bytes, reg));
}

void insn_build_pop(struct insn_builder *b, unsigned reg)
{
    uint8_t bytes[2];

    insn_build_bytes(b, bytes, insn_encode_pop(bytes, reg));
}

size_t insn_build_jcc(struct insn_builder *b, enum insn_cc cond)
{
    builder_byte(b, 0x0f);
    builder_byte(b, 0x80u | cond);
    builder_disp32(b, 0);
    return b->len;
}

size_t insn_build_jmp(struct insn_builder *b)
{
    builder_byte(b, 0xe9);
    builder_disp32(b, 0);
    return b->len;
}

void insn_build_land_at(struct insn_builder *b, size_t jump, size_t target)
{
    uint32_t disp = (uint32_t)(target - jump);

    for (unsigned i = 0; i < DISP_LEN && !b->full; i++)
        b->out[jump - DISP_LEN + i] = (uint8_t)(disp >> (8 * i));
}

void insn_build_land(struct insn_builder *b, size_t jump)
{
    insn_build_land_at(b, jump, b->len);
}
