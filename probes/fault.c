/* fault.c - stage 9: something faulted, in a copy or in a handler.
 *
 * Runs before the kernel looks for fix-ups or reports the fault, so that both see what
 * they would see without probes.
 */
#include "probes/life.h"
#include "probes/text/insn_slot.h"

/* ask - has the fault handler of @p dealt with it? One that faults itself has not. */
static bool ask(struct kprobe *p, struct pt_regs *regs, struct probe_hit *hit)
{
    int answer;

    if (READ_ONCE(p->flags) & KPROBE_FLAG_DISABLED || !p->fault_handler)
        return false;
    hit->running = p;
    hit->faulting = true;
    answer = plat_call_handler(p, regs, regs->vector, (void (*)(void))p->fault_handler,
                               &hit->escape);
    hit->running = NULL;
    hit->faulting = false;
    return answer && answer != PLAT_ESCAPED;
}

/* ask_probes - a fault in a copy is for all of its probes, inside a hit of its own. */
static bool ask_probes(struct site *site, struct pt_regs *regs)
{
    struct probe_cpu *cpu = plat_this_cpu();
    struct kprobe *p = __atomic_load_n(&site->probes, __ATOMIC_ACQUIRE);
    bool answer = false;

    if (!cpu || hit_enter(cpu, site, regs) != MISS_CAUSES)
        return false;
    for (; p && !answer; p = __atomic_load_n(&p->next, __ATOMIC_ACQUIRE))
        answer = ask(p, regs, &cpu->hits[cpu->depth - 1]);
    hit_leave(cpu);
    return answer;
}

/* ask_owner - a fault in a handler is first of all for the handler's own probe. */
static bool ask_owner(struct kprobe *p, struct pt_regs *regs, struct probe_hit *hit)
{
    uintptr_t escape = hit->escape;
    bool answer = !hit->faulting && ask(p, regs, hit);

    hit->running = p;
    hit->escape = escape;
    return answer;
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

    if (ask_owner(p, regs, hit))
        return true;
    __atomic_or_fetch(&p->flags, KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED,
                      __ATOMIC_RELAXED);
    cpu->handler_faults++;
    plat_escape(regs, hit->escape);
    return true;
}

/* hit_of - the hit whose handler was running when @regs faulted, or NULL. */
static struct probe_hit *hit_of(struct probe_cpu *cpu, const struct pt_regs *regs)
{
    struct probe_hit *hit = &cpu->hits[cpu->depth - 1];

    /* An emulated instruction has faulted: the program that it belongs to is what the hit
     * below runs.
     */
    if (!hit->running && cpu->depth > 1 && regs->ip == hit->site->addr)
        hit--;
    return hit->running && hit->in_nmi == plat_in_nmi() ? hit : NULL;
}

bool kprobe_fault_handler(struct pt_regs *regs)
{
    struct probe_cpu *cpu = plat_this_cpu();
    struct probe_hit *hit;
    struct site *site;
    size_t off;

    site = insn_slot_owner(regs->ip, &off);
    if (site && fault_in_copy(site, regs, off))
        return true;
    if (!cpu || !cpu->depth || plat_has_fixup(regs->ip))
        return false;
    hit = hit_of(cpu, regs);
    return hit && fault_in_handler(cpu, hit, regs);
}
