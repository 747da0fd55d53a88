/* hit.c - stage 6: a CPU has run into an int3.
 *
 * The life of one hit, all of it with interrupts off:
 *
 *   1. find the site                              cache.h, registry.c
 *   2. may handlers run? else count and go to 4   hit_enter
 *   3. run them                                   aggr.c
 *   4. let the instruction happen                 boost.c, step.c or emulate.c
 *
 * All but the handlers themselves is the re-entry core: it runs before the hit is known to
 * be one, or after it has been forgotten, so a probe in it would hit itself for ever. What
 * handlers call may carry probes, the engine's own code included: a hit in there comes on
 * top of this one and finds this site active.
 */
#include "probes/cache.h"
#include "probes/insn/encode.h"
#include "probes/life.h"
#include "probes/registry.h"

/* ---- step 2 ---- */

NOKPROBE_INLINE size_t stack_left(const struct probe_cpu *cpu, bool in_nmi, uintptr_t sp)
{
    return sp - (in_nmi ? cpu->plat.nmi_stack_base : *cpu->plat.stack_base);
}

/* may_enter - Return: MISS_CAUSES, or the cause for which handlers are left out. */
NOKPROBE_INLINE enum probe_miss may_enter(const struct probe_cpu *cpu,
                                          const struct site *site,
                                          const struct pt_regs *regs)
{
    /* Every instruction of what runs handlers may carry a probe, and would be hit anew in
     * every hit: the number of hits would grow with the power of the depth. */
    if (cpu->depth && site->in_engine)
        return MISS_RECURSION;
    for (unsigned i = 0; i < cpu->depth; i++)
        if (cpu->hits[i].site == site)
            return MISS_RECURSION;
    if (cpu->depth == PROBE_NEST_MAX)
        return MISS_NESTED;
    if (stack_left(cpu, probe_in_nmi(cpu), (uintptr_t)regs) < PROBE_STACK_MIN)
        return MISS_STACK;
    return MISS_CAUSES;
}

struct probe_hit *hit_enter(struct probe_cpu *cpu, struct site *site,
                            struct pt_regs *regs, enum hit_stage stage)
{
    enum probe_miss cause = may_enter(cpu, site, regs);
    struct probe_hit *hit = &cpu->hits[cpu->depth];

    if (unlikely(cause != MISS_CAUSES)) {
        if (stage == HIT_PRE)
            account_miss(cpu, site, cause);
        return NULL;
    }
    ++*cpu->plat.preempt_count;
    hit->site = site;
    hit->regs = regs;
    hit->running = NULL;
    hit->stage = (uint8_t)stage;
    hit->in_nmi = probe_in_nmi(cpu);
    hit->faulting = false;
    hit->owes_step = false;
    barrier(); /* an NMI that comes now finds either no hit here, or a whole one */
    cpu->depth++;
    return hit;
}
NOKPROBE(hit_enter);

/* ---- steps 3 and 4 ---- */

void hit_after(struct probe_cpu *cpu, struct probe_hit *hit, struct kprobe *p)
{
    struct pt_regs *regs = hit->regs;
    bool owes_step = hit->owes_step;

    aggr_run_post(p, hit);
    hit_leave(cpu);
    if (unlikely(owes_step))
        plat_raise_step(regs);
}
NOKPROBE(hit_after);

/* The effect of an emulated instruction is there at once, and so are those who wait for
 * it. A program that steps itself is owed a trap that no CPU will raise.
 */
NOKPROBE_INLINE void emulate(struct probe_cpu *cpu, struct site *site,
                             struct pt_regs *regs, bool with_post)
{
    bool stepping = regs->flags & FLAGS_TF;
    struct probe_hit *hit;

    if (!emulate_run(site, regs))
        return;
    hit = with_post ? hit_enter(cpu, site, regs, HIT_POST) : NULL;
    if (hit) {
        hit->owes_step = stepping;
        hit_after(cpu, hit, aggr_first(site));
    } else if (unlikely(stepping)) {
        plat_raise_step(regs);
    }
}

/* The instruction, with nobody to tell about it. */
NOKPROBE_INLINE void run_alone(struct site *site, struct pt_regs *regs)
{
    if (site->way == WAY_EMULATE)
        emulate(NULL, site, regs, false);
    else
        boost_run(site, regs);
}

NOKPROBE_INLINE void run(struct probe_cpu *cpu, struct site *site, struct pt_regs *regs)
{
    enum site_way way = READ_ONCE(site->way);

    probe_count(&cpu->ran[way]);
    if (way == WAY_BOOST)
        boost_run(site, regs);
    else if (way == WAY_STEP)
        step_run(cpu, site, regs);
    else
        emulate(cpu, site, regs, site->has_post);
}

NOKPROBE_INLINE void hit_before(struct probe_cpu *cpu, struct probe_hit *hit,
                                struct kprobe *p)
{
    struct site *site = hit->site;
    struct pt_regs *regs = hit->regs;
    bool elsewhere = aggr_run_pre(p, hit);

    hit_leave(cpu);
    if (likely(!elsewhere))
        run(cpu, site, regs);
}

void kprobe_resume(struct pt_regs *regs)
{
    struct probe_cpu *cpu = plat_this_cpu();
    struct probe_hit *hit = &cpu->hits[cpu->depth - 1];
    struct kprobe *p = aggr_next(hit->running);

    (void)regs;
    hit->running = NULL;
    hit->faulting = false;
    if (hit->stage == HIT_PRE)
        hit_before(cpu, hit, p);
    else if (hit->stage == HIT_POST)
        hit_after(cpu, hit, p);
    else
        fault_resume(cpu, hit, p);
}
NOKPROBE(kprobe_resume);

/* ---- the others who trap ---- */

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
    run_alone(site, regs);
    return true;
}
NOKPROBE(hit_early);

bool kprobe_int3_handler(struct pt_regs *regs)
{
    struct probe_cpu *cpu = plat_this_cpu();
    uintptr_t addr = regs->ip - 1;
    struct probe_hit *hit;
    struct site *site;

    if (unlikely(!cpu))
        return hit_early(regs, addr);
    probe_count(&cpu->traps);
    site = cache_find(cpu, addr);
    if (unlikely(!site))
        return step_int3(regs) || retry(cpu, regs, addr);
    hit = hit_enter(cpu, site, regs, HIT_PRE);
    if (likely(hit))
        hit_before(cpu, hit, aggr_first(site));
    else
        run_alone(site, regs);
    return true;
}
NOKPROBE(kprobe_int3_handler);
