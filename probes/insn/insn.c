/* insn.c - decode one instruction: prefixes, opcode, modrm, immediate, then the facts.
 *
 * The stages run in the order in which the bytes lie; insn->len is the cursor. What an
 * opcode means comes from the tables behind opcode_map.h. Pure; any context.
 */
#include "probes/insn/insn.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/insn/insn_window.h"
#include "probes/insn/opcode_map.h"

/* This does not call memcpy(), because memcpy() may carry a probe. If all 15 bytes may be
 * read, two words of 8 bytes are copied, which overlap by one byte.
 */
static void bytes_copy(uint8_t to[INSN_MAX_LEN], const uint8_t *from, size_t len)
{
    if (len == INSN_MAX_LEN) {
        __builtin_memcpy(to, from, 8);
        __builtin_memcpy(to + INSN_MAX_LEN - 8, from + INSN_MAX_LEN - 8, 8);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        to[i] = from[i];
        barrier(); /* else the compiler makes the loop a call of memcpy() */
    }
}

static void insn_init(struct insn *insn, struct insn_window *window, const uint8_t *bytes,
                      size_t avail, uintptr_t addr)
{
    window->limit = avail < INSN_MAX_LEN ? avail : INSN_MAX_LEN;
    window->end = avail < INSN_MAX_LEN ? -EFAULT : -EILSEQ;
    *insn = (struct insn){
        .addr = addr, .base = INSN_REG_NONE, .index = INSN_REG_NONE, .scale = 1
    };
    bytes_copy(insn->bytes, bytes, window->limit);
}

/* Read the little-endian number of @len bytes (0..8) at @off, and sign-extend it. */
static int64_t number(const struct insn *insn, unsigned off, unsigned len)
{
    uint64_t n = 0;
    unsigned unused = 64 - 8 * len;

    if (len == 0)
        return 0;
    for (unsigned i = 0; i < len; i++)
        n |= (uint64_t)insn->bytes[off + i] << 8 * i;
    return (int64_t)(n << unused) >> unused;
}

static unsigned rex_bit(const struct insn *insn, unsigned bit)
{
    return insn->rex & bit ? 8 : 0;
}

static int sib_read(struct insn *insn, const struct insn_window *window)
{
    uint8_t sib;
    int err = insn_byte_take(insn, window, &sib);
    unsigned index;

    if (err)
        return err;
    index = (sib >> 3 & 7u) | rex_bit(insn, REX_X);
    if (index != INSN_SP) {
        insn->index = (uint8_t)index;
        insn->scale = (uint8_t)(1 << (sib >> 6));
    }
    if ((sib & 7) == 5 && insn->mod == 0)
        insn->disp_len = 4; /* no base */
    else
        insn->base = (uint8_t)((sib & 7u) | rex_bit(insn, REX_B));
    return 0;
}

static int memory_read(struct insn *insn, const struct insn_window *window, unsigned rm)
{
    int err = 0;

    insn->has_mem = true;
    if (insn->mod == 1)
        insn->disp_len = 1;
    else if (insn->mod == 2)
        insn->disp_len = 4;
    if (rm == 4) {
        err = sib_read(insn, window);
    } else if (rm == 5 && insn->mod == 0) {
        insn->rip_relative = true;
        insn->disp_len = 4;
    } else {
        insn->base = (uint8_t)(rm | rex_bit(insn, REX_B));
    }
    if (err)
        return err;
    insn->disp_off = insn->len;
    err = insn_bytes_take(insn, window, insn->disp_len);
    if (err)
        return err;
    insn->disp = (int32_t)number(insn, insn->disp_off, insn->disp_len);
    return 0;
}

static int modrm_read(struct insn *insn, const struct insn_window *window)
{
    uint8_t modrm;
    int err = insn_byte_take(insn, window, &modrm);

    if (err)
        return err;
    insn->modrm_off = (uint8_t)(insn->len - 1);
    insn->modrm_len = 1;
    err = opcode_group_choose(insn, modrm);
    if (err)
        return err;
    insn->mod = modrm >> 6;
    if (opcode_form_facts(insn->form)->modrm == M_CR)
        insn->mod = 3;
    insn->reg = (uint8_t)((modrm >> 3 & 7u) | rex_bit(insn, REX_R));
    if (insn->mod != 3)
        return memory_read(insn, window, modrm & 7);
    if (opcode_form_facts(insn->form)->modrm == M_MEM)
        return -EILSEQ;
    insn->rm = (uint8_t)((modrm & 7u) | rex_bit(insn, REX_B));
    return 0;
}

static uint8_t width_bytes(const struct insn *insn, unsigned width)
{
    uint8_t word = insn->opsize66 ? 2 : 4;

    switch (width) {
    case W_B:
        return 1;
    case W_W:
        return 2;
    case W_D:
        return 4;
    case W_Q:
        return 8;
    case W_Z:
        return word;
    case W_V:
        return insn->rex & REX_W ? 8 : word;
    case W_Y:
        return insn->rex & REX_W ? 8 : 4;
    case W_S:
        return insn->opsize66 && !(insn->rex & REX_W) ? 2 : 8;
    default:
        return 0;
    }
}

/* Return: the bytes of all immediates. @first: receives the bytes of the first one. */
static uint8_t imm_bytes(const struct insn *insn, unsigned imm, uint8_t *first)
{
    uint8_t word = width_bytes(insn, W_V);

    switch (imm) {
    case I_B:
        return *first = 1;
    case I_W:
        return *first = 2;
    case I_D:
        return *first = 4;
    case I_Z:
        return *first = word == 2 ? 2 : 4;
    case I_V:
        return *first = word;
    case I_MOFFS:
        return *first = insn->addrsize;
    case I_WB:
        *first = 2;
        return 3;
    case I_BB:
        *first = 1;
        return 2;
    default:
        return *first = 0;
    }
}

static int imm_read(struct insn *insn, const struct insn_window *window)
{
    const struct opcode_form_facts *form = opcode_form_facts(insn->form);
    uint8_t first;
    int err;

    insn->imm_len = imm_bytes(insn, form->imm, &first);
    insn->imm_off = insn->len;
    err = insn_bytes_take(insn, window, insn->imm_len);
    if (err)
        return err;
    insn->imm = number(insn, insn->imm_off, first);
    insn->opsize = width_bytes(insn, form->width1);
    if (form->place1 == P_Z)
        insn->rm = (uint8_t)((insn->opcode & 7u) | rex_bit(insn, REX_B));
    return 0;
}

/* 90 is a nop, unless REX.B makes it an exchange with r8; with f3 it is pause. */
static void nop_refine(struct insn *insn)
{
    if (insn->map != 0 || insn->opcode != 0x90 || insn->rex & REX_B)
        return;
    if (insn->encoding == INSN_LEGACY)
        insn->op = insn->rep == INSN_PREFIX_F3 ? OP_PAUSE : OP_NOP;
}

/* A lock prefix is allowed before a read-modify-write of memory. It is also allowed before
 * a move of cr0, which it makes a move of cr8 (AMD).
 */
static bool lock_allowed(const struct insn *insn)
{
    if (insn->op == OP_MOVFCR || insn->op == OP_MOVTCR)
        return insn->reg == 0;
    if (!(opcode_op_facts(insn->op)->use & U_LOCK) || !insn->has_mem)
        return false;
    return opcode_form_facts(insn->form)->place1 == P_E;
}

static const uint8_t suffixes_3dnow[] = {
    0x0c, 0x0d, 0x1c, 0x1d, 0x8a, 0x8e, 0x90, 0x94, 0x96, 0x97, 0x9a, 0x9e,
    0xa0, 0xa4, 0xa6, 0xa7, 0xaa, 0xae, 0xb0, 0xb4, 0xb6, 0xb7, 0xbb, 0xbf,
};

/* 3DNow! has its opcode behind the operands, where an immediate would be. */
static bool suffix_allowed(const struct insn *insn)
{
    if (insn->encoding != INSN_LEGACY || insn->map != 1 || insn->opcode != 0x0f)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(suffixes_3dnow); i++) {
        if (suffixes_3dnow[i] == insn->bytes[insn->imm_off])
            return true;
    }
    return false;
}

static int validity_check(struct insn *insn)
{
    nop_refine(insn);
    if (insn->lock && !lock_allowed(insn))
        return -EILSEQ;
    if (!suffix_allowed(insn))
        return -EILSEQ;
    return 0;
}

static enum insn_class class_choose(const struct insn *insn)
{
    enum insn_class class = (enum insn_class)opcode_op_facts(insn->op)->class;

    if (insn->lock)
        return INSN_CLASS_ATOMIC;
    if (class == INSN_CLASS_ATOMIC && !insn->has_mem)
        return INSN_CLASS_MOV;
    if (class != INSN_CLASS_SSE)
        return class;
    if (insn->encoding == INSN_VEX)
        return INSN_CLASS_AVX;
    if (insn->encoding == INSN_EVEX)
        return INSN_CLASS_AVX512;
    return insn->encoding == INSN_XOP ? INSN_CLASS_XOP : INSN_CLASS_SSE;
}

static enum insn_kind kind_choose(const struct insn *insn)
{
    enum insn_kind kind = (enum insn_kind)opcode_op_facts(insn->op)->kind;

    switch (kind) {
    case INSN_PUSH_REG:
    case INSN_PUSH_IMM:
    case INSN_POP_REG:
        return insn->opsize == 8 ? kind : INSN_OTHER;
    default:
        return kind;
    }
}

/* insn->target and insn->mem are encoded relative to the next instruction. An address
 * size of 4 cuts the address of a memory operand to 32 bits.
 */
static void targets_note(struct insn *insn)
{
    uintptr_t next = insn_next(insn);

    if (insn_has_target(insn))
        insn->target = next + (uintptr_t)insn->imm;
    if (!insn->rip_relative)
        return;
    insn->mem = next + (uintptr_t)insn->disp;
    if (insn->addrsize == 4)
        insn->mem = (uint32_t)insn->mem;
}

static void facts_note(struct insn *insn)
{
    insn->kind = kind_choose(insn);
    insn->class = class_choose(insn);
    targets_note(insn);
    if (opcode_op_facts(insn->op)->use & U_COND)
        insn->cond = insn->opcode & 15;
    if (insn->kind == INSN_LOOP)
        insn->loop = insn->opcode & 3;
    if (insn->kind == INSN_RET || insn->kind == INSN_RET_FAR)
        insn->pop = (uint16_t)insn->imm;
}

int insn_decode(struct insn *insn, const uint8_t *bytes, size_t avail, uintptr_t addr)
{
    struct insn_window window;
    uint8_t byte;
    int err;

    insn_init(insn, &window, bytes, avail, addr);
    err = insn_prefixes_read(insn, &window, &byte);
    if (err)
        return err;
    err = insn_opcode_read(insn, &window, byte);
    if (err)
        return err;
    if (opcode_form_facts(insn->form)->modrm != M_NO) {
        err = modrm_read(insn, &window);
        if (err)
            return err;
    }
    err = imm_read(insn, &window);
    if (err)
        return err;
    err = validity_check(insn);
    if (err)
        return err;
    facts_note(insn);
    return 0;
}
