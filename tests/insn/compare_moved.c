/* compare_moved.c - checks that a relocated copy means the same as the original. */
#include "probes/insn/relocate.h"

#include "kernel/base/err.h"
#include "tests/insn/compare_parts.h"

/* copy_agrees - does the copy at @to lead to the same target as @ours, or refer to the
 * same memory, and are its other bytes the same?
 */
static bool copy_agrees(const struct insn *ours, const uint8_t *copy, size_t len,
                        uintptr_t to)
{
    struct insn moved;
    size_t at = 0;

    if (ours->kind == INSN_LOOP || ours->kind == INSN_JRCXZ) {
        if (insn_decode(&moved, copy, len, to) || moved.kind != ours->kind ||
            moved.addrsize != ours->addrsize || moved.loop != ours->loop)
            return false;
        at = moved.target - to; /* taken: to the jump at the end of the copy */
        if (insn_decode(&moved, copy + moved.len, len - moved.len, insn_next(&moved)) ||
            moved.kind != INSN_JMP_REL || moved.target != to + len)
            return false;
    }
    if (insn_decode(&moved, copy + at, len - at, to + at) || at + moved.len != len)
        return false;
    if (moved.target != ours->target || moved.mem != ours->mem)
        return false;
    if (ours->kind == INSN_LOOP || ours->kind == INSN_JRCXZ)
        return moved.kind == INSN_JMP_REL;
    if (moved.kind != ours->kind || moved.cond != ours->cond)
        return false;
    if (ours->kind == INSN_JMP_REL || ours->kind == INSN_JCC)
        return true;
    for (unsigned i = 0; i < ours->len; i++) {
        bool in_disp = i >= ours->disp_off && i < ours->disp_off + 4u;

        if (copy[i] != ours->bytes[i] && !(ours->rip_relative && in_disp))
            return false;
    }
    return true;
}

void compare_moved(const struct insn *ours, uint64_t seed)
{
    uintptr_t to = ours->addr + (uintptr_t)((int64_t)(seed << 31) >> 31);
    uint8_t copy[INSN_RELOCATED_MAX_LEN];
    size_t len = 0;
    int err = insn_relocate(copy, sizeof(copy), ours, to, &len);
    bool reaches = (ours->rip_relative && ours->addrsize == 8) || ours->target;

    if (err == -EOPNOTSUPP) {
        ask(FACT_MOVED, ours, !insn_can_move(ours) && insn_relocated_len(ours) == 0);
        return;
    }
    if (err == -ERANGE) {
        uintptr_t what = ours->rip_relative ? ours->mem : ours->target;
        int64_t gap = (int64_t)(what - to);

        ask(FACT_MOVED, ours, reaches && (gap > INT32_MAX - 16 || gap < INT32_MIN + 16));
        return;
    }
    ask(FACT_MOVED, ours,
        err == 0 && len == insn_relocated_len(ours) && copy_agrees(ours, copy, len, to));
}
