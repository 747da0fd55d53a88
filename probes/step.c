/* step.c - stage 8: run the copy and trap behind it, because a post-handler wants to know.
 *
 * Two engines. INT3: the copy ends in an int3. TF: the CPU traps after one instruction.
 * Both find out whose step it was from the ip alone, since every cell knows its site. So
 * nothing is kept between the two traps: interrupts may come, the thread may be preempted
 * or move to another CPU in the middle of a step.
 *
 * TF is not used in NMI context, where the way back is without IRET, nor where the program
 * has TF set itself: then it traps there on its own account.
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

void step_run(struct site *site, struct pt_regs *regs)
{
    regs->ip = (uintptr_t)site->step_slot;
    if (READ_ONCE(engine) == STEP_TF && !plat_in_nmi() && !(regs->flags & FLAGS_TF))
        regs->flags |= FLAGS_TF;
}
NOKPROBE(step_run);

NOKPROBE_INLINE void step_done(struct site *site, struct pt_regs *regs)
{
    struct probe_cpu *cpu = plat_this_cpu();

    cpu->traps++;
    regs->ip = site->addr + site->len;
    /* What was active when the pre-handlers ran is active now: they were let in, so this
     * is. */
    if (hit_enter(cpu, site, regs) != MISS_CAUSES)
        return;
    aggr_run_post(site, regs, &cpu->hits[cpu->depth - 1]);
    hit_leave(cpu);
}

/* step_of - the site whose step cell has been run to the end, if @ip says so. */
NOKPROBE_INLINE struct site *step_of(uintptr_t ip)
{
    size_t off;
    struct site *site = insn_slot_owner(ip, &off);

    if (!site || off != site->len || ip - off != (uintptr_t)site->step_slot)
        return NULL;
    return site;
}

bool step_int3(struct pt_regs *regs)
{
    struct site *site = step_of(regs->ip - 1);

    if (!site)
        return false;
    step_done(site, regs);
    return true;
}
NOKPROBE(step_int3);

/* An iteration of a repeated string instruction leaves ip where it is. */
NOKPROBE_INLINE bool between_iterations(const struct pt_regs *regs)
{
    size_t off;
    const struct site *site = insn_slot_owner(regs->ip, &off);

    return site && off == 0 && site->is_string && regs->ip == (uintptr_t)site->step_slot;
}

bool kprobe_debug_handler(struct pt_regs *regs)
{
    struct site *site;

    if (!(regs->dr6 & DR6_BS))
        return false;
    site = step_of(regs->ip);
    if (!site)
        return between_iterations(regs);
    regs->flags &= ~FLAGS_TF;
    step_done(site, regs);
    return true;
}
NOKPROBE(kprobe_debug_handler);
