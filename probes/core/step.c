/* step.c - stage 8: handles the trap behind a copy, so that the post-handlers run, and
 * the traps of programs that step themselves.
 *
 * There are two kinds of trap. INT3: the copy ends with an int3. TF: the engine sets TF,
 * so the CPU raises #DB after one instruction. In both cases the ip alone tells which
 * site the step belongs to, since every cell knows its site. So the engine keeps nothing
 * between the hit and the trap behind the copy: interrupts may come, and the thread may
 * be preempted or move to another CPU in the middle of a step.
 *
 * TF is not used in an NMI, where the way back is without IRET, nor for instructions that
 * a single step would undo. If the program itself has TF set, it runs the copy that ends
 * with a jump back: the CPU raises #DB behind the instruction anyway, and this #DB serves
 * the engine and the program.
 */
#include "probes/core/cache.h"
#include "probes/core/extend.h"
#include "probes/core/hit.h"
#include "probes/core/insn_slot.h"

#define DR6_BS (1ul << 14) /* this #DB is a single step */

enum step_engine step_engine = STEP_INT3;

struct site *step_site(uintptr_t int3)
{
    size_t off;
    struct site *site = insn_slot_owner(int3, &off);

    if (!site || int3 - off != (uintptr_t)site_step_slot(site) || off != site->len)
        return NULL;
    return site;
}
NOKPROBE(step_site);

/* raise_iteration - give a program that steps itself the trap behind one iteration of a
 * repeated instruction. The program sees the trap at its own instruction. Then it goes on
 * in the copy: at the original instruction each iteration would be a hit.
 */
NOKPROBE_INLINE void raise_iteration(struct site *site, struct pt_regs *regs)
{
    uintptr_t slot = regs->ip;

    regs->ip = site->addr;
    plat_raise_step(regs);
    if (regs->ip == site->addr)
        regs->ip = slot;
}

/* step_at_copy - handle a step of the program that has ended at the start of a copy.
 * Either it was an iteration of a repeated instruction, or the program has come to the
 * copy by a jump or from the code in front of the copy. A branch is emulated at once,
 * because its copy may have several instructions.
 * Return: false: neither is possible, because no jump leads to a step slot, and nothing
 *         lies in front of the copy there.
 */
NOKPROBE_INLINE bool step_at_copy(struct site *site, struct pt_regs *regs, bool iterates)
{
    if (site->way == WAY_EMULATE) {
        hit_run_alone(site, regs, false);
        return true;
    }
    if (site->repeats && iterates)
        raise_iteration(site, regs);
    return site->repeats || regs->ip != (uintptr_t)site->step_slot;
}

bool step_in_copy(struct site *site, uintptr_t copy, bool iterates, struct pt_regs *regs,
                  struct probe_cpu *cpu, bool jumped)
{
    if (regs->ip == copy)
        return step_at_copy(site, regs, iterates);
    if (regs->ip != copy + site->len)
        return false;
    hit_stepped(cpu, site, regs, probe_in_nmi(cpu), false, jumped);
    return site_step_anywhere(regs);
}
NOKPROBE(step_in_copy);

/* step_by_program - handle a step that the engine has not started: the program has TF
 * set, and may have stepped into code of the engine. Return: as kprobe_debug_handler().
 */
static bool step_by_program(struct pt_regs *regs, struct probe_cpu *cpu)
{
    enum ext_step elsewhere = ext_step(regs, cpu, false);
    struct site *site;
    uintptr_t copy;
    size_t off;

    if (elsewhere != EXT_STEP_NONE)
        return elsewhere == EXT_STEP_INSIDE;
    site = insn_slot_owner(regs->ip, &off);
    copy = site ? copy_start(site, regs->ip - off) : 0;
    return copy && step_in_copy(site, copy, copy == (uintptr_t)site_boost_slot(site),
                                regs, cpu, false);
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
    hit_step_ended(cpu, site, regs, in_nmi);
    return true;
}
NOKPROBE(kprobe_debug_handler);
