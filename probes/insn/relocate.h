/* relocate.h - the same instruction at another address. Pure. */
#pragma once

#include "probes/insn/insn.h"

/* No copy is longer than this, whatever the instruction. */
#define INSN_RELOCATED_MAX_LEN 15

/* insn_relocate - write a copy of @insn that means at @to what it means at insn->addr.
 * @out:      where to write; not touched on error
 * @out_cap:  bytes there; INSN_RELOCATED_MAX_LEN is always enough
 * @to:       the address the copy will run at
 * @out_len:  bytes written; the copy may be longer than the instruction, and may be
 *            several instructions; where the original goes on, it goes on at its end
 *
 * A displacement counted from rip is counted anew, a short branch becomes a near one, and
 * loop and jrcxz, which have no near form, hop over a jump. A relative branch loses the
 * prefixes that only hint; the one that chooses the counter of loop and jrcxz stays.
 *
 * Context: any.
 * Return:  0; -EOPNOTSUPP means something else when moved (insn_can_move): calls among
 *          others; -ERANGE a displacement does not reach; -E2BIG @out_cap is too small.
 */
int insn_relocate(uint8_t *out, size_t out_cap, const struct insn *insn, uintptr_t to,
                  size_t *out_len);

/* insn_relocate_call - the same for near calls, which insn_relocate refuses: the copy
 * pushes the address behind itself, not behind @insn. For a caller that makes up for that.
 *
 * Context: any.
 * Return:  as insn_relocate; -EOPNOTSUPP also if @insn is not a near call.
 */
int insn_relocate_call(uint8_t *out, size_t out_cap, const struct insn *insn,
                       uintptr_t to, size_t *out_len);

/* insn_relocated_len - how long insn_relocate's copy is, wherever it goes; 0 if it
 * refuses. Context: any.
 */
size_t insn_relocated_len(const struct insn *insn);
