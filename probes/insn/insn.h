/* insn.h - decode one x86-64 instruction: from bytes to facts.
 *
 * The decoder knows 64-bit mode only. It allocates nothing, calls nothing outside
 * probes/insn and keeps no state, so it may be used anywhere. Code outside this folder
 * looks at insn->kind and the fields below, never at opcode numbers.
 */
#pragma once

#include "probes/insn/insn_kinds.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSN_MAX_LEN 15

enum insn_encoding { INSN_LEGACY, INSN_VEX, INSN_EVEX, INSN_XOP };

/* The prefix that, with the opcode, selects the instruction. Also the values of `rep`. */
enum insn_prefix { INSN_PREFIX_NONE, INSN_PREFIX_66, INSN_PREFIX_F3, INSN_PREFIX_F2 };

/* Only these two segments have a base in 64-bit mode. */
enum insn_seg { INSN_SEG_NONE, INSN_SEG_FS, INSN_SEG_GS };

enum insn_loop { INSN_LOOPNE, INSN_LOOPE, INSN_LOOP_ALWAYS };

/* Numbers of the general registers as instructions encode them. */
enum insn_reg {
    INSN_AX,
    INSN_CX,
    INSN_DX,
    INSN_BX,
    INSN_SP,
    INSN_BP,
    INSN_SI,
    INSN_DI,
    INSN_R8,
    INSN_R9,
    INSN_R10,
    INSN_R11,
    INSN_R12,
    INSN_R13,
    INSN_R14,
    INSN_R15,
    INSN_REG_NONE = 255,
};

struct insn {
    uintptr_t addr;              /* of the instruction, as the caller has given it */
    uint8_t bytes[INSN_MAX_LEN]; /* from len on: bytes that followed, up to @avail */
    uint8_t len;                 /* bytes, 1..15 */

    enum insn_kind kind;
    enum insn_class class;

    /* prefixes */
    uint8_t legacy_len; /* bytes up to the last legacy prefix, this included */
    uint8_t rep;        /* INSN_PREFIX_F2, _F3 (the last one counts) or _NONE */
    uint8_t seg;        /* enum insn_seg of the memory operand */
    bool lock;
    bool opsize66; /* a 66 prefix is there */
    bool addr67;   /* a 67 prefix is there */
    bool rex_lost; /* a REX stands in front of a legacy prefix: processors ignore it */
    uint8_t rex;   /* 0100WRXB, also from the fields of VEX, EVEX, XOP; 0: none */

    /* opcode */
    uint8_t encoding; /* enum insn_encoding */
    uint8_t map;      /* 0 one-byte, 1 0f, 2 0f38, 3 0f3a; higher in EVEX and XOP */
    uint8_t opcode;   /* the last byte of the opcode */
    uint8_t prefix;   /* enum insn_prefix: mandatory prefix or pp */
    uint8_t vvvv;     /* VEX, EVEX, XOP: the third register, 0..15 */
    uint8_t op, form; /* cell of the opcode map; for probes/insn alone */

    /* where the fields are in bytes[]; a length of 0: not there */
    uint8_t opcode_off;
    uint8_t modrm_off, modrm_len; /* len 0 or 1 */
    uint8_t disp_off, disp_len;   /* 0, 1, 4 */
    uint8_t imm_off, imm_len;     /* all immediates; also branch displacement, moffs */

    /* operands */
    uint8_t opsize;   /* bytes: 1, 2, 4, 8; 0 if the instruction has no operand size */
    uint8_t addrsize; /* bytes: 4, 8 */
    uint8_t mod;      /* of modrm: 3 = register form */
    uint8_t reg;      /* modrm.reg with REX.R, 0..15 */
    uint8_t rm;       /* register operand: modrm.rm or low opcode bits, with REX.B */
    bool has_mem;     /* modrm names memory: base + index * scale + disp */
    uint8_t base;     /* 0..15, or INSN_REG_NONE */
    uint8_t index;    /* 0..15, or INSN_REG_NONE */
    uint8_t scale;    /* 1, 2, 4, 8 */
    int32_t disp;     /* as encoded: not multiplied for EVEX */
    int64_t imm;      /* sign-extended; the first one of two */

    bool rip_relative; /* has_mem, and the base is the next instruction's address */
    uintptr_t mem;     /* if rip_relative: the address of the operand */

    uintptr_t target; /* CALL_REL JMP_REL JCC LOOP JRCXZ XBEGIN: the target */
    uint8_t cond;     /* JCC, and setcc, cmovcc: condition, 0..15 */
    uint8_t loop;     /* LOOP: enum insn_loop */
    uint16_t pop;     /* RET, RET_FAR: bytes dropped besides the return address */
};

/* insn_decode - decode the instruction at the start of @bytes.
 * @insn:   filled on success, undefined otherwise
 * @bytes:  at least @avail readable bytes; never more than that is read
 * @avail:  bytes, any; more than INSN_MAX_LEN makes no difference
 * @addr:   the address the instruction is meant to run at
 *
 * Near branches are decoded as Intel's processors do: a 66 prefix does not shorten the
 * displacement (AMD's do shorten it, and cut rip to 16 bits; such a branch can be
 * decoded but not moved).
 *
 * Context: any.
 * Return:  0; -EILSEQ no such instruction, or it is longer than INSN_MAX_LEN; -EFAULT it
 *          is longer than @avail.
 * Source:  SDM vol. 2, "Instruction Format" and "Opcode Map"; APM vol. 3 for AMD's own.
 */
int insn_decode(struct insn *insn, const uint8_t *bytes, size_t avail, uintptr_t addr);

/* insn_next - the address of the next instruction in memory. Context: any. */
static inline uintptr_t insn_next(const struct insn *insn)
{
    return insn->addr + insn->len;
}

/* insn_is_branch - may the program go on elsewhere than at the next instruction?
 * insn_is_call - does it push a return address?
 * insn_has_target - does it name an address of code, which is insn.target?
 * insn_falls_through - may the program go on at the next instruction?
 * insn_can_move - can insn_relocate() make a copy that has the same effect elsewhere?
 * insn_can_boost - may that copy be followed by a jump back, with no trap behind it?
 * insn_may_fault - may it access memory (operand, stack, string), or is that unknown?
 * insn_is_near_branch - is it a branch that a 66 prefix changes on AMD's processors?
 * insn_is_ambiguous - has it a 66 prefix on a near branch, or a REX in front of a legacy
 *                     prefix? Intel's processors ignore both; AMD's take the first, and
 *                     QEMU's TCG takes the second, so nothing can be said about its effect.
 * Context: any.
 */
bool insn_is_branch(const struct insn *insn);
bool insn_is_call(const struct insn *insn);
bool insn_has_target(const struct insn *insn);
bool insn_falls_through(const struct insn *insn);
bool insn_can_move(const struct insn *insn);
bool insn_can_boost(const struct insn *insn);
bool insn_may_fault(const struct insn *insn);
bool insn_is_near_branch(const struct insn *insn);
bool insn_is_ambiguous(const struct insn *insn);

/* insn_kind_name, insn_class_name - the name as in insn_kinds.h, such as "CALL_REL"; "?": no
 * such kind or class. Context: any.
 */
const char *insn_kind_name(enum insn_kind kind);
const char *insn_class_name(enum insn_class class);
