/* effects.h - which general registers and flags an instruction reads and writes. Pure.
 *
 * The value that a register has before an instruction matters if it is read, or not killed.
 * If an effect is not certain, the sets say that the value matters.
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/insn/insn.h"

#define INSN_REGS_ALL 0xffffu

/* The sets hold the flags of INSN_FLAGS_ALL, and say nothing about other flags. */
#define INSN_FLAGS_STATUS                                                                \
    (FLAGS_CF | FLAGS_PF | FLAGS_AF | FLAGS_ZF | FLAGS_SF | FLAGS_OF)
#define INSN_FLAGS_ALL (INSN_FLAGS_STATUS | FLAGS_DF)

struct insn_effects {
    /* Bit n: general register n. */
    uint32_t regs_read;    /* its old value may matter; includes partly written ones */
    uint32_t regs_written; /* may have another value afterwards */
    uint32_t regs_killed;  /* not read, and written entirely in any case */
    /* FLAGS_* bits of INSN_FLAGS_ALL. A flag that is left undefined counts as written. */
    uint32_t flags_read;
    uint32_t flags_written;
    uint32_t flags_killed;
};

/* insn_effects - what @insn reads, writes and kills.
 * @insn: an instruction that insn_decode() has filled in
 *
 * Calls, returns, traps and instructions that the tables do not know count as instructions
 * that read and may write everything, and kill nothing. So a caller that relies on a calling
 * convention must apply it itself. A fault is not an effect.
 *
 * Context: any.
 */
void insn_effects(const struct insn *insn, struct insn_effects *out);
