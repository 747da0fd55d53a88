/* hit.c - stage 6: a CPU has run into an int3.
 *
 * The life of one hit, all of it with interrupts off:
 *
 *   1. find the site                              cache.h, registry.c
 *   2. may handlers run? else count and go to 4   hit_enter
 *   3. run them                                   aggr.h
 *   4. let the instruction happen                 boost.c, step.c or emulate.c
 *
 * All but the handlers themselves is the re-entry core: it runs before the hit is known to
 * be one, or after it has been forgotten, so a probe in it would hit itself for ever. What
 * handlers call may carry probes, the engine's own code included: a hit in there comes on
 * top of this one and finds this site active.
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
        plat_flags_as(
            regs->flags); /* the other handlers find what they would have found */
    if (hit->is.stage == HIT_PRE)
        hit_before(cpu, hit, p, site, regs, jumped);
    else if (hit->is.stage == HIT_POST)
        hit_after(cpu, hit, p, regs, jumped);
    else if (hit->is.stage == HIT_RETURN)
        ext_return_resume(regs, cpu, jumped);
    else
        fault_resume(cpu, hit, p);
    if (owes_step)
        plat_raise_step(regs);
    site_go_on(site, regs);
    if (!jumped)
        return;
    plat_flags_of_trap();
    plat_preempt_enable();
}
NOKPROBE(kprobe_resume);

/* ---- the other traps ---- */

/* A probe that has just gone leaves CPUs behind that have fetched its int3 but not yet
 * trapped. They find other text now, and just try again.
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

/* Before a CPU has its area it has no way to run handlers. */
static bool hit_early(struct pt_regs *regs, uintptr_t addr)
{
    struct site *site = registry_find(addr);

    if (!site)
        return retry(NULL, regs, addr);
    account_miss(NULL, site, MISS_EARLY);
    hit_run_alone(site, regs);
    return true;
}
NOKPROBE(hit_early);

NOKPROBE_INLINE void arrive(struct probe_cpu *cpu, struct site *site,
                            struct pt_regs *regs, bool in_nmi)
{
    struct probe_hit *hit = hit_begin(cpu, site, regs, HIT_PRE, in_nmi);

    if (likely(hit))
        hit_before(cpu, hit, aggr_first(site), site, regs, false);
    else
        hit_run_alone(site, regs);
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
    if (site->addr != addr) {
        probe_count(&cpu->steps);
        /* TF is still set where it was to end the step and did not, as behind an STI on
         * some CPUs. The program has not set it: then this cell would not have been used.
         */
        regs->flags &= ~FLAGS_TF;
        hit_stepped(cpu, site, regs, in_nmi, true);
        site_go_on(site, regs);
        return true;
    }
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
