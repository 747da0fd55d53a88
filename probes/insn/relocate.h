/* relocate.h - copy an instruction to another address, with the same effect. Pure. */
#pragma once

#include "probes/insn/insn.h"

/* No copy of any instruction is longer than this. */
#define INSN_RELOCATED_MAX_LEN 15

/* insn_relocate - write a copy of @insn that has the same effect at @to as @insn at
 * insn->addr.
 * @out:      the buffer for the copy; not touched on error
 * @out_cap:  bytes of @out; INSN_RELOCATED_MAX_LEN is always enough
 * @to:       the address the copy will run at
 * @out_len:  receives the length of the copy, in bytes; not touched on error. The copy may
 *            be longer than the instruction, and may be several instructions. If the
 *            program goes on behind the original, it goes on behind the last byte of the
 *            copy
 *
 * A displacement from rip gets a new value. A short branch becomes a near branch. loop and
 * jrcxz have no near form: their copy jumps over a near jump. The copy of a relative branch
 * has no prefixes that are only hints; the prefix that chooses the counter of loop and
 * jrcxz stays.
 *
 * Context: any.
 * Return:  0; -EOPNOTSUPP no copy can have the same effect (insn_can_move), as for calls;
 *          -ERANGE a displacement does not reach; -E2BIG @out_cap is too small.
 */
int insn_relocate(uint8_t *out, size_t out_cap, const struct insn *insn, uintptr_t to,
                  size_t *out_len);

/* insn_relocated_len - the length of insn_relocate's copy, which is the same at every
 * address; 0 if insn_relocate() refuses. Context: any.
 */
size_t insn_relocated_len(const struct insn *insn);
