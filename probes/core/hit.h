/* hit.h - the parts that a hit by a trap and one by a jump have in common. Private to hit.c
 * and jump.c; inline, since a call would cost as much as what they do.
 */
#pragma once

#include "probes/core/aggr.h"
#include "probes/core/step.h"

NOKPROBE_INLINE size_t stack_left(const struct probe_cpu *cpu, bool in_nmi, uintptr_t sp)
{
    return sp - (in_nmi ? cpu->plat.nmi_stack_base : *cpu->plat.stack_base);
}

/* is_light_at - does a light handler of @site run? */
NOKPROBE_INLINE bool is_light_at(const struct probe_cpu *cpu, const struct site *site)
{
    const struct plat_light *light = light_frame(cpu);

    return light && light->probe->site == site;
}

/* may_enter - Return: MISS_CAUSES, or the cause for which handlers are left out. */
NOKPROBE_INLINE enum probe_miss may_enter(const struct probe_cpu *cpu,
                                          const struct site *site,
                                          const struct pt_regs *regs, bool in_nmi)
{
    /* Every instruction of the code that runs handlers may carry a probe. Each would be hit
     * again in every hit of another, so the number of hits would grow exponentially with
     * the depth.
     */
    if (cpu->depth && (site->in_engine || is_light_at(cpu, site)))
        return MISS_RECURSION;
    for (unsigned i = 0; i < cpu->depth; i++)
        if (hit_site(&cpu->hits[i]) == site)
            return MISS_RECURSION;
    if (cpu->depth == PROBE_NEST_MAX)
        return MISS_NESTED;
    if (stack_left(cpu, in_nmi, (uintptr_t)regs) < PROBE_STACK_MIN)
        return MISS_STACK;
    return MISS_CAUSES;
}

/* hit_claim - the next entry is mine. Before anything is written to it: an NMI that comes in
 * between has hits of its own, and they have to come on top. A claimed entry belongs to no
 * site until its site is filled in, as hit_leave() has left it.
 */
NOKPROBE_INLINE struct probe_hit *hit_claim(struct probe_cpu *cpu)
{
    struct probe_hit *hit = &cpu->hits[cpu->depth++];

    barrier();
    return hit;
}

/* hit_fill - a hit of @site, which has been admitted. */
NOKPROBE_INLINE struct probe_hit *hit_fill(struct probe_cpu *cpu, struct site *site,
                                           struct pt_regs *regs, enum hit_stage stage)
{
    struct probe_hit *hit = hit_claim(cpu);

    hit->is = (struct hit_facts){ .stage = (uint8_t)stage };
    hit->found = *plat_depths(cpu);
    hit->regs = regs;
    WRITE_ONCE(hit->site, site);
    return hit;
}

/* hit_begin - hit_enter() for a caller that knows already whether the CPU is in an NMI: a
 * trap finds that out once.
 */
NOKPROBE_INLINE struct probe_hit *hit_begin(struct probe_cpu *cpu, struct site *site,
                                            struct pt_regs *regs, enum hit_stage stage,
                                            bool in_nmi)
{
    enum probe_miss cause = may_enter(cpu, site, regs, in_nmi);

    if (likely(cause == MISS_CAUSES))
        return hit_fill(cpu, site, regs, stage);
    if (stage == HIT_PRE)
        account_miss(cpu, site, cause);
    return NULL;
}

/* hit_follow - the same behind the instruction of a hit that was admitted: what was active
 * then is active now. Only the instruction itself may have used up the stack.
 */
NOKPROBE_INLINE struct probe_hit *hit_follow(struct probe_cpu *cpu, struct site *site,
                                             struct pt_regs *regs, bool in_nmi)
{
    if (unlikely(stack_left(cpu, in_nmi, (uintptr_t)regs) < PROBE_STACK_MIN / 2))
        return NULL;
    return hit_fill(cpu, site, regs, HIT_POST);
}

/* hit_after - the post-handlers of @p and those behind it. */
NOKPROBE_INLINE void hit_after(struct probe_cpu *cpu, struct probe_hit *hit,
                               struct kprobe *p, struct pt_regs *regs, bool jumped)
{
    for (; p; p = aggr_next(p))
        aggr_run_post(p, hit, regs, jumped);
    hit_leave(cpu, hit, jumped);
}

/* hit_stepped - the CPU has executed the copy of @site: run the post-handlers, and let
 * @regs go on behind the original instruction.
 * @admitted: true: the hit was admitted, and its pre-handlers have run. False: the
 *            program has stepped through the copy itself, so admit the hit now, if there
 *            are post-handlers.
 */
NOKPROBE_INLINE void hit_stepped(struct probe_cpu *cpu, struct site *site,
                                 struct pt_regs *regs, bool in_nmi, bool admitted)
{
    struct probe_hit *hit = NULL;

    regs->ip = site->addr + site->len;
    if (READ_ONCE(site->has_post))
        hit = admitted ? hit_follow(cpu, site, regs, in_nmi)
                       : hit_begin(cpu, site, regs, HIT_POST, in_nmi);
    if (hit)
        hit_after(cpu, hit, aggr_first(site), regs, false);
    if (unlikely(site->is_sti))
        boost_sti_again(site, regs);
}

/* hit_emulate - the effect of an emulated instruction is there at once, so its
 * post-handlers run at once. A program that steps itself is owed a trap that no CPU will
 * raise.
 */
NOKPROBE_INLINE void hit_emulate(struct probe_cpu *cpu, struct site *site,
                                 struct pt_regs *regs, bool with_post, bool jumped)
{
    bool stepping = regs->flags & FLAGS_TF;
    struct probe_hit *hit;

    if (!emulate_run(site, regs))
        return;
    hit = with_post ? hit_follow(cpu, site, regs, probe_in_nmi(cpu)) : NULL;
    if (hit) {
        hit->is.owes_step = stepping;
        if (jumped)
            hit_by_jump(hit);
        hit_after(cpu, hit, aggr_first(site), regs, jumped);
    }
    if (unlikely(stepping))
        plat_raise_step(regs);
    site_go_on(site, regs);
}

/* hit_run_alone - the instruction, without handlers. */
NOKPROBE_INLINE void hit_run_alone(struct site *site, struct pt_regs *regs)
{
    if (site->way == WAY_EMULATE)
        hit_emulate(NULL, site, regs, false, false);
    else
        boost_run(site, regs);
}

/* hit_run - the same with post-handlers. @way: what site->way is now */
NOKPROBE_INLINE void hit_run(struct probe_cpu *cpu, struct site *site,
                             struct pt_regs *regs, enum site_way way, bool jumped)
{
    if (way == WAY_BOOST)
        boost_run(site, regs);
    else if (way == WAY_EMULATE)
        hit_emulate(cpu, site, regs, READ_ONCE(site->has_post), jumped);
    else
        step_run(cpu, site, regs);
}

/* hit_before - the pre-handlers of @p and those behind it, then the instruction, unless one
 * of them has sent the program elsewhere.
 * @jumped: no trap has brought the program here
 */
NOKPROBE_INLINE void hit_before(struct probe_cpu *cpu, struct probe_hit *hit,
                                struct kprobe *p, struct site *site, struct pt_regs *regs,
                                bool jumped)
{
    enum site_way way;

    for (; p; p = aggr_next(p)) {
        if (likely(!aggr_run_pre(p, hit, regs, jumped)))
            continue;
        hit_leave(cpu, hit, jumped);
        probe_count(&cpu->redirected);
        if (jumped)
            probe_count(&cpu->untrapped);
        site_go_on(site, regs);
        return;
    }
    hit_leave(cpu, hit, jumped);
    way = READ_ONCE(site->way);
    probe_count(&cpu->ran[jumped ? WAY_JUMP : way]);
    hit_run(cpu, site, regs, way, jumped);
}
