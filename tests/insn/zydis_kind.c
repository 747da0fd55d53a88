/* zydis_kind.c - derives the kind of an instruction from the mnemonic, form and category
 * that Zydis finds.
 *
 * probes/insn starts from opcodes, and this file from mnemonics. So the same mistake is
 * not likely to be in both.
 */
#include "tests/insn/zydis_kind.h"

#define M(name) ZYDIS_MNEMONIC_##name

/* Mnemonics with a kind that is not OTHER. If the kind depends on the form, zydis_kind()
 * finds it.
 */
static const struct {
    ZydisMnemonic mnemonic;
    enum insn_kind kind;
} kinds[] = {
    { M(NOP), INSN_NOP },
    { M(ENDBR64), INSN_ENDBR },
    { M(ENDBR32), INSN_ENDBR },
    { M(PUSHFQ), INSN_PUSHF },
    { M(PUSHF), INSN_PUSHF },
    { M(POPFQ), INSN_POPF },
    { M(POPF), INSN_POPF },
    { M(CLI), INSN_CLI },
    { M(STI), INSN_STI },
    { M(HLT), INSN_HLT },
    { M(MWAIT), INSN_MWAIT },
    { M(MWAITX), INSN_MWAIT },
    { M(UMWAIT), INSN_MWAIT },
    { M(TPAUSE), INSN_MWAIT },
    { M(LSS), INSN_LOAD_SEG },
    { M(LFS), INSN_LOAD_SEG },
    { M(LGS), INSN_LOAD_SEG },
    { M(SWAPGS), INSN_SWAPGS },
    { M(WRFSBASE), INSN_WRITE_BASE },
    { M(WRGSBASE), INSN_WRITE_BASE },
    { M(WRMSR), INSN_WRITE_MSR },
    { M(CLTS), INSN_MOV_TO_CR },
    { M(LMSW), INSN_MOV_TO_CR },
    { M(LGDT), INSN_LGDT },
    { M(LIDT), INSN_LIDT },
    { M(LLDT), INSN_LLDT },
    { M(LTR), INSN_LTR },
    { M(RSTORSSP), INSN_SHADOW_STACK },
    { M(SETSSBSY), INSN_SHADOW_STACK },
    { M(CLRSSBSY), INSN_SHADOW_STACK },
    { M(SAVEPREVSSP), INSN_SHADOW_STACK },
    { M(INCSSPD), INSN_SHADOW_STACK },
    { M(INCSSPQ), INSN_SHADOW_STACK },
    { M(RDSSPD), INSN_SHADOW_STACK },
    { M(RDSSPQ), INSN_SHADOW_STACK },
    { M(WRSSD), INSN_SHADOW_STACK },
    { M(WRSSQ), INSN_SHADOW_STACK },
    { M(WRUSSD), INSN_SHADOW_STACK },
    { M(WRUSSQ), INSN_SHADOW_STACK },
    { M(XEND), INSN_XEND },
    { M(XBEGIN), INSN_XBEGIN },
    { M(XABORT), INSN_XABORT },
    { M(LOOP), INSN_LOOP },
    { M(LOOPE), INSN_LOOP },
    { M(LOOPNE), INSN_LOOP },
    { M(JRCXZ), INSN_JRCXZ },
    { M(JECXZ), INSN_JRCXZ },
    { M(RET), INSN_RET },
    { M(IRET), INSN_IRET },
    { M(IRETD), INSN_IRET },
    { M(IRETQ), INSN_IRET },
    { M(UIRET), INSN_IRET },
    { M(SYSCALL), INSN_SYSCALL },
    { M(SYSENTER), INSN_SYSENTER },
    { M(SYSRET), INSN_SYSRET },
    { M(SYSEXIT), INSN_SYSEXIT },
    { M(INT3), INSN_INT3 },
    { M(INT1), INSN_INT1 },
    { M(INT), INSN_INTN },
    { M(UD0), INSN_UD },
    { M(UD1), INSN_UD },
    { M(UD2), INSN_UD },
    { M(IN), INSN_IN },
    { M(INSB), INSN_IN },
    { M(INSW), INSN_IN },
    { M(INSD), INSN_IN },
    { M(OUT), INSN_OUT },
    { M(OUTSB), INSN_OUT },
    { M(OUTSW), INSN_OUT },
    { M(OUTSD), INSN_OUT },
    { M(RSM), INSN_MODE },
    { M(GETSEC), INSN_MODE },
    { M(VMCALL), INSN_VMX },
    { M(VMLAUNCH), INSN_VMX },
    { M(VMRESUME), INSN_VMX },
    { M(VMXOFF), INSN_VMX },
    { M(VMXON), INSN_VMX },
    { M(VMCLEAR), INSN_VMX },
    { M(VMPTRLD), INSN_VMX },
    { M(VMPTRST), INSN_VMX },
    { M(VMFUNC), INSN_VMX },
    { M(TDCALL), INSN_VMX },
    { M(SEAMCALL), INSN_VMX },
    { M(SEAMOPS), INSN_VMX },
    { M(SEAMRET), INSN_VMX },
    { M(VMRUN), INSN_SVM },
    { M(VMMCALL), INSN_SVM },
    { M(VMLOAD), INSN_SVM },
    { M(VMSAVE), INSN_SVM },
    { M(STGI), INSN_SVM },
    { M(CLGI), INSN_SVM },
    { M(SKINIT), INSN_SVM },
    { M(INVLPGA), INSN_SVM },
    { M(INVLPGB), INSN_SVM },
    { M(TLBSYNC), INSN_SVM },
    { M(PSMASH), INSN_SVM },
    { M(PVALIDATE), INSN_SVM },
    { M(RMPADJUST), INSN_SVM },
    { M(RMPUPDATE), INSN_SVM },
    { M(ENCLS), INSN_SGX },
    { M(ENCLU), INSN_SGX },
    { M(ENCLV), INSN_SGX },
};

static bool is_segment(const ZydisDecodedOperand *o)
{
    return o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           ZydisRegisterGetClass(o->reg.value) == ZYDIS_REGCLASS_SEGMENT;
}

static enum insn_kind branch_kind(const struct theirs *t, enum insn_kind rel,
                                  enum insn_kind reg, enum insn_kind mem,
                                  enum insn_kind far)
{
    if (t->insn.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
        return far;
    switch (t->operands[0].type) {
    case ZYDIS_OPERAND_TYPE_REGISTER:
        return reg;
    case ZYDIS_OPERAND_TYPE_MEMORY:
        return mem;
    default:
        return rel;
    }
}

static enum insn_kind stack_kind(const struct theirs *t, enum insn_kind reg)
{
    const ZydisDecodedOperand *o = &t->operands[0];

    if (is_segment(o))
        return t->insn.mnemonic == M(POP) ? INSN_LOAD_SEG : INSN_OTHER;
    if (o->type == ZYDIS_OPERAND_TYPE_MEMORY || t->insn.operand_width != 64)
        return INSN_OTHER;
    return o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? INSN_PUSH_IMM : reg;
}

static enum insn_kind segment_kind(ZydisRegister to)
{
    switch (to) {
    case ZYDIS_REGISTER_SS:
        return INSN_MOV_SS;
    case ZYDIS_REGISTER_DS:
    case ZYDIS_REGISTER_ES:
        return INSN_MOV_DS;
    default:
        return INSN_LOAD_SEG;
    }
}

static enum insn_kind mov_kind(const struct theirs *t)
{
    const ZydisDecodedOperand *to = &t->operands[0];
    const ZydisDecodedOperand *from = &t->operands[1];
    ZydisRegisterClass to_class = ZYDIS_REGCLASS_INVALID;
    ZydisRegisterClass from_class = ZYDIS_REGCLASS_INVALID;

    if (is_segment(to))
        return segment_kind(to->reg.value);
    if (to->type == ZYDIS_OPERAND_TYPE_REGISTER)
        to_class = ZydisRegisterGetClass(to->reg.value);
    if (from->type == ZYDIS_OPERAND_TYPE_REGISTER)
        from_class = ZydisRegisterGetClass(from->reg.value);
    if (to_class == ZYDIS_REGCLASS_CONTROL)
        return INSN_MOV_TO_CR;
    if (to_class == ZYDIS_REGCLASS_DEBUG)
        return INSN_MOV_TO_DR;
    if (from_class == ZYDIS_REGCLASS_CONTROL)
        return INSN_MOV_FROM_CR;
    if (from_class == ZYDIS_REGCLASS_DEBUG)
        return INSN_MOV_FROM_DR;
    return INSN_OTHER;
}

static bool is_conditional_jump(const struct theirs *t)
{
    if (t->insn.meta.category != ZYDIS_CATEGORY_COND_BR)
        return false;
    switch (t->insn.mnemonic) {
    case M(LOOP):
    case M(LOOPE):
    case M(LOOPNE):
    case M(JRCXZ):
    case M(JECXZ):
    case M(XBEGIN):
    case M(XABORT):
    case M(XEND):
        return false;
    default:
        return true;
    }
}

enum insn_kind zydis_kind(const struct theirs *t)
{
    switch (t->insn.mnemonic) {
    case M(CALL):
        return branch_kind(t, INSN_CALL_REL, INSN_CALL_REG, INSN_CALL_MEM, INSN_CALL_FAR);
    case M(JMP):
        return branch_kind(t, INSN_JMP_REL, INSN_JMP_REG, INSN_JMP_MEM, INSN_JMP_FAR);
    case M(PUSH):
        return stack_kind(t, INSN_PUSH_REG);
    case M(POP):
        return stack_kind(t, INSN_POP_REG);
    case M(MOV):
        return mov_kind(t);
    default:
        break;
    }
    if (t->insn.mnemonic == M(RET) && t->insn.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
        return INSN_RET_FAR;
    if (is_conditional_jump(t))
        return INSN_JCC;
    if (t->insn.meta.category == ZYDIS_CATEGORY_STRINGOP)
        return INSN_STRING;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].mnemonic == t->insn.mnemonic)
            return kinds[i].kind;
    }
    return INSN_OTHER;
}
