/* compare_parts.h - the functions that compare.c calls for each instruction. Host
 * only.
 */
#pragma once

#include "probes/insn/insn.h"
#include "tests/insn/compare.h"
#include "tests/insn/zydis_kind.h"

/* ask - count one answer about @ours. */
static inline void ask(enum fact fact, const struct insn *ours, bool holds)
{
    fact_count(fact, holds, ours->bytes, ours->len);
}

/* compare_operands - compare fields, conditions, targets and addresses.
 * compare_effects - compare effects on registers, flags and memory.
 * compare_mnemonic - compare the name of the instruction.
 * compare_moved - compare the original with a copy at an address that @seed chooses.
 *                 This needs no Zydis.
 */
void compare_operands(const struct insn *ours, const struct theirs *t, uint64_t seed);
void compare_mnemonic(const struct insn *ours, const struct theirs *t);
void compare_effects(const struct insn *ours, const struct theirs *t);
void compare_moved(const struct insn *ours, uint64_t seed);
