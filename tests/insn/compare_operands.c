/* compare_operands.c - compares the places of fields, and the meaning of operands. */
#include "probes/insn/operand.h"
#include "tests/insn/compare_parts.h"

#include <string.h>

#define M(name) ZYDIS_MNEMONIC_##name

static const ZydisMnemonic jump_conditions[16] = {
    M(JO), M(JNO), M(JB), M(JNB), M(JZ), M(JNZ), M(JBE), M(JNBE),
    M(JS), M(JNS), M(JP), M(JNP), M(JL), M(JNL), M(JLE), M(JNLE),
};
static const ZydisMnemonic set_conditions[16] = {
    M(SETO), M(SETNO), M(SETB), M(SETNB), M(SETZ), M(SETNZ), M(SETBE), M(SETNBE),
    M(SETS), M(SETNS), M(SETP), M(SETNP), M(SETL), M(SETNL), M(SETLE), M(SETNLE),
};
static const ZydisMnemonic cmov_conditions[16] = {
    M(CMOVO), M(CMOVNO), M(CMOVB), M(CMOVNB), M(CMOVZ), M(CMOVNZ), M(CMOVBE), M(CMOVNBE),
    M(CMOVS), M(CMOVNS), M(CMOVP), M(CMOVNP), M(CMOVL), M(CMOVNL), M(CMOVLE), M(CMOVNLE),
};

static void compare_condition(const struct insn *ours, const struct theirs *t)
{
    ZydisMnemonic m = t->insn.mnemonic;

    if (ours->kind == INSN_JCC)
        ask(FACT_CONDITION, ours, jump_conditions[ours->cond & 15] == m);
    else if (ours->class == INSN_CLASS_SETCC)
        ask(FACT_CONDITION, ours, set_conditions[ours->cond & 15] == m);
    else if (ours->class == INSN_CLASS_CMOV)
        ask(FACT_CONDITION, ours, cmov_conditions[ours->cond & 15] == m);
    else if (ours->kind == INSN_LOOP)
        ask(FACT_CONDITION, ours,
            m == (ours->loop == INSN_LOOPNE  ? M(LOOPNE)
                  : ours->loop == INSN_LOOPE ? M(LOOPE)
                                             : M(LOOP)));
}

/* ignores_67 - does the instruction use 64-bit addresses even with a 67 prefix?
 * Instructions for bound registers and enclaves do. A kernel has none of them, so
 * probes/insn treats them like all other instructions.
 */
static bool ignores_67(const struct theirs *t)
{
    return t->insn.meta.category == ZYDIS_CATEGORY_MPX ||
           t->insn.meta.category == ZYDIS_CATEGORY_SGX;
}

static void compare_fields(const struct insn *ours, const struct theirs *t)
{
    const struct ZydisDecodedInstructionRaw_ *raw = &t->insn.raw;
    bool has_modrm = t->insn.attributes & ZYDIS_ATTRIB_HAS_MODRM;
    unsigned imm_bits = raw->imm[0].size + raw->imm[1].size;
    unsigned disp_len = ours->disp_len;
    bool agree = ours->modrm_len == has_modrm;

    if (has_modrm)
        agree = agree && ours->modrm_off == raw->modrm.offset;
    if (t->insn.opcode_map == ZYDIS_OPCODE_MAP_0F0F)
        imm_bits = 8;                 /* the opcode byte, which is behind the operands */
    if (raw->disp.size && !has_modrm) /* an absolute address: our immediate */
        imm_bits = raw->disp.size;
    else
        agree = agree && disp_len * 8 == raw->disp.size;
    if (disp_len)
        agree =
            agree && ours->disp_off == raw->disp.offset && ours->disp == raw->disp.value;
    agree = agree && ours->imm_len * 8u == imm_bits;
    if (raw->imm[0].size && t->insn.opcode_map != ZYDIS_OPCODE_MAP_0F0F)
        agree = agree && ours->imm_off == raw->imm[0].offset;
    if (!ignores_67(t))
        agree = agree && ours->addrsize * 8 == t->insn.address_width;
    ask(FACT_FIELDS, ours, agree);
}

static void registers_fill(struct pt_regs *regs, ZydisRegisterContext *context,
                           uint64_t seed)
{
    memset(context, 0, sizeof(*context));
    memset(regs, 0, sizeof(*regs));
    for (unsigned n = 0; n < 16; n++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        *insn_reg(regs, n) = seed ^ seed >> 29;
        context->values[ZYDIS_REGISTER_RAX + n] = *insn_reg(regs, n);
        context->values[ZYDIS_REGISTER_EAX + n] = (uint32_t)*insn_reg(regs, n);
    }
}

static void compare_address(const struct insn *ours, const struct theirs *t,
                            const ZydisDecodedOperand *o, uint64_t seed)
{
    static ZydisRegisterContext context;
    struct pt_regs regs;
    ZyanU64 address;

    if (!ours->has_mem || o->encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM)
        return;
    if (o->mem.type != ZYDIS_MEMOP_TYPE_MEM && o->mem.type != ZYDIS_MEMOP_TYPE_AGEN)
        return;
    if (ours->encoding == INSN_EVEX)
        return;
    registers_fill(&regs, &context, seed);
    if (!ZYAN_SUCCESS(
            ZydisCalcAbsoluteAddressEx(&t->insn, o, ours->addr, &context, &address)))
        return;
    if (ours->addrsize == 4)
        address = (uint32_t)address;
    ask(FACT_ADDRESS, ours, insn_effective_address(ours, &regs) == address);
    if (o->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
        return;
    ask(FACT_ADDRESS, ours,
        (ours->seg != INSN_SEG_NONE) ==
            (o->mem.segment == ZYDIS_REGISTER_FS || o->mem.segment == ZYDIS_REGISTER_GS));
}

static void compare_target(const struct insn *ours, const struct theirs *t,
                           const ZydisDecodedOperand *o)
{
    bool branches = o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o->imm.is_relative;
    bool relative =
        o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
        (o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP);
    ZyanU64 address;

    if (!branches && (!relative || ignores_67(t)))
        return;
    if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&t->insn, o, ours->addr, &address)))
        return;
    if (branches)
        ask(FACT_TARGET, ours, ours->target == address);
    else if (ours->encoding != INSN_EVEX)
        ask(FACT_TARGET, ours, ours->rip_relative && ours->mem == address);
}

void compare_operands(const struct insn *ours, const struct theirs *t, uint64_t seed)
{
    compare_fields(ours, t);
    compare_condition(ours, t);
    for (unsigned i = 0; i < t->insn.operand_count; i++) {
        compare_target(ours, t, &t->operands[i]);
        compare_address(ours, t, &t->operands[i], seed);
    }
}
