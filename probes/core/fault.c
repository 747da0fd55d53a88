/* fault.c - stage 9: handles faults that happen in a copy or in a handler.
 *
 * It runs before the kernel looks for a fix-up or reports the fault: then the kernel sees
 * the fault as it would be without probes.
 */
#include "probes/core/aggr.h"
#include "probes/core/extend.h"
#include "probes/core/insn_slot.h"

/* ask_handler - call the fault handler of @p, if it has one and is enabled. Return: has
 * it dealt with the fault of which @regs is the image? If the fault handler faults
 * itself, it never returns here: kprobe_resume() goes on with the probe behind @p.
 */
static bool ask_handler(struct kprobe *p, struct pt_regs *regs, struct probe_hit *hit)
{
    bool answer;

    if (READ_ONCE(p->flags) & KPROBE_FLAG_DISABLED || !p->fault_handler)
        return false;
    hit->running = p;
    hit->is.faulting = true;
    answer = p->fault_handler(p, regs, (int)regs->vector);
    plat_flags_of_trap();
    hit->running = NULL;
    hit->is.faulting = false;
    return answer;
}

/* ask_from - ask the fault handlers of @p and of the probes behind it, until one has
 * dealt with the fault, then leave @hit.
 */
static bool ask_from(struct probe_cpu *cpu, struct probe_hit *hit, struct kprobe *p)
{
    bool answer = false;

    for (; p && !answer; p = aggr_next(p))
        answer = ask_handler(p, hit->regs, hit);
    hit_leave(cpu, hit, false);
    return answer;
}

void fault_resume(struct probe_cpu *cpu, struct probe_hit *hit, struct kprobe *p)
{
    struct pt_regs *regs = hit->regs;

    if (!ask_from(cpu, hit, p))
        plat_raise_again(regs);
}

/* ask_probes - ask all probes of @site about a fault in its copy. This is a new hit. */
static bool ask_probes(struct probe_cpu *cpu, struct site *site, struct pt_regs *regs)
{
    struct probe_hit *hit = cpu ? hit_enter(cpu, site, regs, HIT_FAULT) : NULL;

    return hit && ask_from(cpu, hit, aggr_first(site));
}

/* fault_in_copy - let @regs look as if the original instruction had faulted, then ask the
 * fault handlers. If the program goes on, by a fix-up or a second try, it starts from the
 * original instruction. Return: has a fault handler dealt with the fault?
 */
static bool fault_in_copy(struct probe_cpu *cpu, struct site *site, struct pt_regs *regs)
{
    if (regs->ip == (uintptr_t)site_step_slot(site))
        regs->flags &= ~FLAGS_TF;
    regs->ip = copy_original(regs->ip);
    /* The jump of a region displaces other instructions, too, which have no probes. A jump
     * may lead to a copy of a branch, which a breakpoint emulates.
     */
    return regs->ip == site->addr && site->way != WAY_EMULATE &&
           ask_probes(cpu, site, regs);
}

/* is_on_top - are the depths of the CPU still @irq and @nmi? Then no interrupt or NMI has
 * come since these depths were read.
 */
static bool is_on_top(const struct probe_cpu *cpu, unsigned irq, unsigned nmi)
{
    return plat_depths(cpu)->irq == irq && plat_depths(cpu)->nmi == nmi;
}

/* in_light_handler - return the probe of the light handler that runs. NULL: none runs, or
 * an interrupt or NMI has come on top of it. The caller knows that no other hit has.
 */
static const struct kprobe *in_light_handler(const struct probe_cpu *cpu)
{
    const struct plat_light *light = light_frame(cpu);

    return light && is_on_top(cpu, 0, 0) ? light->probe : NULL;
}

const struct kprobe *fault_in_handler(const struct probe_cpu *cpu)
{
    const struct probe_hit *hit;

    if (!cpu || !cpu->depth)
        return NULL;
    hit = &cpu->hits[cpu->depth - 1];
    if (cpu->depth == 1 && !hit->running)
        return in_light_handler(cpu);
    return is_on_top(cpu, hit->found.irq, hit->found.nmi) ? hit->running : NULL;
}

/* give_up - disable the probe of the handler that has faulted, and let the hit go on as
 * if the handler had returned.
 */
static void give_up(struct probe_cpu *cpu, struct probe_hit *hit, struct pt_regs *regs)
{
    uintptr_t sp = hit->is.light ? (uintptr_t)light_frame(cpu) : (uintptr_t)hit->regs;

    __atomic_or_fetch(&hit->running->flags, KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED,
                      __ATOMIC_RELAXED);
    cpu->given_up.addr = hit_site(hit)->addr;
    cpu->given_up.ip = regs->ip;
    cpu->given_up.vector = regs->vector;
    probe_count(&cpu->handler_faults);
    plat_given_up(hit->running, sp);
    ext_given_up(cpu, hit, regs, sp);
    if (!hit->is.light)
        plat_escape(regs, hit->regs);
}

static void handler_faults(struct probe_cpu *cpu, struct pt_regs *regs)
{
    struct probe_hit *hit = &cpu->hits[cpu->depth - 1];
    bool dealt_with;
    struct kprobe *p;

    if (!hit->running) { /* a light handler: the detour has not filled in the entry */
        hit->is = (struct hit_facts){ .jumped = true, .light = true };
        hit->found = *plat_depths(cpu);
        hit->running = light_frame(cpu)->probe;
    }
    p = hit->running;
    dealt_with = !hit->is.faulting && ask_handler(p, regs, hit);
    hit->running = p;
    if (!dealt_with)
        give_up(cpu, hit, regs);
    if (hit->is.light)
        hit->running = NULL;
}

bool kprobe_fault_handler(struct pt_regs *regs)
{
    struct probe_cpu *cpu = plat_this_cpu();
    size_t off;
    struct site *site = insn_slot_owner(regs->ip, &off);

    if (!site || !fault_in_copy(cpu, site, regs)) {
        if (!fault_in_handler(cpu) || plat_has_fixup(regs->ip))
            return false;
        handler_faults(cpu, regs);
    }
    ext_resume(NULL, regs); /* a second try may be made under the jump of a region */
    return true;
}
