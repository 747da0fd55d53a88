/* insn_kinds.h - the kinds of instructions that the engine tells apart, and their traits.
 *
 * A kind is what a caller switches on instead of an opcode number. Most instructions are
 * OTHER: they compute, may touch memory, and go on to the next one. Pure.
 */
#pragma once

/* Traits of a kind.
 *
 * GOES    the program may go on elsewhere than at the next instruction
 * ENDS    the program never goes on at the next instruction
 * MOVES   a relocated copy at another address has the same effect
 * BOOSTS  a copy may have a jump back directly behind it, in place of a trap: the program
 *         always goes on at the next instruction, and it makes no difference that the CPU
 *         executes the jump back before that instruction
 */
#define INSN_GOES 1
#define INSN_ENDS 2
#define INSN_MOVES 4
#define INSN_BOOSTS 8

#define INSN_PLAIN (INSN_MOVES | INSN_BOOSTS)
#define INSN_LEAVES (INSN_GOES | INSN_ENDS)

/* clang-format off */
#define INSN_KINDS(X)                                                                    \
    /* goes on to the next instruction */                                                \
    X(OTHER,         INSN_PLAIN)               /* anything not named below */            \
    X(NOP,           INSN_PLAIN)               /* of any length; not pause */            \
    X(ENDBR,         INSN_PLAIN)               /* endbr64, endbr32 */                    \
    X(PUSH_REG,      INSN_PLAIN)               /* 64-bit; the register is rm */          \
    X(PUSH_IMM,      INSN_PLAIN)               /* 64-bit; the value is imm */            \
    X(POP_REG,       INSN_PLAIN)               /* 64-bit; the register is rm */          \
    X(STRING,        INSN_PLAIN)               /* movs cmps stos lods scas, any rep */   \
    X(IN,            INSN_PLAIN)               /* in, ins */                             \
    X(OUT,           INSN_PLAIN)               /* out, outs */                           \
    X(PUSHF,         INSN_PLAIN)                                                         \
    X(POPF,          INSN_MOVES)               /* with TF set, the jump would trap */    \
    X(CLI,           INSN_PLAIN)                                                         \
    X(STI,           INSN_MOVES)               /* its shadow would cover the jump */     \
    X(HLT,           INSN_PLAIN)                                                         \
    X(MWAIT,         INSN_MOVES)               /* mwait[x], umwait, tpause */            \
    X(MOV_SS,        0)                        /* delays traps by one instruction */     \
    X(MOV_DS,        INSN_PLAIN)               /* mov to ds, es: no trap needs them */   \
    X(LOAD_SEG,      INSN_MOVES)               /* fs gs, lss lfs lgs */                  \
    X(SWAPGS,        INSN_MOVES)                                                         \
    X(WRITE_BASE,    INSN_MOVES)               /* wrfsbase, wrgsbase */                  \
    X(WRITE_MSR,     INSN_PLAIN)               /* wrmsr, wrmsrns */                      \
    X(MOV_FROM_CR,   INSN_PLAIN)                                                         \
    X(MOV_TO_CR,     INSN_PLAIN)               /* also lmsw, clts */                     \
    X(MOV_FROM_DR,   INSN_PLAIN)                                                         \
    X(MOV_TO_DR,     INSN_PLAIN)                                                         \
    X(LGDT,          INSN_PLAIN)               /* a trap behind it uses its table */     \
    X(LIDT,          INSN_PLAIN)               /* likewise */                            \
    X(LLDT,          INSN_PLAIN)                                                         \
    X(LTR,           INSN_PLAIN)                                                         \
    X(SHADOW_STACK,  INSN_MOVES)               /* writes to the CET shadow stack */      \
    X(XEND,          INSN_MOVES)                                                         \
    /* goes somewhere */                                                                 \
    X(CALL_REL,      INSN_GOES)                                                          \
    X(CALL_REG,      INSN_GOES)                                                          \
    X(CALL_MEM,      INSN_GOES)                                                          \
    X(JMP_REL,       INSN_LEAVES | INSN_MOVES)                                           \
    X(JMP_REG,       INSN_LEAVES | INSN_MOVES)                                           \
    X(JMP_MEM,       INSN_LEAVES | INSN_MOVES)                                           \
    X(JCC,           INSN_GOES | INSN_MOVES)   /* condition in cond */                   \
    X(LOOP,          INSN_GOES | INSN_MOVES)   /* variant in loop, counter addrsize */   \
    X(JRCXZ,         INSN_GOES | INSN_MOVES)   /* counter addrsize */                    \
    X(RET,           INSN_LEAVES | INSN_MOVES) /* drops `pop` more bytes */              \
    X(CALL_FAR,      INSN_GOES)                                                          \
    X(JMP_FAR,       INSN_LEAVES)                                                        \
    X(RET_FAR,       INSN_LEAVES)                                                        \
    X(IRET,          INSN_LEAVES)              /* also uiret, eret */                    \
    X(SYSCALL,       INSN_GOES)                                                          \
    X(SYSENTER,      INSN_LEAVES)                                                        \
    X(SYSRET,        INSN_LEAVES)                                                        \
    X(SYSEXIT,       INSN_LEAVES)                                                        \
    X(XBEGIN,        INSN_GOES)                                                          \
    X(XABORT,        INSN_GOES)                                                          \
    /* traps, or continues where the engine cannot follow */                             \
    X(INT3,          INSN_GOES)                                                          \
    X(INT1,          INSN_GOES)                                                          \
    X(INTN,          INSN_GOES)                                                          \
    X(UD,            INSN_ENDS | INSN_PLAIN)   /* ud0, ud1, ud2: #UD, a fault */         \
    X(VMX,           INSN_GOES)                /* also of TDX */                         \
    X(SVM,           INSN_GOES)                /* also of SEV */                         \
    X(SGX,           INSN_GOES)                                                          \
    X(MODE,          INSN_LEAVES)              /* rsm, getsec */
/* clang-format on */

#define INSN_KIND_ENUM(name, traits) INSN_##name,
enum insn_kind { INSN_KINDS(INSN_KIND_ENUM) INSN_KIND_COUNT };

/* Coarse classes, for tables that show how the instructions of each class were run. */
/* clang-format off */
#define INSN_CLASSES(X)                                                                  \
    X(MOV) X(LEA) X(STACK) X(ALU) X(SHIFT) X(BIT) X(MULDIV) X(ATOMIC) X(CMOV) X(SETCC)   \
    X(FLAGS) X(STRING) X(NOP) X(JMP) X(JCC) X(LOOP) X(CALL) X(RET) X(TRAP) X(IO)         \
    X(SYSTEM) X(VIRT) X(X87) X(SSE) X(AVX) X(AVX512) X(XOP)
/* clang-format on */

#define INSN_CLASS_ENUM(name) INSN_CLASS_##name,
enum insn_class { INSN_CLASSES(INSN_CLASS_ENUM) INSN_CLASS_COUNT };
