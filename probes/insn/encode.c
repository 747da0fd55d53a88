/* encode.c - the few instructions that the engine writes itself. Pure; any context. */
#include "probes/insn/encode.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"

#define REX 0x40
#define REX_W 0x48
#define REX_B 0x41

/* Segment overrides, which have no effect on a near jump. */
#define SEGS 6u
static const uint8_t segs[SEGS] = { 0x2e, 0x26, 0x36, 0x3e, 0x64, 0x65 };

static void number_put(uint8_t *out, uint64_t n, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        out[i] = (uint8_t)(n >> 8 * i);
        barrier(); /* else the compiler makes the loop a call of memcpy() or memset() */
    }
}

static int64_t distance(uintptr_t next, uintptr_t to)
{
    return (intptr_t)(to - next);
}

/* Write @opcode and the 32-bit displacement, with which each near branch ends. */
static int branch32_put(uint8_t *out, uint8_t opcode, uintptr_t from, uintptr_t to)
{
    int64_t disp = distance(from + 5, to);

    if (disp != (int32_t)disp)
        return -ERANGE;
    out[0] = opcode;
    number_put(out + 1, (uint64_t)disp, 4);
    return 0;
}

int insn_encode_jmp32(uint8_t *out, uintptr_t from, uintptr_t to)
{
    return branch32_put(out, 0xe9, from, to);
}

int insn_encode_call32(uint8_t *out, uintptr_t from, uintptr_t to)
{
    return branch32_put(out, 0xe8, from, to);
}

int insn_encode_jcc32(uint8_t *out, unsigned cond, uintptr_t from, uintptr_t to)
{
    int err = branch32_put(out + 1, (uint8_t)(0x80 | (cond & 15)), from + 1, to);

    if (err)
        return err;
    out[0] = 0x0f;
    return 0;
}

int insn_encode_jmp8(uint8_t *out, uintptr_t from, uintptr_t to)
{
    int64_t disp = distance(from + INSN_JMP8_LEN, to);

    if (disp != (int8_t)disp)
        return -ERANGE;
    out[0] = 0xeb;
    out[1] = (uint8_t)disp;
    return 0;
}

/* The prefix right before the opcode: one of the 16 REX, or a segment override. */
static uint8_t last_prefix(unsigned variant)
{
    return variant < 16 ? (uint8_t)(REX | variant) : segs[variant - 16];
}

size_t insn_encode_jmp32_head(uint8_t *out, size_t pad, unsigned variant)
{
    unsigned last = variant % (16 + SEGS), others = variant / (16 + SEGS) % SEGS;

    for (size_t i = 0; i < pad; i++) {
        out[i] = i + 1 < pad ? segs[others] : last_prefix(last);
        barrier();
    }
    out[pad] = 0xe9;
    return pad + 1;
}

size_t insn_encode_disp32(uint8_t *out, uint32_t disp)
{
    number_put(out, disp, 4);
    return 4;
}

uintptr_t insn_jmp32_target(const uint8_t *bytes, uintptr_t addr)
{
    uint32_t disp = 0;

    if (bytes[0] != 0xe9)
        return 0;
    for (unsigned i = 0; i < 4; i++)
        disp |= (uint32_t)bytes[1 + i] << 8 * i;
    return addr + INSN_JMP32_LEN + (uintptr_t)(int64_t)(int32_t)disp;
}
NOKPROBE(insn_jmp32_target);

size_t insn_encode_int3s(uint8_t *out, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        out[i] = INSN_INT3;
        barrier();
    }
    return len;
}

/* Write an opcode whose low three bits name @reg; in front, a REX if @reg needs one. */
static size_t reg_opcode_put(uint8_t *out, uint8_t opcode, unsigned reg)
{
    size_t len = 0;

    if (reg >= 8)
        out[len++] = REX_B;
    out[len++] = (uint8_t)(opcode | (reg & 7));
    return len;
}

size_t insn_encode_push(uint8_t *out, unsigned reg)
{
    return reg_opcode_put(out, 0x50, reg);
}

size_t insn_encode_pop(uint8_t *out, unsigned reg)
{
    return reg_opcode_put(out, 0x58, reg);
}

size_t insn_encode_push_imm(uint8_t *out, int32_t value)
{
    out[0] = 0x68;
    number_put(out + 1, (uint64_t)value, 4);
    return 5;
}

/* Three forms: a zero-extended 32-bit value, a sign-extended one, all 64 bits. */
size_t insn_encode_mov_imm(uint8_t *out, unsigned reg, uint64_t value)
{
    size_t len;

    if (value == (uint32_t)value) {
        len = reg_opcode_put(out, 0xb8, reg);
        number_put(out + len, value, 4);
        return len + 4;
    }
    out[0] = (uint8_t)(REX_W | reg >> 3);
    if ((int64_t)value != (int32_t)value) {
        out[1] = (uint8_t)(0xb8 | (reg & 7));
        number_put(out + 2, value, 8);
        return INSN_MOV_IMM_MAX_LEN;
    }
    out[1] = 0xc7;
    out[2] = (uint8_t)(0xc0 | (reg & 7));
    number_put(out + 3, value, 4);
    return 7;
}

/* lahf; seto %al */
size_t insn_encode_flags_save(uint8_t *out)
{
    out[0] = 0x9f;
    out[1] = 0x0f;
    out[2] = 0x90;
    out[3] = 0xc0;
    return INSN_FLAGS_SAVE_LEN;
}

/* add $127, %al sets OF if al was 1. Then sahf loads the other flags, and keeps OF. */
size_t insn_encode_flags_restore(uint8_t *out)
{
    out[0] = 0x04;
    out[1] = 0x7f;
    out[2] = 0x9e;
    return INSN_FLAGS_RESTORE_LEN;
}
