/* step.c - stage 8: run the copy and trap behind it, because a post-handler wants to know.
 *
 * Two engines. INT3: the copy ends in an int3. TF: the CPU traps after one instruction.
 * Both find out whose step it was from the ip alone, since every cell knows its site. So
 * nothing is kept between the two traps: interrupts may come, the thread may be preempted
 * or move to another CPU in the middle of a step.
 *
 * TF is not used in NMI context, where the way back is without IRET, nor for what a single
 * step would undo. A program that has TF set traps behind the instruction on its own
 * account: it runs in the cell without a trap, and its #DB serves both.
 */
#include "probes/core/cache.h"
#include "probes/core/extend.h"
#include "probes/core/hit.h"
#include "probes/core/insn_slot.h"

#define DR6_BS (1ul << 14) /* this #DB is a single step */

enum step_engine step_engine = STEP_INT3;

void step_set_engine(enum step_engine to)
{
    WRITE_ONCE(step_engine, to);
}

enum step_engine step_get_engine(void)
{
    return step_engine;
}

struct site *step_site(uintptr_t int3)
{
    size_t off;
    struct site *site = insn_slot_owner(int3, &off);

    if (!site || int3 - off != (uintptr_t)site_step_slot(site) || off != site->len)
        return NULL;
    return site;
}
NOKPROBE(step_site);

/* The program steps itself, and sees a trap behind each iteration, at its own instruction.
 * It goes on in the copy: at the original each iteration would be a hit.
 */
NOKPROBE_INLINE void raise_iteration(struct site *site, struct pt_regs *regs)
{
    uintptr_t slot = regs->ip;

    regs->ip = site->addr;
    plat_raise_step(regs);
    if (regs->ip == site->addr)
        regs->ip = slot;
}

/* At the start of a copy the program is either behind an iteration, or has come by a jump.
 * The copy of a branch may be several instructions, and is not stepped. Only in the slot for
 * steps is there nothing in front of the copy.
 * Return: false when neither can be.
 */
NOKPROBE_INLINE bool step_at_copy(struct site *site, struct pt_regs *regs, bool iterates)
{
    if (site->way == WAY_EMULATE) {
        hit_run_alone(site, regs);
        return true;
    }
    if (site->repeats && iterates)
        raise_iteration(site, regs);
    return site->repeats || regs->ip != (uintptr_t)site->step_slot;
}

/* go_on - behind the probed instruction. Where a jump lies there, the program must see its
 * own step before it is sent on to the copies.
 * Return: false when its step is still to be raised.
 */
NOKPROBE_INLINE bool go_on(struct site *site, struct pt_regs *regs)
{
    if (likely(!READ_ONCE(site->asks_resume)))
        return false;
    plat_raise_step(regs);
    ext_resume(site, regs);
    return true;
}

bool step_in_copy(struct site *site, uintptr_t copy, bool iterates, struct pt_regs *regs,
                  struct probe_cpu *cpu)
{
    if (regs->ip == copy)
        return step_at_copy(site, regs, iterates);
    if (regs->ip != copy + site->len)
        return false;
    hit_stepped(cpu, site, regs, probe_in_nmi(cpu), false);
    return go_on(site, regs);
}
NOKPROBE(step_in_copy);

/* step_ended - a step of the engine's own. */
NOKPROBE_INLINE void step_ended(struct probe_cpu *cpu, struct site *site,
                                struct pt_regs *regs, bool in_nmi)
{
    probe_count(&cpu->steps);
    regs->flags &= ~FLAGS_TF;
    hit_stepped(cpu, site, regs, in_nmi, true);
    site_go_on(site, regs);
}

/* step_by_program - the other steps: whose TF it was, and what it has run into. */
static bool step_by_program(struct pt_regs *regs, struct probe_cpu *cpu)
{
    enum ext_step elsewhere = ext_step(regs, cpu);
    struct site *site;
    uintptr_t copy;
    size_t off;

    if (elsewhere != EXT_STEP_NONE)
        return elsewhere == EXT_STEP_INSIDE;
    site = insn_slot_owner(regs->ip, &off);
    copy = site ? copy_start(site, regs->ip - off) : 0;
    return copy &&
           step_in_copy(site, copy, copy == (uintptr_t)site_boost_slot(site), regs, cpu);
}
NOKPROBE(step_by_program);

bool kprobe_debug_handler(struct pt_regs *regs, struct probe_cpu *cpu)
{
    struct site *site;
    bool in_nmi;

    if (!(regs->dr6 & DR6_BS) || !cpu)
        return false;
    in_nmi = probe_in_nmi(cpu);
    if (unlikely(!cache_find_step(cpu, regs->ip, in_nmi, &site)))
        return step_by_program(regs, cpu);
    step_ended(cpu, site, regs, in_nmi);
    return true;
}
NOKPROBE(kprobe_debug_handler);
