/* zydis_kind.h - the result of Zydis for an instruction, and the kind that follows from
 * it. Host only.
 */
#pragma once

#include "probes/insn/insn.h"

#include <Zydis/Zydis.h>

struct theirs {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* zydis_kind - return the kind of the instruction; INSN_OTHER if it has no kind of its
 * own.
 */
enum insn_kind zydis_kind(const struct theirs *t);
