/* hit.h - the steps that a hit by a trap and a hit by a jump have in common. Private to
 * the engine. The functions are inline, since a call would cost as much as they do.
 */
#pragma once

#include "probes/core/aggr.h"
#include "probes/core/step.h"

NOKPROBE_INLINE size_t hit_stack_left(const struct probe_cpu *cpu, bool in_nmi,
                                      uintptr_t sp)
{
    return sp - (in_nmi ? cpu->plat.nmi_stack_base : *cpu->plat.stack_base);
}

/* is_light_at - does a light handler of @site run now, which a detour has called? */
NOKPROBE_INLINE bool is_light_at(const struct probe_cpu *cpu, const struct site *site)
{
    const struct plat_light *light = light_frame(cpu);

    return light && light->probe->site == site;
}

/* may_enter - may the handlers of a hit of @site run now?
 * Return: MISS_CAUSES: yes; else the cause of the miss.
 */
NOKPROBE_INLINE enum probe_miss may_enter(const struct probe_cpu *cpu,
                                          const struct site *site,
                                          const struct pt_regs *regs, bool in_nmi)
{
    /* A site in the engine's own code: each instruction of the code that runs handlers
     * may carry a probe. If these probes ran handlers inside of other hits, each such hit
     * would again hit all of these probes, and the number of hits would grow
     * exponentially with the depth.
     */
    if (cpu->depth && (site->in_engine || is_light_at(cpu, site)))
        return MISS_RECURSION;
    /* probes/xmc may have put @site in place of the site of an active hit. Both have the
     * same list of probes.
     */
    for (unsigned i = 0; i < cpu->depth; i++) {
        const struct site *active = hit_site(&cpu->hits[i]);

        if (active && READ_ONCE(active->probes) == READ_ONCE(site->probes))
            return MISS_RECURSION;
    }
    if (cpu->depth == PROBE_NEST_MAX)
        return MISS_NESTED;
    if (hit_stack_left(cpu, in_nmi, (uintptr_t)regs) < PROBE_STACK_MIN)
        return MISS_STACK;
    return MISS_CAUSES;
}

/* hit_claim - take the next entry of hits[]. The entry is taken before anything is
 * written into it: an NMI may come at any moment, and hits in the NMI must take entries
 * above this one. Until its site is filled in, the entry has none, because hit_leave()
 * has cleared it.
 */
NOKPROBE_INLINE struct probe_hit *hit_claim(struct probe_cpu *cpu)
{
    struct probe_hit *hit = &cpu->hits[cpu->depth++];

    barrier();
    return hit;
}

/* hit_fill - make an entry for a hit of @site that is admitted: its handlers may run. */
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

/* hit_begin - do the work of hit_enter() for a caller that knows whether the CPU is in an
 * NMI (@in_nmi): a trap handler finds that out only once.
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

/* hit_follow - make the entry for the post-handlers of a hit that was admitted for its
 * pre-handlers. The same other hits are active as then, so only the stack is checked
 * again: the instruction itself may have used it up.
 * Return: NULL: less than half of PROBE_STACK_MIN is left.
 */
NOKPROBE_INLINE struct probe_hit *hit_follow(struct probe_cpu *cpu, struct site *site,
                                             struct pt_regs *regs, bool in_nmi)
{
    if (unlikely(hit_stack_left(cpu, in_nmi, (uintptr_t)regs) < PROBE_STACK_MIN / 2))
        return NULL;
    return hit_fill(cpu, site, regs, HIT_POST);
}

/* hit_after - run the post-handlers of @p and of the probes behind it in the list, then
 * leave @hit.
 */
NOKPROBE_INLINE void hit_after(struct probe_cpu *cpu, struct probe_hit *hit,
                               struct kprobe *p, struct pt_regs *regs, bool jumped)
{
    for (; p; p = aggr_next(p))
        aggr_run_post(p, hit, regs, jumped);
    hit_leave(cpu, hit, jumped);
}

/* hit_stepped - run the post-handlers when the CPU has executed the copy of @site, and
 * let the program go on behind the original instruction.
 * @admitted: true: the hit was admitted before the instruction. False: the program has
 *            stepped through the copy itself, so it is not known whether the hit was
 *            admitted; decide now, if there are post-handlers.
 */
NOKPROBE_INLINE void hit_stepped(struct probe_cpu *cpu, struct site *site,
                                 struct pt_regs *regs, bool in_nmi, bool admitted,
                                 bool jumped)
{
    struct probe_hit *hit = NULL;

    regs->ip = site->addr + site->len;
    if (READ_ONCE(site->has_post))
        hit = admitted ? hit_follow(cpu, site, regs, in_nmi)
                       : hit_begin(cpu, site, regs, HIT_POST, in_nmi);
    if (hit && !admitted)
        hit->is.owes_step = true;
    if (hit && jumped)
        hit_by_jump(hit);
    if (hit)
        hit_after(cpu, hit, aggr_first(site), regs, jumped);
    if (unlikely(site->is_sti))
        boost_sti_again(site, regs);
}

/* hit_step_ended - handle the end of a step that the engine has started, by TF or by the
 * int3 behind the copy. TF may still be set at the int3, if a step was to end by TF but the
 * CPU has not raised #DB, as some CPUs do behind an STI. It is the engine's TF: if the
 * program had set TF, the engine would not have used the step slot. RF: see emulate_run().
 */
NOKPROBE_INLINE void hit_step_ended(struct probe_cpu *cpu, struct site *site,
                                    struct pt_regs *regs, bool in_nmi)
{
    probe_count(&cpu->steps);
    regs->flags &= ~(FLAGS_TF | FLAGS_RF);
    hit_stepped(cpu, site, regs, in_nmi, true, false);
    site_go_anywhere(regs);
}

/* hit_emulate - emulate the instruction of @site, and run its post-handlers at once, if
 * @with_post. If the program has TF set, it must get a #DB after the instruction. The CPU
 * raises none, because it has not executed the instruction; so the engine does.
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
        ext_raise_step(regs, jumped);
    site_go_anywhere(regs);
}

/* hit_run_alone - let the instruction happen, without handlers. */
NOKPROBE_INLINE void hit_run_alone(struct site *site, struct pt_regs *regs, bool jumped)
{
    if (site->way == WAY_EMULATE)
        hit_emulate(NULL, site, regs, false, jumped);
    else
        boost_run(site, regs);
}

/* hit_run - let the instruction happen, and the post-handlers run behind it.
 * @way: what site->way is now; it is not WAY_BOOST if there are post-handlers
 */
NOKPROBE_INLINE void hit_run(struct probe_cpu *cpu, struct site *site,
                             struct pt_regs *regs, enum site_way way, bool jumped)
{
    if (way == WAY_BOOST)
        boost_run(site, regs);
    else if (way == WAY_EMULATE)
        hit_emulate(cpu, site, regs, READ_ONCE(site->has_post), jumped);
    else
        step_run(cpu, site, regs, jumped);
}

/* hit_before - run the pre-handlers of @p and of the probes behind it in the list, leave
 * @hit, and let the instruction happen. If a handler has set ip itself, the later
 * handlers and the instruction are left out.
 * @jumped: the CPU has come by a jump, not by a trap
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
        regs->flags &= ~FLAGS_RF; /* see emulate_run() */
        site_go_anywhere(regs);
        return;
    }
    hit_leave(cpu, hit, jumped);
    way = READ_ONCE(site->way);
    probe_count(&cpu->ran[jumped ? WAY_JUMP : way]);
    hit_run(cpu, site, regs, way, jumped);
}
