/* mnemonic.h - tell the name of an instruction. Pure. */
#pragma once

#include "probes/insn/insn.h"

#define INSN_MNEMONIC_MAX 24 /* bytes, the NUL included */

/* insn_mnemonic - write the name of @insn to @buf, with "lock " or "rep " in front if it
 * has these prefixes: "mov", "jne", "lock cmpxchg". The operands are not part of the name.
 * @insn:  an instruction that insn_decode() has filled in
 *
 * Context: any.
 * Return:  @buf; NULL: the instruction has no name here. These are the instructions of the
 *          vector unit, of the x87, of virtualization and of shadow stacks, and a few
 *          system instructions. The caller can show their class instead.
 */
const char *insn_mnemonic(char buf[INSN_MNEMONIC_MAX], const struct insn *insn);
