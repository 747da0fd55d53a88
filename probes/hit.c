/* hit.c - stage 6: a CPU has run into an int3.
 *
 * The life of one hit, all of it with interrupts off:
 *
 *   1. find the site                          registry.c
 *   2. may handlers run? else count and go to 4   hit_enter
 *   3. run them                               aggr.c
 *   4. let the instruction happen             boost.c, step.c or emulate.c
 *
 * All but the handlers themselves is the re-entry core: it runs before the hit is known to
 * be one, or after it has been forgotten, so a probe in it would hit itself for ever. What
 * handlers call may carry probes, the engine's own code included: a hit in there comes on
 * top of this one and finds this site active.
 */
#include "probes/insn/encode.h"
#include "probes/life.h"
#include "probes/registry.h"

enum probe_miss hit_enter(struct probe_cpu *cpu, struct site *site, struct pt_regs *regs)
{
    struct probe_hit *hit;

    /* Every instruction of what runs handlers may carry a probe, and would be hit anew in
     * every hit: the number of hits would grow with the power of the depth. */
    if (cpu->depth && site->in_engine)
        return MISS_RECURSION;
    for (unsigned i = 0; i < cpu->depth; i++)
        if (cpu->hits[i].site == site)
            return MISS_RECURSION;
    if (cpu->depth == PROBE_NEST_MAX)
        return MISS_NESTED;
    if (plat_stack_left((uintptr_t)regs) < PROBE_STACK_MIN)
        return MISS_STACK;
    plat_preempt_disable();
    hit = &cpu->hits[cpu->depth];
    hit->site = site;
    hit->running = NULL;
    hit->regs = regs;
    hit->in_nmi = plat_in_nmi();
    hit->faulting = false;
    barrier(); /* an NMI that comes now finds either no hit here, or a whole one */
    cpu->depth++;
    return MISS_CAUSES;
}
NOKPROBE(hit_enter);

void hit_leave(struct probe_cpu *cpu)
{
    barrier();
    cpu->depth--;
    plat_preempt_enable();
}
NOKPROBE(hit_leave);

/* What has become of the instruction. */
enum outcome {
    PENDING,   /* nothing yet */
    HAPPENED,  /* it has been emulated */
    ELSEWHERE, /* a copy runs next; or a handler or a fault has sent the program away */
};

/* With nobody to tell about it. */
NOKPROBE_INLINE enum outcome run_alone(struct site *site, struct pt_regs *regs)
{
    if (site->way == WAY_EMULATE)
        return emulate_run(site, regs) ? HAPPENED : ELSEWHERE;
    boost_run(site, regs);
    return ELSEWHERE;
}

NOKPROBE_INLINE enum outcome run(struct site *site, struct pt_regs *regs,
                                 enum site_way way)
{
    if (way != WAY_STEP)
        return run_alone(site, regs);
    step_run(site, regs);
    return ELSEWHERE;
}

/* The effect of an emulated instruction is there at once, and so are those who wait for it:
 * they belong to the same hit.
 */
NOKPROBE_INLINE enum outcome handle(struct site *site, struct pt_regs *regs,
                                    struct probe_hit *hit)
{
    if (aggr_run_pre(site, regs, hit))
        return ELSEWHERE;
    if (site->way != WAY_EMULATE || !aggr_has_post(site))
        return PENDING;
    if (!emulate_run(site, regs))
        return ELSEWHERE;
    aggr_run_post(site, regs, hit);
    return HAPPENED;
}

NOKPROBE_INLINE enum outcome hit(struct probe_cpu *cpu, struct site *site,
                                 struct pt_regs *regs)
{
    enum probe_miss cause = hit_enter(cpu, site, regs);
    enum outcome outcome;
    enum site_way way;

    if (cause != MISS_CAUSES) {
        account_miss(cpu, site, cause);
        return run_alone(site, regs);
    }
    way = site->way;
    account_ran(cpu, way);
    outcome = handle(site, regs, &cpu->hits[cpu->depth - 1]);
    hit_leave(cpu);
    return outcome == PENDING ? run(site, regs, way) : outcome;
}

/* A probe that has just gone leaves CPUs behind that have fetched its int3 but not yet
 * trapped. They find other text now, and just try again.
 */
NOKPROBE_INLINE bool retry(struct probe_cpu *cpu, struct pt_regs *regs, uintptr_t addr)
{
    uint8_t byte;

    if (plat_text_read(&byte, addr, 1) || byte == INSN_INT3)
        return false;
    if (cpu)
        cpu->retries++;
    regs->ip = addr;
    return true;
}

/* Before a CPU has its area it has no way to run handlers. */
NOKPROBE_INLINE bool hit_early(struct pt_regs *regs, uintptr_t addr)
{
    struct site *site = registry_find(addr);

    if (!site)
        return retry(NULL, regs, addr);
    account_miss(NULL, site, MISS_EARLY);
    run_alone(site, regs);
    return true;
}

bool kprobe_int3_handler(struct pt_regs *regs)
{
    struct probe_cpu *cpu = plat_this_cpu();
    uintptr_t addr = regs->ip - 1;
    struct site *site;

    if (!cpu)
        return hit_early(regs, addr);
    cpu->traps++;
    site = registry_find_hit(cpu, addr);
    if (site) {
        bool stepping = regs->flags & FLAGS_TF;

        /* A program that steps itself is owed a trap that no CPU will raise. */
        if (hit(cpu, site, regs) == HAPPENED && stepping)
            plat_raise_step(regs);
        return true;
    }
    return step_int3(regs) || retry(cpu, regs, addr);
}
NOKPROBE(kprobe_int3_handler);
