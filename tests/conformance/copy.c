/* copy.c - decodes copies and compares them with their originals, field by field. */
#include "tests/conformance/copy.h"

#include "probes/core/insn_slot.h"
#include "probes/insn/relocate.h"

#define ELSEWHERE 0x123450 /* the distance of a copy from its original, in bytes */

static bool same_operands(const struct insn *a, const struct insn *b)
{
    if (a->has_mem != b->has_mem || a->rip_relative != b->rip_relative)
        return false;
    if (a->reg != b->reg || a->rm != b->rm || a->mod != b->mod || a->vvvv != b->vvvv)
        return false;
    if (a->base != b->base || a->index != b->index || a->scale != b->scale)
        return false;
    if (a->rip_relative)
        return a->mem == b->mem;
    return a->disp == b->disp && a->seg == b->seg;
}

static bool same_meaning(const struct insn *a, const struct insn *b)
{
    return a->kind == b->kind && a->class == b->class && a->op == b->op &&
           a->map == b->map && a->opcode == b->opcode && a->prefix == b->prefix &&
           a->encoding == b->encoding && a->rep == b->rep && a->lock == b->lock &&
           a->rex == b->rex && a->opsize == b->opsize && a->addrsize == b->addrsize &&
           a->imm == b->imm && same_operands(a, b);
}

static bool cell_is_same(const uint8_t *slot, const struct insn *insn)
{
    struct insn copy;

    if (!slot)
        return true;
    return !insn_decode(&copy, slot, INSN_SLOT_CODE_MAX, (uintptr_t)slot) &&
           copy.len == insn->len && same_meaning(insn, &copy);
}

/* relocated_is_same - make a copy of @insn for another address, and compare it. The copy
 * of a relative branch may be longer; it must lead to the same target.
 */
static bool relocated_is_same(const struct insn *insn)
{
    uint8_t bytes[INSN_RELOCATED_MAX_LEN];
    uintptr_t to = insn->addr + ELSEWHERE;
    struct insn copy;
    size_t len;

    if (insn_relocate(bytes, sizeof(bytes), insn, to, &len) || insn->kind == INSN_LOOP ||
        insn->kind == INSN_JRCXZ)
        return true;
    if (insn_decode(&copy, bytes, len, to) || copy.kind != insn->kind)
        return false;
    return insn->target ? copy.target == insn->target && copy.cond == insn->cond
                        : same_meaning(insn, &copy);
}

bool copy_is_same(const struct site *site, const struct insn *insn)
{
    if (site->way == WAY_EMULATE)
        return relocated_is_same(insn);
    return cell_is_same(site->boost_slot, insn) && cell_is_same(site->step_slot, insn);
}
