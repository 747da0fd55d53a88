/* builder.h - builds code: a row of instructions that the caller appends one by one, with
 * operands in registers, on the stack, behind GS, or in memory. Pure.
 *
 *     struct insn_builder b = { .out = bytes, .max = sizeof(bytes) };
 *     insn_build_alu_imm(&b, INSN_ALU_CMP, insn_reg_place(INSN_DI), 100);
 *     size_t jump = insn_build_jcc(&b, INSN_CC_BE);
 *     insn_build_inc(&b, insn_gs_place(disp));
 *     insn_build_land(&b, jump);             the jump leads here
 *
 * Which registers and flags the code may change is the caller's knowledge: effects.h tells
 * what an instruction reads and writes, detour_may_change_flags() whether the program still
 * needs its flags. If the code does not fit, @full is set, and nothing more is written.
 */
#pragma once

#include "probes/insn/insn.h"

struct insn_builder {
    uint8_t *out;
    size_t max, len;
    uintptr_t at; /* where out[0] will be executed; only calls need it */
    bool full;
    bool far; /* the target of a call is out of reach */
};

/* Where an operand is. */
enum insn_place_kind {
    INSN_PLACE_REG,    /* register @reg */
    INSN_PLACE_SP,     /* the word at rsp + @disp */
    INSN_PLACE_GS,     /* the word at GS + @disp */
    INSN_PLACE_GS_KEY, /* the word at GS + @disp + 8 * register @reg */
    INSN_PLACE_AT,     /* memory at register @reg + @disp */
};
struct insn_place {
    uint8_t kind, reg;
    int32_t disp;
};

static inline struct insn_place insn_reg_place(unsigned reg)
{
    return (struct insn_place){ INSN_PLACE_REG, (uint8_t)reg, 0 };
}

static inline struct insn_place insn_sp_place(int32_t disp)
{
    return (struct insn_place){ INSN_PLACE_SP, 0, disp };
}

static inline struct insn_place insn_gs_place(int32_t disp)
{
    return (struct insn_place){ INSN_PLACE_GS, 0, disp };
}

static inline struct insn_place insn_key_place(int32_t disp, unsigned reg)
{
    return (struct insn_place){ INSN_PLACE_GS_KEY, (uint8_t)reg, disp };
}

static inline struct insn_place insn_at_place(unsigned reg, int32_t disp)
{
    return (struct insn_place){ INSN_PLACE_AT, (uint8_t)reg, disp };
}

/* The operations of the group of add, as instructions number them. */
enum insn_alu {
    INSN_ALU_ADD,
    INSN_ALU_OR,
    INSN_ALU_ADC,
    INSN_ALU_AND = 4,
    INSN_ALU_SUB,
    INSN_ALU_XOR,
    INSN_ALU_CMP,
};
/* Those of the group of shifts. */
enum insn_shift { INSN_SHIFT_LEFT = 4, INSN_SHIFT_RIGHT, INSN_SHIFT_ARITHMETIC = 7 };

/* Conditions, as insn->cond has them. */
enum insn_cc {
    INSN_CC_B = 2,
    INSN_CC_AE,
    INSN_CC_E,
    INSN_CC_NE,
    INSN_CC_BE,
    INSN_CC_A,
    INSN_CC_NS = 9,
    INSN_CC_L = 12,
    INSN_CC_GE,
    INSN_CC_LE,
    INSN_CC_G,
};

/* insn_build_bytes - append bytes as they are.
 * insn_build_put - mov the low @size bytes (1, 2, 4 or 8) of register @reg to @to, which is
 *                  memory.
 * insn_build_load - mov @size bytes of memory at @from to register @reg, extended with
 *                   zeros, or with the sign if @is_signed.
 * insn_build_imm - mov @value to register @reg, in the shortest form.
 * insn_build_alu_imm - @op with @left as destination and a constant that the CPU extends
 *                      by its sign.
 * insn_build_test_imm - test in the same way.
 * insn_build_shift - shift register @reg by @count bits.
 * insn_build_put_imm - mov the low @size bytes of a constant to @to; of 8 bytes, the CPU
 *                      extends the lower four by their sign.
 * insn_build_call - call @target. If it is out of reach, @far is set. Context: any.
 */
void insn_build_bytes(struct insn_builder *b, const uint8_t *bytes, size_t len);
void insn_build_put(struct insn_builder *b, struct insn_place to, unsigned reg,
                    unsigned size);
void insn_build_load(struct insn_builder *b, unsigned reg, struct insn_place from,
                     unsigned size, bool is_signed);
void insn_build_imm(struct insn_builder *b, unsigned reg, uint64_t value);
void insn_build_alu_imm(struct insn_builder *b, enum insn_alu op, struct insn_place left,
                        int32_t value);
void insn_build_test_imm(struct insn_builder *b, struct insn_place left, int32_t value);
void insn_build_shift(struct insn_builder *b, enum insn_shift op, unsigned reg,
                      unsigned count);
void insn_build_put_imm(struct insn_builder *b, struct insn_place to, int32_t value,
                        unsigned size);
void insn_build_call(struct insn_builder *b, uintptr_t target);
void insn_build_push(struct insn_builder *b, unsigned reg);
void insn_build_pop(struct insn_builder *b, unsigned reg);

/* insn_build_op - append an instruction of 64 bits that has a ModRM byte.
 * @opcode: with INSN_BUILD_0F if 0f stands in front
 * @field: the register, or the number that tells the instruction from others
 */
#define INSN_BUILD_0F 0x0f00u
void insn_build_op(struct insn_builder *b, unsigned opcode, unsigned field,
                   struct insn_place p);

/* Move 64 bits from @from to register @reg. */
static inline void insn_build_get(struct insn_builder *b, unsigned reg,
                                  struct insn_place from)
{
    insn_build_op(b, 0x8b, reg, from);
}

/* lea: rsp + @disp to register @reg. */
static inline void insn_build_address(struct insn_builder *b, unsigned reg, int32_t disp)
{
    insn_build_op(b, 0x8d, reg, insn_sp_place(disp));
}

/* @op with @left as destination and register @right. */
static inline void insn_build_alu(struct insn_builder *b, enum insn_alu op,
                                  struct insn_place left, unsigned right)
{
    insn_build_op(b, (unsigned)op << 3 | 1, right, left);
}

/* @op with register @left as destination and @right. */
static inline void insn_build_alu_to(struct insn_builder *b, enum insn_alu op,
                                     unsigned left, struct insn_place right)
{
    insn_build_op(b, (unsigned)op << 3 | 3, left, right);
}

static inline void insn_build_test(struct insn_builder *b, struct insn_place left,
                                   unsigned right)
{
    insn_build_op(b, 0x85, right, left);
}

/* Increment or decrement the word at @to. CF does not change. */
static inline void insn_build_inc(struct insn_builder *b, struct insn_place to)
{
    insn_build_op(b, 0xff, 0, to);
}

static inline void insn_build_dec(struct insn_builder *b, struct insn_place to)
{
    insn_build_op(b, 0xff, 1, to);
}

/* The number of the highest bit of @from to @reg; ZF: @from is 0. */
static inline void insn_build_bsr(struct insn_builder *b, unsigned reg,
                                  struct insn_place from)
{
    insn_build_op(b, INSN_BUILD_0F | 0xbd, reg, from);
}

/* rdx:rax = rax * register @reg. */
static inline void insn_build_mul(struct insn_builder *b, unsigned reg)
{
    insn_build_op(b, 0xf7, 4, insn_reg_place(reg));
}

/* cmpxchg of the word at @to with register @reg. */
static inline void insn_build_exchange(struct insn_builder *b, struct insn_place to,
                                       unsigned reg)
{
    insn_build_op(b, INSN_BUILD_0F | 0xb1, reg, to);
}

/* Move the low @size bytes of register @from to register @reg, extended. */
static inline void insn_build_extend(struct insn_builder *b, unsigned reg, unsigned from,
                                     unsigned size, bool is_signed)
{
    insn_build_load(b, reg, insn_reg_place(from), size, is_signed);
}

/* insn_build_jcc, _jmp - append a jump whose target is not known yet.
 * Return: the jump, for insn_build_land() or insn_build_land_at().
 * insn_build_land - let @jump lead to the end of the code.
 * insn_build_land_at - let it lead to @target, an offset in the code.
 */
size_t insn_build_jcc(struct insn_builder *b, enum insn_cc cond);
size_t insn_build_jmp(struct insn_builder *b);
void insn_build_land(struct insn_builder *b, size_t jump);
void insn_build_land_at(struct insn_builder *b, size_t jump, size_t target);
