/* mnemonic.h - what an instruction is called. Pure. */
#pragma once

#include "probes/insn/insn.h"

#define INSN_MNEMONIC_MAX 24 /* bytes, the NUL included */

/* insn_mnemonic - the name of @insn, behind "lock " or "rep " where it has these prefixes:
 * "mov", "jne", "lock cmpxchg". Its operands are not shown.
 * @buf:   for the text
 * @insn:  as insn_decode() has filled it
 *
 * Context: any.
 * Return:  @buf; NULL: instructions of the vector unit, of the x87, of virtualization and of
 *          shadow stacks, and a few of the system have no name here. Their class says which.
 */
const char *insn_mnemonic(char buf[INSN_MNEMONIC_MAX], const struct insn *insn);
