/* zydis_kind.h - what Zydis decoded, and the kind that follows from it. Host only. */
#pragma once

#include "probes/insn/insn.h"

#include <Zydis/Zydis.h>

struct theirs {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* zydis_kind - INSN_OTHER for whatever has no kind of its own. */
enum insn_kind zydis_kind(const struct theirs *t);
