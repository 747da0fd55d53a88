/* handler.c - decodes a handler, to find out which registers must be saved so that the
 * engine can leave the handler in the middle.
 */
#include "probes/jump/handler.h"

#include "kernel/base/bits.h"
#include "probes/core/life.h"
#include "probes/insn/effects.h"

#define KEPT                                                                             \
    (BIT(INSN_BX) | BIT(INSN_R12) | BIT(INSN_R13) | BIT(INSN_R14) | BIT(INSN_R15))

struct reading {
    struct plat_symbol function;
    bool keeps;
};

static bool stays_inside(const struct reading *l, const struct insn *insn)
{
    if (insn->kind != INSN_JMP_REL && insn->kind != INSN_JCC)
        return !insn_is_branch(insn);
    return insn->target - l->function.start < l->function.size;
}

/* changes_cpu - may @insn change a flag of the CPU, or the preemption count, which code
 * reaches by GS? clac and stac have no kind, so all instructions with their opcode count.
 */
static bool changes_cpu(const struct insn *insn, const struct insn_effects *effects)
{
    bool is_ac = insn->map == 1 && insn->opcode == 0x01;
    bool loads = insn->map == 0 && insn->opcode == 0x8b;

    return insn->kind == INSN_CLI || insn->kind == INSN_STI || insn->kind == INSN_POPF ||
           effects->flags_written & FLAGS_DF || is_ac ||
           (insn->has_mem && insn->seg == INSN_SEG_GS && !loads);
}

static void read_insn(const struct insn *insn, void *arg)
{
    struct insn_effects effects;
    struct reading *l = arg;

    if (insn->kind == INSN_RET)
        return;
    insn_effects(insn, &effects);
    if (effects.regs_written & KEPT || !stays_inside(l, insn) ||
        changes_cpu(insn, &effects))
        l->keeps = false;
}

bool handler_keeps_callee_saved(uintptr_t fn)
{
    struct reading l = { .keeps = true };

    if (plat_symbol_at(fn, &l.function) || boundary_for_each(&l.function, read_insn, &l))
        return false;
    return l.keeps;
}
