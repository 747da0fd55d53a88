/* emulate.c - stage 8: applies the effect of an instruction to the image, for
 * instructions that a copy should not run. The meaning of most of them depends on their
 * address. PUSHF, POPF and CLI work on flags: those of the image are the program's,
 * without any of the engine, such as the TF of a step.
 *
 * An emulated PUSHF or call writes to the stack, right below the program's stack pointer.
 * The entries of #BP and #DB, and the code of a detour, leave a gap there, so that the
 * word does not overwrite the image.
 */
#include "probes/core/life.h"
#include "probes/insn/operand.h"

#define FLAGS_ARITH_AND_CONTROL                                                          \
    (FLAGS_CF | FLAGS_PF | FLAGS_AF | FLAGS_ZF | FLAGS_SF | FLAGS_TF | FLAGS_IF |        \
     FLAGS_DF | FLAGS_OF | FLAGS_IOPL | FLAGS_NT | FLAGS_AC | FLAGS_ID)

bool emulate_supports(const struct insn *insn)
{
    switch (insn->kind) {
    case INSN_PUSHF:
    case INSN_POPF:
    case INSN_CLI:
        return true;
    default:
        return insn_is_near_branch(insn);
    }
}

static uint8_t detail_of(const struct insn *insn)
{
    switch (insn->kind) {
    case INSN_JCC:
        return insn->cond;
    case INSN_LOOP:
        return insn->loop;
    default:
        return insn->rm;
    }
}

void emulate_prepare(struct emulation *e, const struct insn *insn)
{
    *e = (struct emulation){
        .kind = (uint8_t)insn->kind,
        .detail = detail_of(insn),
        .opsize = insn->opsize == 2 ? 2 : 8,
        .addrsize = insn->addrsize,
        .base = insn->base,
        .index = insn->index,
        .scale = insn->scale,
        .seg = insn->seg,
        .disp = insn->has_mem ? insn->disp : (int32_t)(insn->target - insn_next(insn)),
        .pop = insn->pop,
        .rip_relative = insn->rip_relative,
    };
}

/* ---- operands ---- */

NOKPROBE_INLINE uintptr_t address_of(const struct site *site, const struct pt_regs *regs)
{
    const struct emulation *e = &site->emul;
    uintptr_t mem = site_target(site);
    struct insn operand = {
        .has_mem = true,
        .base = e->base,
        .index = e->index,
        .scale = e->scale,
        .disp = e->disp,
        .addrsize = e->addrsize,
        .rip_relative = e->rip_relative,
        .mem = e->addrsize == 4 ? (uint32_t)mem : mem,
    };
    uintptr_t addr = insn_effective_address(&operand, regs);

    return e->seg == INSN_SEG_NONE ? addr : addr + plat_seg_base(e->seg);
}

/* load_target - find where an indirect branch leads. Return: false: its operand cannot be
 * read, and a fault of the program was raised, at the original address.
 */
static NOINLINE bool load_target(const struct site *site, struct pt_regs *regs,
                                 uintptr_t *target)
{
    const struct emulation *e = &site->emul;
    uintptr_t addr;

    if (e->kind == INSN_CALL_REG || e->kind == INSN_JMP_REG) {
        *target = *insn_reg(regs, e->detail);
        return true;
    }
    addr = address_of(site, regs);
    if (!plat_read(target, addr))
        return true;
    regs->ip = site->addr;
    plat_raise_fault(regs, addr, !e->seg && (e->base == INSN_SP || e->base == INSN_BP));
    return false;
}
NOKPROBE(load_target);

/* The word right below the program's stack pointer is writable: the trap has just pushed
 * its frame there. But a handler may have lowered the stack pointer, to the image or below
 * it, where the word would overwrite the image or be overwritten. Then the word waits in
 * regs->cs, and trap_exit of entry.asm writes it when it has moved the image down.
 */
NOKPROBE_INLINE void stack_push(struct pt_regs *regs, uint64_t value, unsigned size)
{
    uint64_t *word = (uint64_t *)(regs->sp -= size);

    if (unlikely(!__STDC_HOSTED__ && regs->sp < (uintptr_t)(regs + 1))) {
        regs->cs = *word;
        word = &regs->cs;
    }
    if (size == 2)
        *(uint16_t *)word = (uint16_t)value;
    else
        *word = value;
}

/* stack_pop - read @size bytes at the program's stack pointer. plat_read() reads eight: if
 * @size is two, the others are those below, where memory is. The stack may end above.
 * Return: as load_target().
 */
static NOINLINE bool stack_pop(const struct site *site, struct pt_regs *regs,
                               uint64_t *value, unsigned size)
{
    if (plat_read(value, regs->sp - 8 + size)) {
        regs->ip = site->addr;
        plat_raise_fault(regs, regs->sp, true);
        return false;
    }
    *value >>= 64 - 8 * size;
    return true;
}
NOKPROBE(stack_pop);

/* ---- one function a kind ----
 *
 * A function of these is NOINLINE if it calls another function. Otherwise emulate_run()
 * would save registers for it with every kind.
 */

NOKPROBE_INLINE void emulate_call(const struct site *site, struct pt_regs *regs,
                                  uintptr_t target)
{
    stack_push(regs, site->addr + site->len, 8);
    regs->ip = target;
}

static NOINLINE bool emulate_indirect(const struct site *site, struct pt_regs *regs,
                                      bool calls)
{
    uintptr_t target;

    if (!load_target(site, regs, &target))
        return false;
    if (calls)
        emulate_call(site, regs, target);
    else
        regs->ip = target;
    return true;
}
NOKPROBE(emulate_indirect);

static NOINLINE bool emulate_ret(const struct site *site, struct pt_regs *regs)
{
    uint64_t target;

    if (!stack_pop(site, regs, &target, 8))
        return false;
    regs->sp += 8u + site->emul.pop;
    regs->ip = target;
    return true;
}
NOKPROBE(emulate_ret);

NOKPROBE_INLINE void branch(const struct site *site, struct pt_regs *regs, bool taken)
{
    regs->ip = taken ? site_target(site) : site->addr + site->len;
}

static NOINLINE void emulate_jcc(const struct site *site, struct pt_regs *regs)
{
    branch(site, regs, insn_cond_holds(site->emul.detail, regs->flags));
}
NOKPROBE(emulate_jcc);

/* counter - cut @cx to the counter of LOOP or JRCXZ. A counter of 32 bits gets an upper
 * half of 0, as every 32-bit register that a CPU writes.
 */
NOKPROBE_INLINE uint64_t counter(const struct emulation *e, uint64_t cx)
{
    return e->addrsize == 4 ? (uint32_t)cx : cx;
}

NOKPROBE_INLINE void emulate_loop(const struct site *site, struct pt_regs *regs)
{
    const struct emulation *e = &site->emul;
    bool zero = regs->flags & FLAGS_ZF;
    bool taken;

    regs->cx = counter(e, regs->cx - 1);
    taken = regs->cx != 0;
    if (e->detail == INSN_LOOPE)
        taken = taken && zero;
    else if (e->detail == INSN_LOOPNE)
        taken = taken && !zero;
    branch(site, regs, taken);
}

NOKPROBE_INLINE void emulate_pushf(const struct site *site, struct pt_regs *regs)
{
    stack_push(regs, regs->flags, site->emul.opsize);
    regs->ip = site->addr + site->len;
}

static NOINLINE bool emulate_popf(const struct site *site, struct pt_regs *regs)
{
    uint64_t value, mask = FLAGS_ARITH_AND_CONTROL;

    if (!stack_pop(site, regs, &value, site->emul.opsize))
        return false;
    if (site->emul.opsize == 2)
        mask &= 0xffff;
    regs->flags = (regs->flags & ~mask) | (value & mask);
    regs->sp += site->emul.opsize;
    regs->ip = site->addr + site->len;
    return true;
}
NOKPROBE(emulate_popf);

bool emulate_run(struct site *site, struct pt_regs *regs)
{
    const struct emulation *e = &site->emul;

    /* A watch of the site's address lets the int3 pass by RF. An emulator may clear RF only
     * where its block ends, and the next watched instruction would pass as well. A byte is
     * changed by one instruction.
     */
    ((uint8_t *)&regs->flags)[2] &= (uint8_t) ~(FLAGS_RF >> 16);
    switch (e->kind) {
    case INSN_CALL_REL:
        emulate_call(site, regs, site_target(site));
        return true;
    case INSN_CALL_REG:
    case INSN_CALL_MEM:
        return emulate_indirect(site, regs, true);
    case INSN_JMP_REL:
        regs->ip = site_target(site);
        return true;
    case INSN_JMP_REG:
    case INSN_JMP_MEM:
        return emulate_indirect(site, regs, false);
    case INSN_JCC:
        emulate_jcc(site, regs);
        return true;
    case INSN_LOOP:
        emulate_loop(site, regs);
        return true;
    case INSN_JRCXZ:
        branch(site, regs, counter(e, regs->cx) == 0);
        return true;
    case INSN_RET:
        return emulate_ret(site, regs);
    case INSN_PUSHF:
        emulate_pushf(site, regs);
        return true;
    case INSN_POPF:
        return emulate_popf(site, regs);
    case INSN_CLI:
        regs->flags &= ~FLAGS_IF;
        branch(site, regs, false);
        return true;
    default:
        plat_bug("emulating an instruction of the wrong kind", site->addr);
    }
}
NOKPROBE(emulate_run);
