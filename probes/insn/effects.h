/* effects.h - which general registers and flags an instruction reads and writes. Pure.
 *
 * The value that a register has before an instruction matters if it is read, or not killed.
 * Every set errs on the side that lets it matter.
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/insn/insn.h"

#define INSN_REGS_ALL 0xffffu

/* The flags that are followed one by one; the others are not looked at. */
#define INSN_FLAGS_STATUS                                                                \
    (FLAGS_CF | FLAGS_PF | FLAGS_AF | FLAGS_ZF | FLAGS_SF | FLAGS_OF)
#define INSN_FLAGS_ALL (INSN_FLAGS_STATUS | FLAGS_DF)

struct insn_effects {
    /* Bit n: general register n. */
    uint32_t regs_read;    /* its old value may matter; includes partly written ones */
    uint32_t regs_written; /* may have another value afterwards */
    uint32_t regs_killed;  /* not read, and written entirely in any case */
    /* FLAGS_* bits out of INSN_FLAGS_ALL; left undefined counts as written. */
    uint32_t flags_read;
    uint32_t flags_written;
    uint32_t flags_killed;
};

/* insn_effects - the sets of @insn.
 *
 * A call, a return, a trap and whatever the tables do not know reads and may write
 * everything and kills nothing: what a calling convention promises is for the caller to
 * add. A fault is not an effect.
 *
 * Context: any.
 */
void insn_effects(const struct insn *insn, struct insn_effects *out);
