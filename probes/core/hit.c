/* hit.c - stage 6: handles the trap of a CPU that has run into an int3.
 *
 * The life of one hit, all of it with interrupts off:
 *
 *   1. find the site                              cache.h, registry.c
 *   2. may handlers run? if not, count a miss     hit_enter
 *      and go to 4
 *   3. run the handlers                           aggr.h
 *   4. let the instruction happen                 boost.c, step.c or emulate.c
 *
 * All of this, except for the handlers, is the re-entry core. It runs before the hit is
 * in hits[], or after the hit has left hits[]. So the engine could not tell that it is
 * inside of a hit, and a probe on this code would hit itself without end. Functions that
 * handlers call may carry probes, even functions of the engine: their hits come on top of
 * this hit in hits[], and find this site active.
 */
#include "probes/core/hit.h"

#include "probes/core/cache.h"
#include "probes/core/extend.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/insn/encode.h"

/* ---- step 2 ---- */

struct probe_hit *hit_enter(struct probe_cpu *cpu, struct site *site,
                            struct pt_regs *regs, enum hit_stage stage)
{
    return hit_begin(cpu, site, regs, stage, probe_in_nmi(cpu));
}
NOKPROBE(hit_enter);

/* ---- steps 3 and 4 ---- */

void kprobe_resume(struct pt_regs *regs, struct probe_cpu *cpu)
{
    struct probe_hit *hit = &cpu->hits[cpu->depth - 1];
    struct kprobe *p = aggr_next(hit->running);
    struct site *site = hit_site(hit);
    bool jumped = hit->is.jumped, owes_step = hit->is.owes_step;

    WRITE_ONCE(hit->site, site);
    hit->running = NULL;
    hit->is.faulting = false;
    if (jumped)
        plat_flags_as(regs->flags); /* as if this handler had returned */
    if (hit->is.stage == HIT_PRE)
        hit_before(cpu, hit, p, site, regs, jumped);
    else if (hit->is.stage == HIT_POST)
        hit_after(cpu, hit, p, regs, jumped);
    else if (hit->is.stage == HIT_RETURN)
        ext_return_resume(regs, cpu, jumped);
    else
        fault_resume(cpu, hit, p);
    if (owes_step)
        ext_raise_step(regs, jumped);
    site_go_anywhere(regs);
    if (!jumped)
        return;
    plat_flags_of_trap();
    plat_preempt_enable();
}
NOKPROBE(kprobe_resume);

/* ---- the other traps ---- */

/* retry - handle the trap of a CPU that had fetched an int3 before the int3 was taken
 * out. If the text at @addr is no int3 now, let the CPU execute it again. Return: false:
 * it is an int3, and not the engine's.
 */
NOKPROBE_INLINE bool retry(struct probe_cpu *cpu, struct pt_regs *regs, uintptr_t addr)
{
    uint8_t byte;

    if (plat_text_read(&byte, addr, 1) || byte == INSN_INT3)
        return false;
    if (cpu)
        probe_count(&cpu->retries);
    regs->ip = addr;
    return true;
}

/* hit_early - handle a hit on a CPU that is not ready for probes: it has no hits[], so it
 * cannot run handlers.
 */
static bool hit_early(struct pt_regs *regs, uintptr_t addr)
{
    struct site *site = registry_find(addr);

    if (!site)
        return retry(NULL, regs, addr);
    account_miss(NULL, site, MISS_EARLY);
    hit_run_alone(site, regs, false);
    return true;
}
NOKPROBE(hit_early);

/* arrive - do steps 2 to 4 for a CPU that has come to the instruction of @site. */
NOKPROBE_INLINE void arrive(struct probe_cpu *cpu, struct site *site,
                            struct pt_regs *regs, bool in_nmi)
{
    struct probe_hit *hit = hit_begin(cpu, site, regs, HIT_PRE, in_nmi);

    if (likely(hit))
        hit_before(cpu, hit, aggr_first(site), site, regs, false);
    else
        hit_run_alone(site, regs, false);
}

bool kprobe_int3_handler(struct pt_regs *regs, struct probe_cpu *cpu)
{
    uintptr_t addr = regs->ip - 1;
    struct site *site;
    bool in_nmi;

    if (unlikely(!cpu))
        return hit_early(regs, addr);
    in_nmi = probe_in_nmi(cpu);
    if (unlikely(!cache_find(cpu, addr, in_nmi, &site)))
        return retry(cpu, regs, addr);
    if (site->addr != addr)
        hit_step_ended(cpu, site, regs, in_nmi);
    else
        arrive(cpu, site, regs, in_nmi);
    return true;
}
NOKPROBE(kprobe_int3_handler);

void hit_untrapped(struct probe_cpu *cpu, struct site *site, struct pt_regs *regs)
{
    regs->ip = site->addr + 1;
    arrive(cpu, site, regs, probe_in_nmi(cpu));
}
NOKPROBE(hit_untrapped);
