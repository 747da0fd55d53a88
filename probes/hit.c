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
#include "probes/aggr.h"
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
                                          const struct pt_regs *regs, bool in_nmi)
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
    if (stack_left(cpu, in_nmi, (uintptr_t)regs) < PROBE_STACK_MIN)
        return MISS_STACK;
    return MISS_CAUSES;
}

/* @in_nmi: asked once a trap, since it stays as it is */
NOKPROBE_INLINE struct probe_hit *enter(struct probe_cpu *cpu, struct site *site,
                                        struct pt_regs *regs, enum hit_stage stage,
                                        bool in_nmi)
{
    enum probe_miss cause = may_enter(cpu, site, regs, in_nmi);
    struct probe_hit *hit = &cpu->hits[cpu->depth];

    if (unlikely(cause != MISS_CAUSES)) {
        if (stage == HIT_PRE)
            account_miss(cpu, site, cause);
        return NULL;
    }
    hit->site = site;
    hit->regs = regs;
    hit->running = NULL;
    hit->is = (struct hit_facts){ .stage = (uint8_t)stage, .in_nmi = in_nmi };
    barrier(); /* an NMI that comes now finds either no hit here, or a whole one */
    cpu->depth++;
    return hit;
}

struct probe_hit *hit_enter(struct probe_cpu *cpu, struct site *site,
                            struct pt_regs *regs, enum hit_stage stage)
{
    return enter(cpu, site, regs, stage, probe_in_nmi(cpu));
}
NOKPROBE(hit_enter);

/* ---- steps 3 and 4 ---- */

NOKPROBE_INLINE void after(struct probe_cpu *cpu, struct probe_hit *hit, struct kprobe *p,
                           struct pt_regs *regs)
{
    bool owes_step = hit->is.owes_step;

    for (; p; p = aggr_next(p))
        aggr_run_post(p, hit, regs);
    hit_leave(cpu);
    if (unlikely(owes_step))
        plat_raise_step(regs);
}

NOKPROBE_INLINE void stepped(struct probe_cpu *cpu, struct site *site,
                             struct pt_regs *regs, bool in_nmi)
{
    struct probe_hit *hit;

    regs->ip = site->addr + site->len;
    /* What was active when the pre-handlers ran is active now: they were let in, so this
     * is. */
    hit = READ_ONCE(site->has_post) ? enter(cpu, site, regs, HIT_POST, in_nmi) : NULL;
    if (hit)
        after(cpu, hit, aggr_first(site), regs);
    if (unlikely(site->pair_slot))
        boost_sti_again(site, regs);
}

void hit_stepped(struct probe_cpu *cpu, struct site *site, struct pt_regs *regs)
{
    stepped(cpu, site, regs, probe_in_nmi(cpu));
}
NOKPROBE(hit_stepped);

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
        hit->is.owes_step = stepping;
        after(cpu, hit, aggr_first(site), regs);
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
    else if (way == WAY_EMULATE)
        emulate(cpu, site, regs, READ_ONCE(site->has_post));
    else
        step_run(cpu, site, regs);
}

/* before - the pre-handlers of @p and those behind it, then the instruction, unless one of
 * them has sent the program elsewhere.
 */
NOKPROBE_INLINE void before(struct probe_cpu *cpu, struct probe_hit *hit,
                            struct kprobe *p, struct site *site, struct pt_regs *regs)
{
    for (; p; p = aggr_next(p)) {
        if (likely(!aggr_run_pre(p, hit, regs)))
            continue;
        hit_leave(cpu);
        probe_count(&cpu->redirected);
        return;
    }
    hit_leave(cpu);
    run(cpu, site, regs);
}

void kprobe_resume(struct pt_regs *regs, struct probe_cpu *cpu)
{
    struct probe_hit *hit = &cpu->hits[cpu->depth - 1];
    struct kprobe *p = aggr_next(hit->running);

    hit->running = NULL;
    hit->is.faulting = false;
    if (hit->is.stage == HIT_PRE)
        before(cpu, hit, p, hit->site, regs);
    else if (hit->is.stage == HIT_POST)
        after(cpu, hit, p, regs);
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

bool kprobe_int3_handler(struct pt_regs *regs, struct probe_cpu *cpu)
{
    uintptr_t addr = regs->ip - 1;
    struct probe_hit *hit;
    struct site *site;
    bool in_nmi;

    if (unlikely(!cpu))
        return hit_early(regs, addr);
    in_nmi = probe_in_nmi(cpu);
    site = cache_find(cpu, addr, in_nmi);
    if (unlikely(!site))
        return retry(cpu, regs, addr);
    if (site->addr != addr) {
        probe_count(&cpu->steps);
        /* Where TF was to end the step and did not, as behind an STI on some CPUs, it is
         * still set. By the program it was not, or this cell would not have been used. */
        regs->flags &= ~FLAGS_TF;
        stepped(cpu, site, regs, in_nmi);
        return true;
    }
    hit = enter(cpu, site, regs, HIT_PRE, in_nmi);
    if (likely(hit))
        before(cpu, hit, aggr_first(site), site, regs);
    else
        run_alone(site, regs);
    return true;
}
NOKPROBE(kprobe_int3_handler);
