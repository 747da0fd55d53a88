/* operand.h - compute operands and conditions of an instruction from an image. Pure. */
#pragma once

#include "kernel/base/regs.h"
#include "probes/insn/insn.h"

/* insn_reg - the field of @regs that holds general register @n (0..15). Context: any. */
unsigned long *insn_reg(struct pt_regs *regs, unsigned n);

/* insn_effective_address - the address of the memory operand.
 * @insn:  must have has_mem; no EVEX instruction, and none with a vector register as index
 * @regs:  the registers before the instruction; regs->ip is not used
 *
 * A rip-relative operand is computed from insn->addr, also if a copy runs at another
 * address. The base of FS or GS is not added: the caller looks at insn->seg.
 *
 * Context: any.
 */
uintptr_t insn_effective_address(const struct insn *insn, const struct pt_regs *regs);

/* insn_cond_holds - does condition @cond (0..15, insn->cond) hold under @flags (RFLAGS)?
 * insn_cond_flags - the flags that condition @cond depends on, FLAGS_* bits.
 * Context: any.
 * Source:  SDM vol. 1, "EFLAGS Condition Codes".
 */
bool insn_cond_holds(unsigned cond, unsigned long flags);
unsigned long insn_cond_flags(unsigned cond);
