/* watch_hit.c - handles #DB: a debug register was hit, or a step has ended, or both.
 *
 *   1. find out, once, which registers were hit, and which of them belong to watches:
 *      plat_watch_bits()
 *   2. count a miss for each register of a watch, because step 5 may not come back here: a
 *      handler that faults is given up together with the rest of this function
 *   3. handle a step of the engine that has ended with the same instruction: step.c
 *   4. let the other owners handle the hits of their registers, such as the kernel's stub
 *      for gdb
 *   5. for each register of a watch, enter a hit if that is allowed, count a hit in place
 *      of the miss, and call the handler
 *
 * Between the trap and the handler, and during step 4, cpu->watch_busy is true. The code
 * that runs then may touch watched bytes; this makes an inner trap, which only counts a
 * miss. But bytes that the CPU touches before watch_busy is true cannot be watched:
 * plat_watch_is_own().
 *
 * The handler gets a copy of the image, with an ip in the program's own text. The ip of
 * the image itself may lie in a copy of the instruction. The program must go on there,
 * unless the handler changes the ip.
 */
#include "kernel/base/bits.h"
#include "probes/core/hit.h"
#include "probes/watch/platform_watch.h"
#include "probes/watch/watch_parts.h"

#define DR6_BS (1ul << 14)
#define DR6_REGS 15ul

/* ---- 5 ---- */

/* call_in_hit - call the handler of @w in @hit, which has been entered; leave @hit. What code
 * touches that leads to the handlers of a jump stays a miss: a program is not there yet.
 */
static NOINLINE void call_in_hit(struct probe_cpu *cpu, struct probe_hit *hit,
                                 unsigned reg, struct watch *w, struct pt_regs *regs,
                                 uintptr_t ip)
{
    struct pt_regs shown = *regs;

    shown.ip = ip;
    shown.ip = ip = plat_watch_ip(&shown);
    if (!ip) {
        hit_leave(cpu, hit, false);
        return;
    }
    cpu->watch_missed[reg]--;
    probe_count(&cpu->watch_hits[reg]);
    hit->is.owes_step = regs->dr6 & DR6_BS;
    cpu->watch_busy = false;
    barrier();
    aggr_run_post(&w->kp, hit, &shown, false);
    barrier();
    cpu->watch_busy = true;
    if (shown.ip == ip) {
        shown.ip = regs->ip;
    } else {
        shown.flags &= ~FLAGS_RF; /* it was for the instruction that is left out */
        ext_resume(NULL, &shown);
    }
    *regs = shown;
    hit_leave(cpu, hit, false);
}

/* one_hit - do step 5 for register @reg. Its miss has been counted.
 * @ip: the address at which the CPU trapped
 */
NOKPROBE_INLINE void one_hit(struct probe_cpu *cpu, unsigned reg, struct pt_regs *regs,
                             uintptr_t ip, bool in_nmi)
{
    struct watch_slot *slot = &watch_slots[reg];
    struct watch *w = READ_ONCE(slot->watch);
    struct probe_hit *hit;

    if (READ_ONCE(w->kp.flags) & KPROBE_FLAG_DISABLED) {
        cpu->watch_missed[reg]--;
        return;
    }
    hit = hit_begin(cpu, slot->site, regs, HIT_POST, in_nmi);
    if (hit)
        call_in_hit(cpu, hit, reg, w, regs, ip);
}

/* ---- 1 ---- */

/* mine - return the bits of @bits that stand for registers of watches. */
NOKPROBE_INLINE unsigned mine(unsigned bits)
{
    for (unsigned reg = 0; reg < WATCH_SLOTS; reg++)
        if (bits & BIT(reg) && !READ_ONCE(watch_slots[reg].watch))
            bits &= ~(unsigned)BIT(reg);
    return bits;
}

/* watch_let_pass - if a watch in @bits is on the next instruction, let the CPU execute
 * this instruction without another trap. The flag RF does that. But only IRET loads
 * RF, and in an NMI traps return without IRET, so there the register watches nothing
 * until the NMI ends.
 */
NOKPROBE_INLINE void watch_let_pass(struct pt_regs *regs, unsigned bits, bool in_nmi)
{
    unsigned before = 0;

    for (unsigned reg = 0; reg < WATCH_SLOTS; reg++)
        if (bits & BIT(reg) && watch_slots[reg].executes)
            before |= (unsigned)BIT(reg);
    if (!before)
        return;
    regs->flags |= FLAGS_RF;
    if (in_nmi)
        plat_watch_rest(before);
}

/* end_step - handle a single step of the engine, and clear DR6_BS. If DR6_BS is set
 * afterwards, the step is not the engine's.
 */
NOKPROBE_INLINE void end_step(struct pt_regs *regs, struct probe_cpu *cpu)
{
    if (regs->dr6 & DR6_BS && kprobe_debug_handler(regs, cpu))
        regs->dr6 &= ~DR6_BS;
}

/* others_hit - do step 4. What the handling of a hit touches or executes is a miss, as for
 * watches: otherwise the handling of each hit could be hit, without end.
 */
NOKPROBE_INLINE void others_hit(struct pt_regs *regs, struct probe_cpu *cpu,
                                unsigned bits)
{
    bool busy = cpu->watch_busy;

    cpu->watch_busy = true;
    barrier();
    plat_watch_tell(regs, bits, busy);
    barrier();
    cpu->watch_busy = busy;
}

/* registers_hit - do steps 2 to 5.
 * @bits: the registers that were hit   @watched: those of them that belong to watches
 */
NOKPROBE_INLINE void registers_hit(struct pt_regs *regs, struct probe_cpu *cpu,
                                   unsigned bits, unsigned watched)
{
    bool in_nmi = probe_in_nmi(cpu);
    uintptr_t ip = regs->ip;

    for (unsigned reg = 0; reg < WATCH_SLOTS; reg++)
        if (watched & BIT(reg))
            probe_count(&cpu->watch_missed[reg]); /* 2 */
    watch_let_pass(regs, watched, in_nmi);
    end_step(regs, cpu); /* 3 */
    if (bits & ~watched)
        others_hit(regs, cpu, bits & ~watched); /* 4 */
    if (cpu->watch_busy)
        return;
    cpu->watch_busy = true;
    barrier();
    for (unsigned reg = 0; reg < WATCH_SLOTS; reg++) /* 5 */
        if (watched & BIT(reg))
            one_hit(cpu, reg, regs, ip, in_nmi);
    barrier();
    cpu->watch_busy = false;
}

/* not_only_a_step - handle a #DB for which DR6 has a register's bit, or no bit at all. A #DB
 * that has no cause has had one, which has gone since: see kernel/cpu/debug_reg.c.
 * Return: as watch_debug_handler().
 */
static NOINLINE bool not_only_a_step(struct pt_regs *regs, struct probe_cpu *cpu)
{
    unsigned bits;

    if (!cpu)
        return false;
    if (unlikely(plat_watch_is_inner(regs)))
        return true;
    bits = plat_watch_bits(regs->dr6); /* 1 */
    regs->dr6 &= ~DR6_REGS;
    registers_hit(regs, cpu, bits, mine(bits));
    return !(regs->dr6 & DR6_BS);
}
NOKPROBE(not_only_a_step);

/* All other cases are in a function of their own, so that the compiler saves no registers
 * here for a single step.
 */
bool watch_debug_handler(struct pt_regs *regs, struct probe_cpu *cpu)
{
    if (likely((regs->dr6 & (DR6_BS | DR6_REGS)) == DR6_BS))
        return kprobe_debug_handler(regs, cpu);
    return not_only_a_step(regs, cpu);
}
NOKPROBE(watch_debug_handler);
