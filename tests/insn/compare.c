/* compare.c - every question about one instruction that Zydis can answer too. */
#include "tests/insn/compare.h"

#include "kernel/base/err.h"
#include "probes/insn/effects.h"
#include "probes/insn/insn.h"
#include "probes/insn/operand.h"
#include "probes/insn/relocate.h"
#include "tests/insn/explain.h"

#include <Zydis/Zydis.h>
#include <string.h>

#define EXAMPLES 8

struct example {
    uint8_t bytes[INSN_MAX_LEN];
    size_t len;
};

struct tally {
    const char *text;
    unsigned long asked, wrong;
    struct example examples[EXAMPLES];
};

struct theirs {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

#define FACT_ROW(name, text) [FACT_##name] = { text, 0, 0, { { { 0 }, 0 } } },
static struct tally tallies[FACT_COUNT] = { FACTS(FACT_ROW) };
static ZydisDecoder decoder;

void compare_init(void)
{
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

void fact_count(enum fact fact, bool holds, const uint8_t *bytes, size_t len)
{
    struct tally *t = &tallies[fact];
    struct example *e = &t->examples[t->wrong % EXAMPLES];

    t->asked++;
    if (holds)
        return;
    t->wrong++;
    e->len = len < INSN_MAX_LEN ? len : INSN_MAX_LEN;
    memcpy(e->bytes, bytes, e->len);
}

static void tally_report(const struct tally *t, int number)
{
    printf("%s %d - %s (%lu of %lu)\n", t->wrong ? "not ok" : "ok", number, t->text,
           t->asked - t->wrong, t->asked);
    for (size_t i = 0; i < EXAMPLES && i < t->wrong; i++) {
        printf("# for example");
        for (size_t k = 0; k < t->examples[i].len; k++)
            printf(" %02x", t->examples[i].bytes[k]);
        printf("\n");
    }
}

int compare_report(int first)
{
    int wrong = 0;

    for (int i = 0; i < FACT_COUNT; i++) {
        tally_report(&tallies[i], first + i);
        wrong += tallies[i].wrong != 0;
    }
    explain_report();
    return wrong;
}

static void ask(enum fact fact, const struct insn *ours, bool holds)
{
    fact_count(fact, holds, ours->bytes, ours->len);
}

/* Where a SIB byte says "no base", Zydis 4.0 shows r13d and no displacement if REX.B and a
 * 67 prefix are there too; objdump and the manual do not.
 */
static void no_base_repair(struct theirs *t)
{
    const struct ZydisDecodedInstructionRaw_ *raw = &t->insn.raw;

    if (!(t->insn.attributes & ZYDIS_ATTRIB_HAS_SIB))
        return;
    if (raw->modrm.mod != 0 || raw->sib.base != 5)
        return;
    for (unsigned i = 0; i < t->insn.operand_count; i++) {
        ZydisDecodedOperand *o = &t->operands[i];

        if (o->encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM)
            continue;
        o->mem.base = ZYDIS_REGISTER_NONE;
        o->mem.disp.has_displacement = true;
        o->mem.disp.value = raw->disp.value;
    }
}

static bool zydis_decode(struct theirs *t, const uint8_t *bytes, size_t avail)
{
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder, bytes, avail, &t->insn, t->operands)))
        return false;
    no_base_repair(t);
    return true;
}

/* --- kinds ------------------------------------------------------------------------- */

#define M(name) ZYDIS_MNEMONIC_##name

/* Mnemonics whose kind is not OTHER; where the form decides, kind_of goes on. */
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

static enum insn_kind mov_kind(const struct theirs *t)
{
    const ZydisDecodedOperand *to = &t->operands[0];
    const ZydisDecodedOperand *from = &t->operands[1];
    ZydisRegisterClass to_class = ZYDIS_REGCLASS_INVALID;
    ZydisRegisterClass from_class = ZYDIS_REGCLASS_INVALID;

    if (is_segment(to))
        return to->reg.value == ZYDIS_REGISTER_SS ? INSN_MOV_SS : INSN_LOAD_SEG;
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

static enum insn_kind kind_of(const struct theirs *t)
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

/* --- operands ---------------------------------------------------------------------- */

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

/* Bound registers and enclaves work with 64-bit addresses, whatever the prefix says. A
 * kernel has neither; for us they are like all others.
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
        imm_bits = 8;                 /* the opcode that lies behind the operands */
    if (raw->disp.size && !has_modrm) /* moffs: our immediate */
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

static bool is_memory_access(const ZydisDecodedOperand *o)
{
    return o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.type == ZYDIS_MEMOP_TYPE_MEM;
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

/* --- effects ----------------------------------------------------------------------- */

struct access {
    uint32_t read, written, whole;
};

static void register_note(struct access *a, ZydisRegister reg,
                          ZydisOperandActions actions)
{
    ZydisRegister whole =
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    uint32_t bit;

    if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
        return;
    bit = 1u << (whole - ZYDIS_REGISTER_RAX);
    if (actions & ZYDIS_OPERAND_ACTION_MASK_READ)
        a->read |= bit;
    if (actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
        a->written |= bit;
    if (actions & ZYDIS_OPERAND_ACTION_WRITE &&
        ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) >= 32)
        a->whole |= bit;
}

static void accesses_collect(struct access *a, const struct theirs *t)
{
    memset(a, 0, sizeof(*a));
    for (unsigned i = 0; i < t->insn.operand_count; i++) {
        const ZydisDecodedOperand *o = &t->operands[i];

        if (o->type == ZYDIS_OPERAND_TYPE_REGISTER)
            register_note(a, o->reg.value, o->actions);
        if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
            continue;
        register_note(a, o->mem.base, ZYDIS_OPERAND_ACTION_READ);
        register_note(a, o->mem.index, ZYDIS_OPERAND_ACTION_READ);
    }
}

/* Zydis lists a register that does not matter: x ^ x and x - x, and the operand of a nop. */
static bool reads_in_vain(const struct theirs *t)
{
    switch (t->insn.mnemonic) {
    case M(XOR):
    case M(SUB):
        return t->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
               t->operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
               t->operands[0].reg.value == t->operands[1].reg.value;
    case M(NOP):
        return true;
    default:
        return false;
    }
}

static void compare_effects(const struct insn *ours, const struct theirs *t)
{
    const ZydisAccessedFlags *flags = t->insn.cpu_flags;
    uint32_t flags_read = flags->tested & INSN_FLAGS_ALL;
    uint32_t flags_written =
        (flags->modified | flags->set_0 | flags->set_1 | flags->undefined) &
        INSN_FLAGS_ALL;
    struct insn_effects e;
    struct access a;

    insn_effects(ours, &e);
    accesses_collect(&a, t);
    if (ours->kind == INSN_STRING)
        flags_read &=
            (uint32_t)~FLAGS_ZF; /* a repeat looks at it after the first comparison only */
    if (!reads_in_vain(t))
        ask(FACT_READ, ours, !(a.read & ~e.regs_read));
    ask(FACT_READ, ours, !(flags_read & ~e.flags_read));
    ask(FACT_WRITTEN, ours, !(a.written & ~e.regs_written));
    ask(FACT_WRITTEN, ours, !(flags_written & ~e.flags_written));
    ask(FACT_WRITTEN, ours, !(e.regs_killed & ~e.regs_written));
    ask(FACT_KILLED, ours, !(e.regs_killed & ~a.whole));
    ask(FACT_KILLED, ours, !(e.flags_killed & ~flags_written));
}

/* Zydis lists their memory operand as an access, but nothing comes of it. */
static bool is_hint(const struct theirs *t)
{
    switch (t->insn.meta.category) {
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1:
    case ZYDIS_CATEGORY_CLDEMOTE:
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
        return true;
    default:
        return t->insn.mnemonic == M(INVLPG);
    }
}

static void compare_memory(const struct insn *ours, const struct theirs *t)
{
    for (unsigned i = 0; i < t->insn.operand_count; i++) {
        if (is_memory_access(&t->operands[i]) && !is_hint(t))
            ask(FACT_MEMORY, ours, insn_may_fault(ours));
    }
}

/* --- copies ------------------------------------------------------------------------ */

/* The one instruction of a copy that is supposed to go, or point, where @ours does. */
static bool copy_agrees(const struct insn *ours, const uint8_t *copy, size_t len,
                        uintptr_t to)
{
    struct insn moved;
    size_t at = 0;

    if (ours->kind == INSN_LOOP || ours->kind == INSN_JRCXZ) {
        if (insn_decode(&moved, copy, len, to) || moved.kind != ours->kind ||
            moved.addrsize != ours->addrsize || moved.loop != ours->loop)
            return false;
        at = moved.target - to; /* taken: to the jump at the end of the copy */
        if (insn_decode(&moved, copy + moved.len, len - moved.len, insn_next(&moved)) ||
            moved.kind != INSN_JMP_REL || moved.target != to + len)
            return false;
    }
    if (insn_decode(&moved, copy + at, len - at, to + at) || at + moved.len != len)
        return false;
    if (moved.target != ours->target || moved.mem != ours->mem)
        return false;
    if (ours->kind == INSN_LOOP || ours->kind == INSN_JRCXZ)
        return moved.kind == INSN_JMP_REL;
    if (moved.kind != ours->kind || moved.cond != ours->cond)
        return false;
    if (ours->kind == INSN_JMP_REL || ours->kind == INSN_JCC)
        return true;
    for (unsigned i = 0; i < ours->len; i++) {
        bool in_disp = i >= ours->disp_off && i < ours->disp_off + 4u;

        if (copy[i] != ours->bytes[i] && !(ours->rip_relative && in_disp))
            return false;
    }
    return true;
}

static void compare_moved(const struct insn *ours, uint64_t seed)
{
    uintptr_t to = ours->addr + (uintptr_t)((int64_t)(seed << 31) >> 31);
    uint8_t copy[INSN_RELOCATED_MAX_LEN];
    size_t len = 0;
    int err = insn_relocate(copy, sizeof(copy), ours, to, &len);
    bool reaches = (ours->rip_relative && ours->addrsize == 8) || ours->target;

    if (err == -EOPNOTSUPP) {
        ask(FACT_MOVED, ours, !insn_can_move(ours) && insn_relocated_len(ours) == 0);
        return;
    }
    if (err == -ERANGE) {
        uintptr_t what = ours->rip_relative ? ours->mem : ours->target;
        int64_t gap = (int64_t)(what - to);

        ask(FACT_MOVED, ours, reaches && (gap > INT32_MAX - 16 || gap < INT32_MIN + 16));
        return;
    }
    ask(FACT_MOVED, ours,
        err == 0 && len == insn_relocated_len(ours) && copy_agrees(ours, copy, len, to));
}

/* --- one window -------------------------------------------------------------------- */

static void compare_shorter(const struct insn *ours, const uint8_t *bytes)
{
    struct insn part;

    for (size_t len = 0; len < ours->len; len++)
        ask(FACT_SHORT, ours, insn_decode(&part, bytes, len, ours->addr) == -EFAULT);
    ask(FACT_SHORT, ours,
        insn_decode(&part, bytes, ours->len, ours->addr) == 0 && part.len == ours->len &&
            part.kind == ours->kind);
}

static void compare_facts(const struct insn *ours, const struct theirs *t, uint64_t seed)
{
    ask(FACT_KIND, ours, ours->kind == kind_of(t));
    compare_fields(ours, t);
    compare_condition(ours, t);
    compare_effects(ours, t);
    compare_memory(ours, t);
    for (unsigned i = 0; i < t->insn.operand_count; i++) {
        compare_target(ours, t, &t->operands[i]);
        compare_address(ours, t, &t->operands[i], seed);
    }
}

size_t compare_window(const uint8_t *bytes, size_t avail, uintptr_t addr, uint64_t seed)
{
    struct insn ours;
    struct theirs t;
    bool decoded = insn_decode(&ours, bytes, avail, addr) == 0;
    bool known = zydis_decode(&t, bytes, avail);

    if (known && !decoded)
        fact_count(FACT_ACCEPT, explain_refused(&t.insn), bytes, avail);
    if (!decoded)
        return 0;
    compare_shorter(&ours, bytes);
    compare_moved(&ours, seed);
    if (!known) {
        ask(FACT_REFUSE, &ours, explain_accepted(&decoder, &ours));
        return 0;
    }
    fact_count(FACT_LENGTH, ours.len == t.insn.length, bytes, avail);
    if (ours.len != t.insn.length)
        return 0;
    compare_facts(&ours, &t, seed);
    return ours.len;
}

void compare_objdump(const uint8_t *bytes, size_t len, uintptr_t addr, const char *text)
{
    struct insn ours;
    bool agrees = insn_decode(&ours, bytes, len, addr) == 0 && ours.len == len;

    fact_count(FACT_OBJDUMP, agrees || explain_objdump(&decoder, bytes, len, text), bytes,
               len);
    if (agrees)
        compare_window(bytes, len, addr, addr * 0x9e3779b97f4a7c15u);
}
