/* fault.c - stage 9: something faulted, in a copy or in a handler.
 *
 * Runs before the kernel looks for fix-ups or reports the fault, so that both see what
 * they would see without probes.
 */
#include "probes/life.h"
#include "probes/text/insn_slot.h"

static bool ask_probes(struct site *site, struct pt_regs *regs)
{
    for (struct kprobe *p = site->probes; p;
         p = __atomic_load_n(&p->next, __ATOMIC_ACQUIRE))
        if (p->fault_handler && p->fault_handler(p, regs, (int)regs->vector))
            return true;
    return false;
}

/* The program was about to execute the original instruction, and is again: whatever makes
 * it go on, a fix-up or a second try, starts from there.
 */
static bool fault_in_copy(struct site *site, struct pt_regs *regs, size_t off)
{
    if (regs->ip == (uintptr_t)site->step_slot)
        regs->flags &= ~FLAGS_TF;
    regs->ip = site->addr + (off < site->len ? 0 : site->len); /* second of a pair */
    return ask_probes(site, regs);
}

/* A handler that faults has had its last hit; the hit goes on as if it had returned. */
static bool fault_in_handler(struct probe_cpu *cpu, struct probe_hit *hit,
                             struct pt_regs *regs)
{
    struct kprobe *p = hit->running;

    if (p->fault_handler && p->fault_handler(p, regs, (int)regs->vector))
        return true;
    __atomic_or_fetch(&p->flags, KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED,
                      __ATOMIC_RELAXED);
    cpu->handler_faults++;
    plat_escape(regs, hit->escape);
    return true;
}

bool kprobe_fault_handler(struct pt_regs *regs)
{
    struct probe_cpu *cpu = plat_this_cpu();
    struct probe_hit *hit;
    struct site *site;
    size_t off;

    site = insn_slot_owner(regs->ip, &off);
    if (site)
        return fault_in_copy(site, regs, off);
    if (!cpu || !cpu->depth || plat_has_fixup(regs->ip))
        return false;
    hit = &cpu->hits[cpu->depth - 1];
    if (!hit->running || hit->in_nmi != plat_in_nmi())
        return false;
    return fault_in_handler(cpu, hit, regs);
}
