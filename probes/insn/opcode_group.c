/* opcode_group.c - opcodes that are several instructions: modrm chooses one of them.
 * Pure.
 *
 * A row has one column for each value of modrm.reg. A group has a row for its memory
 * form and one for its register form, each for no prefix, 66, f3 and f2.
 *
 * Source: SDM vol. 2, "Opcode Extensions for One-Byte and Two-Byte Opcodes" and "Escape
 * Opcode Instructions"; APM vol. 3, "ModRM Extensions".
 */
#include "probes/insn/opcode_map.h"

#include "kernel/base/err.h"

/* clang-format off */
#define ROW(a, b, c, d, e, f, g, h)                                                      \
    { OP_##a, OP_##b, OP_##c, OP_##d, OP_##e, OP_##f, OP_##g, OP_##h }
#define ROW_ENUM(name, ...) ROW_##name,
#define ROW_DATA(name, ...) [ROW_##name] = ROW(__VA_ARGS__),

/*    row     /0      /1      /2      /3      /4      /5      /6      /7 */
#define ROWS(X)                                                                          \
    X(NONE,   BAD,    BAD,    BAD,    BAD,    BAD,    BAD,    BAD,    BAD)               \
    X(G1,     ADD,    ADD,    ADC,    ADC,    ADD,    SUB,    SUB,    CMP)               \
    X(G1A,    POP,    BAD,    BAD,    BAD,    BAD,    BAD,    BAD,    BAD)               \
    X(G1AM,   POPM,   BAD,    BAD,    BAD,    BAD,    BAD,    BAD,    BAD)               \
    X(G2,     ROT,    ROT,    ROTC,   ROTC,   SHIFT,  SHIFT,  SHIFT,  SHIFT)             \
    X(G3B,    CMP,    CMP,    NOT,    ADD,    MULB,   MULB,   DIVB,   DIVB)              \
    X(G3V,    CMP,    CMP,    NOT,    ADD,    MUL,    MUL,    DIV,    DIV)               \
    X(G4,     INC,    INC,    BAD,    BAD,    BAD,    BAD,    BAD,    BAD)               \
    X(G5,     INC,    INC,    CALLR,  BAD,    JMPR,   BAD,    PUSH,   BAD)               \
    X(G5M,    INC,    INC,    CALLM,  CALLF,  JMPM,   JMPF,   PUSHM,  BAD)               \
    X(G6,     SLDT,   SLDT,   LLDT,   LTR,    VERR,   VERR,   BAD,    BAD)               \
    X(G7M,    SGDT,   SGDT,   LGDT,   LIDT,   SMSW,   BAD,    LMSW,   INVLPG)            \
    X(G7MF3,  SGDT,   SGDT,   LGDT,   LIDT,   SMSW,   SHSTK,  LMSW,   INVLPG)            \
    X(G8,     BAD,    BAD,    BAD,    BAD,    BT,     BTS,    BTS,    BTS)               \
    X(G9M,    BAD,    CMPX8B, BAD,    XSAVE,  XSAVE,  XSAVE,  VMX,    VMX)               \
    X(G9MX,   BAD,    CMPX8B, BAD,    BAD,    BAD,    BAD,    VMX,    BAD)               \
    X(G9MF2,  BAD,    CMPX8B, BAD,    BAD,    BAD,    BAD,    BAD,    BAD)               \
    X(G9,     BAD,    BAD,    BAD,    BAD,    BAD,    BAD,    RDRAND, RDRAND)            \
    X(G9F3,   BAD,    BAD,    BAD,    BAD,    BAD,    BAD,    SYSANY, RDBASE)            \
    X(G11,    MOV,    BAD,    BAD,    BAD,    BAD,    BAD,    BAD,    XBEGIN)            \
    X(G11M,   MOV,    BAD,    BAD,    BAD,    BAD,    BAD,    BAD,    BAD)               \
    X(G15M,   XSAVE,  XSAVE,  XSAVE,  XSAVE,  XSAVE,  XSAVE,  XSAVE,  CLFLSH)            \
    X(G15M66, BAD,    BAD,    BAD,    BAD,    BAD,    BAD,    CLFLSH, CLFLSH)            \
    X(G15MF3, BAD,    BAD,    BAD,    BAD,    PTWRIT, BAD,    SHSTK,  BAD)               \
    X(G15,    BAD,    BAD,    BAD,    BAD,    BAD,    FENCE,  FENCE,  FENCE)             \
    X(G15_66, BAD,    BAD,    BAD,    BAD,    BAD,    BAD,    TPAUSE, BAD)               \
    X(G15F3,  RDBASE, RDBASE, WRBASE, WRBASE, PTWRIT, SHSTK,  UMONIT, BAD)               \
    X(G15F2,  BAD,    BAD,    BAD,    BAD,    BAD,    BAD,    TPAUSE, BAD)               \
    X(GSEGR,  MOV,    MOV,    MOV,    MOV,    MOV,    MOV,    BAD,    BAD)               \
    X(GSEGW,  LDDS,   BAD,    MOVSS,  LDDS,   LDSEG,  LDSEG,  BAD,    BAD)               \
    X(GCRR,   MOVFCR, BAD,    MOVFCR, MOVFCR, MOVFCR, BAD,    BAD,    BAD)               \
    X(GCRW,   MOVTCR, BAD,    MOVTCR, MOVTCR, MOVTCR, BAD,    BAD,    BAD)               \
    X(NOPS,   NOP,    NOP,    NOP,    NOP,    NOP,    NOP,    NOP,    NOP)               \
    X(PREF,   HINT,   HINT,   HINT,   HINT,   HINT,   HINT,   HINT,   HINT)              \
    X(PREF4,  HINT,   HINT,   HINT,   HINT,   NOP,    NOP,    NOP,    NOP)               \
    X(CLDM,   HINT,   NOP,    NOP,    NOP,    NOP,    NOP,    NOP,    NOP)               \
    X(MPX,    VEC,    VEC,    VEC,    VEC,    VEC,    VEC,    VEC,    VEC)               \
    X(HINTF3, NOP,    SHSTK,  NOP,    NOP,    NOP,    NOP,    NOP,    ENDBR)             \
    /* group 7 in register form: a row for each modrm.reg, a column for each modrm.rm */ \
    X(G7_0,   SGX,    VMX,    VMX,    VMX,    VMX,    SYSANY, WRMSR,  BAD)               \
    X(G7_1,   MONITR, MWAIT,  CLAC,   CLAC,   VMX,    VMX,    VMX,    SGX)               \
    X(G7_2,   RDMSR,  WRXCR,  BAD,    BAD,    VMX,    XEND,   XTEST,  SGX)               \
    X(G7_3,   SVM,    SVM,    SVM,    SVM,    SVM,    SVM,    SVM,    SVM)               \
    X(G7_4,   SMSW,   SMSW,   SMSW,   SMSW,   SMSW,   SMSW,   SMSW,   SMSW)              \
    X(G7_5,   SERIAL, SERIAL, BAD,    BAD,    BAD,    BAD,    RDMSR,  WRXCR)             \
    X(G7_6,   LMSW,   LMSW,   LMSW,   LMSW,   LMSW,   LMSW,   LMSW,   LMSW)              \
    X(G7_7,   SWAPGS, RDTSCP, MONITR, MWAIT,  SYSANY, SYSANY, SVM,    SVM)               \
    X(G7_0REP, SGX,   VMX,    VMX,    VMX,    VMX,    SYSANY, SYSANY, BAD)               \
    X(G7_166, BAD,    BAD,    BAD,    BAD,    VMX,    VMX,    VMX,    VMX)               \
    X(G7_1REP, MONITR, MWAIT, IRET,   CLAC,   VMX,    VMX,    VMX,    SGX)               \
    X(G7_5F3, SHSTK,  BAD,    SHSTK,  BAD,    IRET,   SYSANY, SYSANY, SYSANY)            \
    X(G7_7F3, SWAPGS, RDTSCP, SYSANY, MWAIT,  SYSANY, SYSANY, SVM,    SVM)

enum group_row { ROWS(ROW_ENUM) ROW_COUNT };

static const uint8_t rows[ROW_COUNT][8] = { ROWS(ROW_DATA) };

/*                    memory, by prefix none 66 f3 f2     register */
#define SAME(m, r) { { ROW_##m, ROW_##m, ROW_##m, ROW_##m },                             \
                     { ROW_##r, ROW_##r, ROW_##r, ROW_##r } }
#define EACH(a, b, c, d, e, f, g, h) { { ROW_##a, ROW_##b, ROW_##c, ROW_##d },           \
                                       { ROW_##e, ROW_##f, ROW_##g, ROW_##h } }
#define GROUP(name) [OP_##name - OP_COUNT]

static const uint8_t groups[OP_GROUPS_END - OP_COUNT][2][4] = {
    GROUP(G1)    = SAME(G1, G1),
    GROUP(G1A)   = SAME(G1AM, G1A),
    GROUP(G2)    = SAME(G2, G2),
    GROUP(G3B)   = SAME(G3B, G3B),
    GROUP(G3V)   = SAME(G3V, G3V),
    GROUP(G4)    = SAME(G4, G4),
    GROUP(G5)    = SAME(G5M, G5),
    GROUP(G6)    = SAME(G6, G6),
    GROUP(G7)    = EACH(G7M, G7M, G7MF3, G7M,         NONE, NONE, NONE, NONE),
    GROUP(G8)    = SAME(G8, G8),
    GROUP(G9)    = EACH(G9M, G9MX, G9MX, G9MF2,       G9, G9, G9F3, NONE),
    GROUP(G11)   = SAME(G11M, G11),
    GROUP(G15)   = EACH(G15M, G15M66, G15MF3, NONE,   G15, G15_66, G15F3, G15F2),
    GROUP(G16)   = SAME(PREF4, NOPS),
    GROUP(GPREF) = SAME(PREF, NOPS),
    GROUP(GCLDM) = EACH(CLDM, NOPS, NOPS, NOPS,       NOPS, NOPS, NOPS, NOPS),
    GROUP(GMPX)  = EACH(MPX, MPX, MPX, MPX,           NOPS, MPX, MPX, MPX),
    GROUP(GMPXM) = EACH(MPX, MPX, MPX, MPX,           NOPS, MPX, NOPS, MPX),
    GROUP(GSEGR) = SAME(GSEGR, GSEGR),
    GROUP(GSEGW) = SAME(GSEGW, GSEGW),
    GROUP(GCRR)  = SAME(GCRR, GCRR),
    GROUP(GCRW)  = SAME(GCRW, GCRW),
    GROUP(GHINT) = EACH(NOPS, NOPS, NOPS, NOPS,       NOPS, NOPS, HINTF3, NOPS),
};

/* Which instructions the x87 opcodes d8..df have. Bit n of x87_mem: the memory form with
 * modrm.reg = n. Bit n of x87_reg: modrm byte c0 + n.
 */
static const uint8_t x87_mem[8] = { 0xff, 0xfd, 0xff, 0xaf, 0xff, 0xdf, 0xff, 0xff };
static const uint64_t x87_reg[8] = {
    0xffffffffffffffff, 0xffff7f33ff01ffff, 0x00000200ffffffff, 0x00ffff1fffffffff,
    0xffffffffffffffff, 0x0000ffffffffffff, 0xffffffff02ffffff, 0x00ffff01ffffffff,
};
/* clang-format on */

static bool x87_has(uint8_t opcode, uint8_t modrm)
{
    unsigned row = opcode & 7u;

    if (modrm < 0xc0)
        return x87_mem[row] >> (modrm >> 3 & 7) & 1;
    return x87_reg[row] >> (modrm & 0x3f) & 1;
}

static unsigned group7_row(const struct insn *insn, unsigned reg)
{
    if (reg == 0 && insn->prefix > INSN_PREFIX_66)
        return ROW_G7_0REP;
    if (reg == 1 && insn->prefix == INSN_PREFIX_66)
        return ROW_G7_166;
    if (reg == 1 && insn->prefix != INSN_PREFIX_NONE)
        return ROW_G7_1REP;
    if (reg == 5 && insn->prefix == INSN_PREFIX_F3)
        return ROW_G7_5F3;
    if (reg == 7 && insn->prefix == INSN_PREFIX_F3)
        return ROW_G7_7F3;
    return ROW_G7_0 + reg;
}

/* The form of @insn, which in three groups depends on modrm.reg. */
static uint8_t form_choose(const struct insn *insn, unsigned reg)
{
    switch (insn->op) {
    case OP_G3B:
        return reg < 2 ? FM_EbIb : FM_Eb;
    case OP_G3V:
        return reg < 2 ? FM_EvIz : FM_Ev;
    case OP_G5:
        if (reg == 3 || reg == 5)
            return FM_Mp;
        return reg < 2 ? FM_Ev : FM_Es;
    default:
        return insn->form;
    }
}

/* Correct the instructions that also depend on modrm.rm. */
static int rm_choose(struct insn *insn, uint8_t modrm)
{
    if (insn->op == OP_ENDBR && modrm != 0xfa && modrm != 0xfb)
        insn->op = OP_NOP;
    if (insn->op == OP_SHSTK && insn->opcode == 0x1e)
        insn->form = FM_Ey; /* rdssp */
    if (insn->op != OP_XBEGIN)
        return 0;
    if (modrm != 0xf8)
        return -EILSEQ;
    if (insn->opcode == 0xc6)
        insn->op = OP_XABORT;
    return 0;
}

int opcode_group_choose(struct insn *insn, uint8_t modrm)
{
    bool is_reg = modrm >= 0xc0;
    unsigned reg = modrm >> 3 & 7;
    uint8_t form = form_choose(insn, reg);

    if (insn->op == OP_X87)
        return x87_has(insn->opcode, modrm) ? 0 : -EILSEQ;
    if (insn->op < OP_COUNT)
        return 0;
    if (insn->op == OP_G7 && is_reg)
        insn->op = rows[group7_row(insn, reg)][modrm & 7];
    else
        insn->op = rows[groups[insn->op - OP_COUNT][is_reg][insn->prefix]][reg];
    insn->form = form;
    if (insn->op == OP_BAD)
        return -EILSEQ;
    return rm_choose(insn, modrm);
}
