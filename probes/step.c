/* step.c - stage 8: run the copy and trap behind it, because a post-handler wants to know.
 *
 * Two engines. INT3: the copy ends in an int3. TF: the CPU traps after one instruction.
 * Both find out whose step it was from the ip alone, since every cell knows its site. So
 * nothing is kept between the two traps: interrupts may come, the thread may be preempted
 * or move to another CPU in the middle of a step.
 *
 * TF is not used in NMI context, where the way back is without IRET. A program that has TF
 * set traps behind the instruction on its own account: it runs in the cell without a trap,
 * and its #DB serves both.
 */
#include "probes/life.h"
#include "probes/text/insn_slot.h"

#define DR6_BS (1ul << 14) /* this #DB is a single step */

static enum step_engine engine = STEP_INT3;

void step_set_engine(enum step_engine to)
{
    WRITE_ONCE(engine, to);
}

enum step_engine step_get_engine(void)
{
    return engine;
}

void step_run(struct probe_cpu *cpu, struct site *site, struct pt_regs *regs)
{
    if (regs->flags & FLAGS_TF) {
        boost_run(site, regs);
        return;
    }
    regs->ip = (uintptr_t)site->step_slot;
    if (READ_ONCE(engine) == STEP_TF && !probe_in_nmi(cpu))
        regs->flags |= FLAGS_TF;
}
NOKPROBE(step_run);

/* step_done - the copy has run to its end; the program goes on behind the original. */
NOKPROBE_INLINE void step_done(struct probe_cpu *cpu, struct site *site,
                               struct pt_regs *regs)
{
    struct probe_hit *hit;

    regs->ip = site->addr + site->len;
    /* What was active when the pre-handlers ran is active now: they were let in, so this
     * is. */
    hit = site->has_post ? hit_enter(cpu, site, regs, HIT_POST) : NULL;
    if (hit)
        hit_after(cpu, hit, aggr_first(site));
}

bool step_int3(struct pt_regs *regs)
{
    size_t off;
    struct site *site = insn_slot_owner(regs->ip - 1, &off);

    if (!site || regs->ip - 1 - off != (uintptr_t)site->step_slot || off != site->len)
        return false;
    step_done(plat_this_cpu(), site, regs);
    return true;
}
NOKPROBE(step_int3);

bool kprobe_debug_handler(struct pt_regs *regs)
{
    struct probe_cpu *cpu = plat_this_cpu();
    struct site *site;
    bool mine;
    size_t off;

    if (!(regs->dr6 & DR6_BS) || !cpu)
        return false;
    site = insn_slot_owner(regs->ip, &off);
    if (!site)
        return false;
    if (off == 0) /* an iteration of a repeated string instruction leaves ip there */
        return site->is_string;
    if (off != site->len)
        return false;
    mine = regs->ip - off == (uintptr_t)site->step_slot;
    if (mine) {
        probe_count(&cpu->traps);
        regs->flags &= ~FLAGS_TF;
    }
    step_done(cpu, site, regs);
    return mine;
}
NOKPROBE(kprobe_debug_handler);
