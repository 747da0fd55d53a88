/* handler.c - decodes a handler, to find out which registers must be saved so that the
 * engine can leave the handler in the middle, and whether it needs an image.
 */
#include "probes/jump/handler.h"

#include "kernel/base/bits.h"
#include "probes/core/life.h"
#include "probes/core/recover.h"
#include "probes/insn/effects.h"
#include "probes/insn/encode.h"

#define KEPT                                                                             \
    (BIT(INSN_BX) | BIT(INSN_R12) | BIT(INSN_R13) | BIT(INSN_R14) | BIT(INSN_R15))

#define TARGETS_MAX 8

struct reading {
    struct plat_symbol function;
    bool keeps;
    bool takes_image; /* it may read its second argument, or return something but 0 */
    bool
        has_zero; /* eax is 0 in front of the next instruction, from wherever CPUs come */
    uintptr_t targets[TARGETS_MAX]; /* of its branches, which all lead forward */
    unsigned target_count;
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

    return insn->kind == INSN_CLI || insn->kind == INSN_STI ||
           effects->flags_written & FLAGS_DF || is_ac ||
           (insn->has_mem && insn->seg == INSN_SEG_GS && !loads);
}

/* handler_has_key - may @insn be the NOP of a static key? It becomes a branch when the key is
 * switched. The NOP at an entry is no key's.
 */
static bool handler_has_key(const struct reading *l, const struct insn *insn)
{
    return insn->map == 1 && insn->opcode == 0x1f && insn->len == INSN_JMP32_LEN &&
           insn->addr != l->function.start;
}

static bool handler_is_target(const struct reading *l, uintptr_t addr)
{
    for (unsigned i = 0; i < l->target_count; i++)
        if (l->targets[i] == addr)
            return true;
    return false;
}

/* handler_note_target - remember where a branch leads. Behind a loop, or very many branches,
 * nothing is certain.
 */
static void handler_note_target(struct reading *l, const struct insn *insn)
{
    if (insn->target <= insn->addr || l->target_count == TARGETS_MAX)
        l->takes_image = true;
    else
        l->targets[l->target_count++] = insn->target;
}

static bool is_zero_ax(const struct insn *insn)
{
    return insn->map == 0 && (insn->opcode == 0x31 || insn->opcode == 0x33) &&
           insn->opsize >= 4 && insn->mod == 3 && insn->reg == INSN_AX &&
           insn->rm == INSN_AX;
}

/* follow_image - does the handler still do nothing with its image, and return 0? */
static void follow_image(struct reading *l, const struct insn *insn,
                         const struct insn_effects *effects)
{
    if (handler_is_target(l, insn->addr))
        l->has_zero = false;
    if (insn->kind == INSN_RET) {
        l->takes_image |= !l->has_zero;
        return;
    }
    if (insn_is_branch(insn))
        handler_note_target(l, insn);
    l->takes_image |= effects->regs_read & BIT(INSN_SI);
    if (is_zero_ax(insn))
        l->has_zero = true;
    else if (effects->regs_written & BIT(INSN_AX))
        l->has_zero = false;
}

static void read_insn(struct reading *l, const struct insn *insn)
{
    struct insn_effects effects;

    insn_effects(insn, &effects);
    follow_image(l, insn, &effects);
    if (insn->kind == INSN_RET)
        return;
    if (effects.regs_written & KEPT || !stays_inside(l, insn) ||
        changes_cpu(insn, &effects) || handler_has_key(l, insn))
        l->keeps = false;
}

unsigned handler_read(uintptr_t fn)
{
    struct reading l = { .keeps = true };
    uint8_t bytes[INSN_MAX_LEN];
    struct insn insn;
    size_t left;

    if (plat_symbol_at(fn, &l.function))
        return 0;
    for (size_t off = 0; off < l.function.size; off += insn.len) {
        uintptr_t addr = l.function.start + off;

        left = l.function.size - off;
        left = left < sizeof(bytes) ? left : sizeof(bytes);
        if (recover_bytes(bytes, addr, left) || insn_decode(&insn, bytes, left, addr))
            return 0;
        read_insn(&l, &insn);
        if (!l.keeps)
            return 0;
    }
    return HANDLER_KEEPS | (l.takes_image ? 0 : HANDLER_NO_IMAGE);
}
