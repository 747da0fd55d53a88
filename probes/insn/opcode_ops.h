/* opcode_ops.h - the ops and forms of which the opcode map consists. Private to insn.
 *
 * A cell of the map holds an op, which says what the instruction does, and a form, which
 * says where its operands are. A name of a form has the letters that the manual has for its
 * operands.
 *
 * Source: SDM vol. 2, "Instruction Set Reference" and "Opcode Map".
 */
#pragma once

#include "probes/insn/effects.h"
#include "probes/insn/insn.h"

/* clang-format off */

/* Where an operand is: nowhere, modrm.rm, modrm.reg, low opcode bits, rax, cl. */
enum operand_place { P_NO, P_E, P_G, P_Z, P_A, P_CL };

/* How wide an operand is, in bytes. B, W, D, Q: 1, 2, 4, 8. Z: 4, or 2 with a 66 prefix.
 * V: as Z, but 8 with REX.W. Y: 4, or 8 with REX.W. S, for words of the stack: 8, or 2
 * with a 66 prefix and without REX.W.
 */
enum operand_width { W_NO, W_B, W_W, W_D, W_Q, W_Z, W_V, W_Y, W_S };

/* The immediate, which follows modrm and displacement. WB, BB: two immediates, of 2 and 1
 * bytes, or 1 and 1. MOFFS: the address of the operand.
 */
enum opcode_imm { I_NO, I_B, I_W, I_Z, I_V, I_D, I_WB, I_BB, I_MOFFS };

/* Is there a modrm byte, and which of its two forms exist? CR: mod has no effect; rm is
 * always a register.
 */
enum opcode_modrm { M_NO, M_ANY, M_MEM, M_CR };

/* Forms:     first place, width   second place, width   immediate   modrm */
#define OPCODE_FORMS(X)                                                                  \
    X(no,     P_NO, W_NO,  P_NO, W_NO,  I_NO,    M_NO)                                   \
    X(nb,     P_NO, W_B,   P_NO, W_NO,  I_NO,    M_NO)                                   \
    X(nz,     P_NO, W_Z,   P_NO, W_NO,  I_NO,    M_NO)                                   \
    X(nv,     P_NO, W_V,   P_NO, W_NO,  I_NO,    M_NO)                                   \
    X(ns,     P_NO, W_S,   P_NO, W_NO,  I_NO,    M_NO)                                   \
    X(Ib,     P_NO, W_B,   P_NO, W_NO,  I_B,     M_NO)                                   \
    X(zIb,    P_NO, W_Z,   P_NO, W_NO,  I_B,     M_NO)                                   \
    X(sIb,    P_NO, W_S,   P_NO, W_NO,  I_B,     M_NO)                                   \
    X(sIz,    P_NO, W_S,   P_NO, W_NO,  I_Z,     M_NO)                                   \
    X(sIw,    P_NO, W_S,   P_NO, W_NO,  I_W,     M_NO)                                   \
    X(sIwIb,  P_NO, W_S,   P_NO, W_NO,  I_WB,    M_NO)                                   \
    X(Jb,     P_NO, W_Q,   P_NO, W_NO,  I_B,     M_NO)                                   \
    X(Jd,     P_NO, W_Q,   P_NO, W_NO,  I_D,     M_NO)                                   \
    X(Zs,     P_Z,  W_S,   P_NO, W_NO,  I_NO,    M_NO)                                   \
    X(Zv,     P_Z,  W_V,   P_NO, W_NO,  I_NO,    M_NO)                                   \
    X(ZvAX,   P_Z,  W_V,   P_A,  W_V,   I_NO,    M_NO)                                   \
    X(ZbIb,   P_Z,  W_B,   P_NO, W_NO,  I_B,     M_NO)                                   \
    X(ZvIv,   P_Z,  W_V,   P_NO, W_NO,  I_V,     M_NO)                                   \
    X(ALIb,   P_A,  W_B,   P_NO, W_NO,  I_B,     M_NO)                                   \
    X(AXIz,   P_A,  W_V,   P_NO, W_NO,  I_Z,     M_NO)                                   \
    X(ALOb,   P_A,  W_B,   P_NO, W_NO,  I_MOFFS, M_NO)                                   \
    X(AXOv,   P_A,  W_V,   P_NO, W_NO,  I_MOFFS, M_NO)                                   \
    X(ObAL,   P_NO, W_B,   P_A,  W_B,   I_MOFFS, M_NO)                                   \
    X(OvAX,   P_NO, W_V,   P_A,  W_V,   I_MOFFS, M_NO)                                   \
    X(Eb,     P_E,  W_B,   P_NO, W_NO,  I_NO,    M_ANY)                                  \
    X(Ew,     P_E,  W_W,   P_NO, W_NO,  I_NO,    M_ANY)                                  \
    X(Ev,     P_E,  W_V,   P_NO, W_NO,  I_NO,    M_ANY)                                  \
    X(Ey,     P_E,  W_Y,   P_NO, W_NO,  I_NO,    M_ANY)                                  \
    X(Es,     P_E,  W_S,   P_NO, W_NO,  I_NO,    M_ANY)                                  \
    X(Eq,     P_E,  W_Q,   P_NO, W_NO,  I_NO,    M_ANY)                                  \
    X(Mp,     P_NO, W_V,   P_NO, W_NO,  I_NO,    M_MEM)                                  \
    X(Rq,     P_E,  W_Q,   P_NO, W_NO,  I_NO,    M_CR)                                   \
    X(EbIb,   P_E,  W_B,   P_NO, W_NO,  I_B,     M_ANY)                                  \
    X(EvIb,   P_E,  W_V,   P_NO, W_NO,  I_B,     M_ANY)                                  \
    X(EvIz,   P_E,  W_V,   P_NO, W_NO,  I_Z,     M_ANY)                                  \
    X(EbCL,   P_E,  W_B,   P_CL, W_B,   I_NO,    M_ANY)                                  \
    X(EvCL,   P_E,  W_V,   P_CL, W_B,   I_NO,    M_ANY)                                  \
    X(EbGb,   P_E,  W_B,   P_G,  W_B,   I_NO,    M_ANY)                                  \
    X(EvGv,   P_E,  W_V,   P_G,  W_V,   I_NO,    M_ANY)                                  \
    X(EvGvIb, P_E,  W_V,   P_G,  W_V,   I_B,     M_ANY)                                  \
    X(GbEb,   P_G,  W_B,   P_E,  W_B,   I_NO,    M_ANY)                                  \
    X(GvEb,   P_G,  W_V,   P_E,  W_B,   I_NO,    M_ANY)                                  \
    X(GvEw,   P_G,  W_V,   P_E,  W_W,   I_NO,    M_ANY)                                  \
    X(GvEd,   P_G,  W_V,   P_E,  W_D,   I_NO,    M_ANY)                                  \
    X(GvEv,   P_G,  W_V,   P_E,  W_V,   I_NO,    M_ANY)                                  \
    X(GyEb,   P_G,  W_Y,   P_E,  W_B,   I_NO,    M_ANY)                                  \
    X(GyEv,   P_G,  W_Y,   P_E,  W_V,   I_NO,    M_ANY)                                  \
    X(GyEy,   P_G,  W_Y,   P_E,  W_Y,   I_NO,    M_ANY)                                  \
    X(GvEvIb, P_G,  W_V,   P_E,  W_V,   I_B,     M_ANY)                                  \
    X(GvEvIz, P_G,  W_V,   P_E,  W_V,   I_Z,     M_ANY)                                  \
    X(GvM,    P_G,  W_V,   P_NO, W_NO,  I_NO,    M_MEM)                                  \
    X(MvGv,   P_NO, W_V,   P_G,  W_V,   I_NO,    M_MEM)                                  \
    X(MyGy,   P_NO, W_Y,   P_G,  W_Y,   I_NO,    M_MEM)                                  \
    X(V,      P_NO, W_NO,  P_NO, W_NO,  I_NO,    M_ANY) /* vector, x87 */                \
    X(VIb,    P_NO, W_NO,  P_NO, W_NO,  I_B,     M_ANY)                                  \
    X(VIbIb,  P_NO, W_NO,  P_NO, W_NO,  I_BB,    M_ANY)                                  \
    X(VId,    P_NO, W_NO,  P_NO, W_NO,  I_D,     M_ANY)

/* How an op uses its operands. */
#define U_R1 0x0001     /* reads the first */
#define U_W1 0x0002     /* writes the first */
#define U_R2 0x0004     /* reads the second */
#define U_W2 0x0008     /* writes the second */
#define U_MOV (U_W1 | U_R2)
#define U_USE (U_R1 | U_R2)
#define U_RMW (U_R1 | U_W1 | U_R2)
#define U_ZERO 0x0010   /* both operands the same register: its value does not matter */
#define U_LOCK 0x0020   /* takes a lock prefix when the first operand is memory */
#define U_COND 0x0040   /* reads the flags of its condition */
#define U_COUNT 0x0080  /* a shift: a count of 0 leaves the flags alone */
#define U_ROTC 0x0100   /* rcl, rcr: only a count of 1 is certain to write its flags */
#define U_MAYBE 0x0200  /* its flags may stay as they were */
#define U_WHOLE 0x0400  /* implied registers are written entirely, from 32 bits on */
#define U_REP 0x0800    /* takes rep: counts rcx down, and may do nothing at all */
#define U_STACK 0x1000  /* accesses the stack */
#define U_MEM 0x2000    /* accesses memory that modrm does not name */
#define U_NOMEM 0x4000  /* does not access the memory that modrm names */
#define U_VECTOR 0x8000 /* vector unit: see vector_add() */
#define U_ANY 0x10000   /* unknown: reads and writes everything */

#define R(n) (1u << INSN_##n)
#define ACD (R(AX) | R(CX) | R(DX))
#define AD (R(AX) | R(DX))
#define ABCD (ACD | R(BX))

#define F0 0
#define FC FLAGS_CF
#define FZ FLAGS_ZF
#define FO FLAGS_OF
#define FD FLAGS_DF
#define FCO (FC | FO)
#define FS INSN_FLAGS_STATUS
#define FALL INSN_FLAGS_ALL
#define FLOW (FS & ~FO) /* what lahf and sahf move */

/* An op stands for all instructions that treat their operands and the flags alike:
 *
 *     ADD  add or and neg      SUB    sub xor           ADC    adc sbb
 *     CMP  cmp test            INC    inc dec           NOT    not
 *     ROT  rol ror             ROTC   rcl rcr           SHIFT  shl shr sar
 *     SHXD shld shrd           BTS    bts btr btc       BSF    bsf bsr tzcnt lzcnt
 *     MUL  mul imul            DIV    div idiv          MOV    mov movzx movsx movsxd
 *     CLC  clc stc             CLD    cld std           CLAC   clac stac
 *     LSS  lss lfs lgs         LAR    lar lsl           RDMSR  rdmsr rdpmc xgetbv rdpkru
 *     HINT prefetch, cldemote  XSAVE  also fxsave, fxrstor, ldmxcsr, stmxcsr, xrstor
 */

/* Ops:  kind          class    use                        flags         registers
 *                                                         read  written read    written */
#define OPCODE_OPS(X)                                                                    \
    X(BAD,    OTHER,        SYSTEM, 0,                     F0,   F0,     0,      0)      \
    X(ADD,    OTHER,        ALU,    U_RMW | U_LOCK,        F0,   FS,     0,      0)      \
    X(SUB,    OTHER,        ALU,    U_RMW|U_LOCK|U_ZERO,   F0,   FS,     0,      0)      \
    X(ADC,    OTHER,        ALU,    U_RMW | U_LOCK,        FC,   FS,     0,      0)      \
    X(CMP,    OTHER,        ALU,    U_USE,                 F0,   FS,     0,      0)      \
    X(INC,    OTHER,        ALU,    U_RMW | U_LOCK,        F0,   FS^FC,  0,      0)      \
    X(NOT,    OTHER,        ALU,    U_RMW | U_LOCK,        F0,   F0,     0,      0)      \
    X(ADCX,   OTHER,        ALU,    U_RMW,                 FC,   FC,     0,      0)      \
    X(ADOX,   OTHER,        ALU,    U_RMW,                 FO,   FO,     0,      0)      \
    X(CRC32,  OTHER,        ALU,    U_RMW,                 F0,   F0,     0,      0)      \
    X(MUL,    OTHER,        MULDIV, U_R1 | U_WHOLE,        F0,   FS,     R(AX),  AD)     \
    X(MULB,   OTHER,        MULDIV, U_R1,                  F0,   FS,     R(AX),  R(AX))  \
    X(DIV,    OTHER,        MULDIV, U_R1,                  F0,   FS,     AD,     AD)     \
    X(DIVB,   OTHER,        MULDIV, U_R1,                  F0,   FS,     R(AX),  R(AX))  \
    X(IMUL,   OTHER,        MULDIV, U_RMW,                 F0,   FS,     0,      0)      \
    X(IMUL3,  OTHER,        MULDIV, U_MOV,                 F0,   FS,     0,      0)      \
    X(ROT,    OTHER,        SHIFT,  U_RMW | U_COUNT,       F0,   FCO,    0,      0)      \
    X(ROTC,   OTHER,        SHIFT,  U_RMW|U_COUNT|U_ROTC,  FC,   FCO,    0,      0)      \
    X(SHIFT,  OTHER,        SHIFT,  U_RMW | U_COUNT,       F0,   FS,     0,      0)      \
    X(SHXD,   OTHER,        SHIFT,  U_RMW | U_COUNT,       F0,   FS,     0,      0)      \
    X(SHXDCL, OTHER,        SHIFT,  U_RMW | U_MAYBE,       F0,   FS,     R(CX),  0)      \
    X(BT,     OTHER,        BIT,    U_USE,                 F0,   FS^FZ,  0,      0)      \
    X(BTS,    OTHER,        BIT,    U_RMW | U_LOCK,        F0,   FS^FZ,  0,      0)      \
    X(BSF,    OTHER,        BIT,    U_RMW,                 F0,   FS,     0,      0)      \
    X(POPCNT, OTHER,        BIT,    U_MOV,                 F0,   FS,     0,      0)      \
    X(BSWAP,  OTHER,        BIT,    U_R1 | U_W1,           F0,   F0,     0,      0)      \
    X(XCHG,   OTHER,        ATOMIC, U_RMW|U_W2|U_LOCK,     F0,   F0,     0,      0)      \
    X(XADD,   OTHER,        ATOMIC, U_RMW|U_W2|U_LOCK,     F0,   FS,     0,      0)      \
    X(CMPXCH, OTHER,        ATOMIC, U_RMW | U_LOCK,        F0,   FS,     R(AX),  R(AX))  \
    X(CMPX8B, OTHER,        ATOMIC, U_LOCK,                F0,   FZ,     ABCD,   AD)     \
    X(MOV,    OTHER,        MOV,    U_MOV,                 F0,   F0,     0,      0)      \
    X(LEA,    OTHER,        LEA,    U_W1 | U_NOMEM,        F0,   F0,     0,      0)      \
    X(CBW,    OTHER,        MOV,    0,                     F0,   F0,     R(AX),  R(AX))  \
    X(CWD,    OTHER,        MOV,    U_WHOLE,               F0,   F0,     R(AX),  R(DX))  \
    X(XLAT,   OTHER,        MOV,    U_MEM,         F0, F0, R(AX) | R(BX),        R(AX))  \
    X(MASKMV, OTHER,        SSE,    U_VECTOR | U_MEM,      F0,   F0,     0,      0)      \
    X(CMOV,   OTHER,        CMOV,   U_RMW | U_COND,        F0,   F0,     0,      0)      \
    X(SETCC,  OTHER,        SETCC,  U_W1 | U_COND,         F0,   F0,     0,      0)      \
    X(CMC,    OTHER,        FLAGS,  0,                     FC,   FC,     0,      0)      \
    X(CLC,    OTHER,        FLAGS,  0,                     F0,   FC,     0,      0)      \
    X(CLD,    OTHER,        FLAGS,  0,                     F0,   FD,     0,      0)      \
    X(SAHF,   OTHER,        FLAGS,  0,                     F0,   FLOW,   R(AX),  0)      \
    X(LAHF,   OTHER,        FLAGS,  0,                     FLOW, F0,     R(AX),  R(AX))  \
    X(CLI,    CLI,          FLAGS,  0,                     F0,   F0,     0,      0)      \
    X(STI,    STI,          FLAGS,  0,                     F0,   F0,     0,      0)      \
    X(PUSHF,  PUSHF,        FLAGS,  U_STACK,               FALL, F0,     R(SP),  R(SP))  \
    X(POPF,   POPF,         FLAGS,  U_STACK,               F0,   FALL,   R(SP),  R(SP))  \
    X(CLAC,   OTHER,        FLAGS,  0,                     F0,   F0,     0,      0)      \
    X(PUSH,   PUSH_REG,     STACK,  U_R1 | U_STACK,        F0,   F0,     R(SP),  R(SP))  \
    X(PUSHM,  OTHER,        STACK,  U_STACK,               F0,   F0,     R(SP),  R(SP))  \
    X(PUSHI,  PUSH_IMM,     STACK,  U_STACK,               F0,   F0,     R(SP),  R(SP))  \
    X(POP,    POP_REG,      STACK,  U_W1 | U_STACK,        F0,   F0,     R(SP),  R(SP))  \
    X(POPM,   OTHER,        STACK,  U_STACK,               F0,   F0,     R(SP),  R(SP))  \
    X(PUSHS,  OTHER,        STACK,  U_STACK,               F0,   F0,     R(SP),  R(SP))  \
    X(POPS,   LOAD_SEG,     SYSTEM, U_STACK,               F0,   F0,     R(SP),  R(SP))  \
    X(ENTER,  OTHER,        STACK,  U_STACK, F0, F0, R(SP) | R(BP),      R(SP) | R(BP))  \
    X(LEAVE,  OTHER,        STACK,  U_STACK, F0, F0, R(SP) | R(BP),      R(SP) | R(BP))  \
    X(MOVS,   STRING,       STRING, U_REP | U_MEM, FD, F0, R(SI) | R(DI), R(SI) | R(DI)) \
    X(CMPS,   STRING,       STRING, U_REP | U_MEM, FD, FS, R(SI) | R(DI), R(SI) | R(DI)) \
    X(STOS,   STRING,       STRING, U_REP | U_MEM, FD, F0, R(AX) | R(DI), R(DI))         \
    X(LODS,   STRING,       STRING, U_REP | U_MEM, FD, F0, R(AX) | R(SI), R(AX) | R(SI)) \
    X(SCAS,   STRING,       STRING, U_REP | U_MEM, FD, FS, R(AX) | R(DI), R(DI))         \
    X(INS,    IN,           IO,     U_REP | U_MEM, FD, F0, R(DX) | R(DI), R(DI))         \
    X(OUTS,   OUT,          IO,     U_REP | U_MEM, FD, F0, R(DX) | R(SI), R(SI))         \
    X(INI,    IN,           IO,     0,                     F0,   F0,     R(AX),  R(AX))  \
    X(OUTI,   OUT,          IO,     0,                     F0,   F0,     R(AX),  0)      \
    X(IN,     IN,           IO,     0,                     F0,   F0,     AD,     R(AX))  \
    X(OUT,    OUT,          IO,     0,                     F0,   F0,     AD,     0)      \
    X(NOP,    NOP,          NOP,    U_NOMEM,               F0,   F0,     0,      0)      \
    X(PAUSE,  OTHER,        NOP,    0,                     F0,   F0,     0,      0)      \
    X(HINT,   OTHER,        NOP,    U_NOMEM,               F0,   F0,     0,      0)      \
    X(ENDBR,  ENDBR,        NOP,    0,                     F0,   F0,     0,      0)      \
    X(FENCE,  OTHER,        NOP,    0,                     F0,   F0,     0,      0)      \
    X(CLFLSH, OTHER,        NOP,    0,                     F0,   F0,     0,      0)      \
    X(JCC,    JCC,          JCC,    U_COND,                F0,   F0,     0,      0)      \
    X(JMP,    JMP_REL,      JMP,    0,                     F0,   F0,     0,      0)      \
    X(JMPR,   JMP_REG,      JMP,    U_R1,                  F0,   F0,     0,      0)      \
    X(JMPM,   JMP_MEM,      JMP,    0,                     F0,   F0,     0,      0)      \
    X(LOOP,   LOOP,         LOOP,   0,                     F0,   F0,     R(CX),  R(CX))  \
    X(JRCXZ,  JRCXZ,        LOOP,   0,                     F0,   F0,     R(CX),  0)      \
    X(CALL,   CALL_REL,     CALL,   U_ANY | U_STACK,       F0,   F0,     0,      0)      \
    X(CALLR,  CALL_REG,     CALL,   U_ANY | U_STACK,       F0,   F0,     0,      0)      \
    X(CALLM,  CALL_MEM,     CALL,   U_ANY | U_STACK,       F0,   F0,     0,      0)      \
    X(CALLF,  CALL_FAR,     CALL,   U_ANY | U_STACK,       F0,   F0,     0,      0)      \
    X(JMPF,   JMP_FAR,      JMP,    U_ANY,                 F0,   F0,     0,      0)      \
    X(RET,    RET,          RET,    U_ANY | U_STACK,       F0,   F0,     0,      0)      \
    X(RETF,   RET_FAR,      RET,    U_ANY | U_STACK,       F0,   F0,     0,      0)      \
    X(IRET,   IRET,         RET,    U_ANY | U_STACK,       F0,   F0,     0,      0)      \
    X(INT3,   INT3,         TRAP,   U_ANY,                 F0,   F0,     0,      0)      \
    X(INT1,   INT1,         TRAP,   U_ANY,                 F0,   F0,     0,      0)      \
    X(INTN,   INTN,         TRAP,   U_ANY,                 F0,   F0,     0,      0)      \
    X(UD,     UD,           TRAP,   U_ANY | U_NOMEM,       F0,   F0,     0,      0)      \
    X(HLT,    HLT,          SYSTEM, 0,                     F0,   F0,     0,      0)      \
    X(SYSCAL, SYSCALL,      SYSTEM, U_ANY,                 F0,   F0,     0,      0)      \
    X(SYSRET, SYSRET,       SYSTEM, U_ANY,                 F0,   F0,     0,      0)      \
    X(SYSENT, SYSENTER,     SYSTEM, U_ANY,                 F0,   F0,     0,      0)      \
    X(SYSEXI, SYSEXIT,      SYSTEM, U_ANY,                 F0,   F0,     0,      0)      \
    X(SWAPGS, SWAPGS,       SYSTEM, 0,                     F0,   F0,     0,      0)      \
    X(MOVSS,  MOV_SS,       SYSTEM, U_R1,                  F0,   F0,     0,      0)      \
    X(LDDS,   MOV_DS,       SYSTEM, U_R1,                  F0,   F0,     0,      0)      \
    X(LDSEG,  LOAD_SEG,     SYSTEM, U_R1,                  F0,   F0,     0,      0)      \
    X(LSS,    LOAD_SEG,     SYSTEM, U_W1,                  F0,   F0,     0,      0)      \
    X(MOVFCR, MOV_FROM_CR,  SYSTEM, U_W1 | U_MAYBE,        F0,   FS,     0,      0)      \
    X(MOVTCR, MOV_TO_CR,    SYSTEM, U_R1 | U_MAYBE,        F0,   FS,     0,      0)      \
    X(MOVFDR, MOV_FROM_DR,  SYSTEM, U_W1 | U_MAYBE,        F0,   FS,     0,      0)      \
    X(MOVTDR, MOV_TO_DR,    SYSTEM, U_R1 | U_MAYBE,        F0,   FS,     0,      0)      \
    X(CLTS,   MOV_TO_CR,    SYSTEM, 0,                     F0,   F0,     0,      0)      \
    X(LMSW,   MOV_TO_CR,    SYSTEM, U_R1,                  F0,   F0,     0,      0)      \
    X(SMSW,   OTHER,        SYSTEM, U_R1 | U_W1,           F0,   F0,     0,      0)      \
    X(LGDT,   LGDT,         SYSTEM, 0,                     F0,   F0,     0,      0)      \
    X(LIDT,   LIDT,         SYSTEM, 0,                     F0,   F0,     0,      0)      \
    X(LLDT,   LLDT,         SYSTEM, U_R1,                  F0,   F0,     0,      0)      \
    X(LTR,    LTR,          SYSTEM, U_R1,                  F0,   F0,     0,      0)      \
    X(SGDT,   OTHER,        SYSTEM, 0,                     F0,   F0,     0,      0)      \
    X(SLDT,   OTHER,        SYSTEM, U_R1 | U_W1,           F0,   F0,     0,      0)      \
    X(VERR,   OTHER,        SYSTEM, U_R1,                  F0,   FZ,     0,      0)      \
    X(LAR,    OTHER,        SYSTEM, U_RMW,                 F0,   FZ,     0,      0)      \
    X(INVD,   OTHER,        SYSTEM, 0,                     F0,   F0,     0,      0)      \
    X(INVLPG, OTHER,        SYSTEM, U_NOMEM,               F0,   F0,     0,      0)      \
    X(WRMSR,  WRITE_MSR,    SYSTEM, 0,                     F0,   F0,     ACD,    0)      \
    X(RDMSR,  OTHER,        SYSTEM, U_WHOLE,               F0,   F0,     R(CX),  AD)     \
    X(RDTSC,  OTHER,        SYSTEM, U_WHOLE,               F0,   F0,     0,      AD)     \
    X(RDTSCP, OTHER,        SYSTEM, U_WHOLE,               F0,   F0,     0,      ACD)    \
    X(CPUID,  OTHER,        SYSTEM, U_WHOLE, F0, F0, R(AX) | R(CX),              ABCD)   \
    X(WRXCR,  OTHER,        SYSTEM, 0,                     F0,   F0,     ACD,    0)      \
    X(RDBASE, OTHER,        SYSTEM, U_W1,                  F0,   F0,     0,      0)      \
    X(WRBASE, WRITE_BASE,   SYSTEM, U_R1,                  F0,   F0,     0,      0)      \
    X(RDRAND, OTHER,        SYSTEM, U_W1,                  F0,   FS,     0,      0)      \
    X(PTWRIT, OTHER,        SYSTEM, U_R1,                  F0,   F0,     0,      0)      \
    X(MONITR, OTHER,        SYSTEM, U_MEM,                 F0,   F0,     ACD,    0)      \
    X(MWAIT,  MWAIT,        SYSTEM, 0,                     F0,   F0,     ABCD,   0)      \
    X(UMONIT, OTHER,        SYSTEM, U_R1 | U_MEM,          F0,   F0,     0,      0)      \
    X(TPAUSE, MWAIT,        SYSTEM, U_R1,                  F0,   FS,     AD,     0)      \
    X(XSAVE,  OTHER,        SYSTEM, 0,                     F0,   F0,     AD,     0)      \
    X(SERIAL, OTHER,        SYSTEM, 0,                     F0,   F0,     0,      0)      \
    X(SYSANY, OTHER,        SYSTEM, U_ANY,                 F0,   F0,     0,      0)      \
    X(SHSTK,  SHADOW_STACK, SYSTEM, U_ANY,                 F0,   F0,     0,      0)      \
    X(XBEGIN, XBEGIN,       TRAP,   U_ANY,                 F0,   F0,     0,      0)      \
    X(XABORT, XABORT,       TRAP,   U_ANY,                 F0,   F0,     0,      0)      \
    X(XEND,   XEND,         SYSTEM, U_ANY,                 F0,   F0,     0,      0)      \
    X(XTEST,  OTHER,        SYSTEM, 0,                     F0,   FS,     0,      0)      \
    X(VMX,    VMX,          VIRT,   U_ANY,                 F0,   F0,     0,      0)      \
    X(SVM,    SVM,          VIRT,   U_ANY,                 F0,   F0,     0,      0)      \
    X(SGX,    SGX,          VIRT,   U_ANY,                 F0,   F0,     0,      0)      \
    X(MODE,   MODE,         SYSTEM, U_ANY,                 F0,   F0,     0,      0)      \
    X(X87,    OTHER,        X87,    U_MAYBE, FS, FS,       R(AX),                R(AX))  \
    X(FWAIT,  OTHER,        X87,    0,                     F0,   F0,     0,      0)      \
    X(EMMS,   OTHER,        SSE,    0,                     F0,   F0,     0,      0)      \
    X(VEC,    OTHER,        SSE,    U_VECTOR | U_MAYBE,    F0,   FS,     0,      0)      \
    X(PADLCK, OTHER,        SYSTEM, U_ANY,                 F0,   F0,     0,      0)

/* Groups: the op is chosen by modrm.reg. They follow the ops in enum opcode_op. */
#define OPCODE_GROUPS(X)                                                                 \
    X(G1) X(G1A) X(G2) X(G3B) X(G3V) X(G4) X(G5) X(G6) X(G7) X(G8) X(G9) X(G11) X(G15)   \
    X(G16) X(GSEGR) X(GSEGW) X(GCRR) X(GCRW) X(GPREF) X(GCLDM) X(GHINT) X(GMPX) \
    X(GMPXM)

/* clang-format on */

#define OPCODE_OP_ENUM(name, ...) OP_##name,
#define OPCODE_FORM_ENUM(name, ...) FM_##name,
enum opcode_op {
    OPCODE_OPS(OPCODE_OP_ENUM) OP_COUNT,
    OP_GROUPS = OP_COUNT - 1,
    OPCODE_GROUPS(OPCODE_OP_ENUM) OP_GROUPS_END,
};
enum opcode_form { OPCODE_FORMS(OPCODE_FORM_ENUM) FM_COUNT };
