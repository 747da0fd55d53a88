/* aggr.h - stage 7: calling the handlers of an address, one after the other.
 *
 * Inline, and so a part of the re-entry core: it runs in every hit, and probes in it would
 * multiply all hits by its length. Only the handlers themselves are not.
 */
#pragma once

#include "probes/life.h"

NOKPROBE_INLINE struct kprobe *aggr_first(const struct site *site)
{
    return __atomic_load_n(&site->probes, __ATOMIC_ACQUIRE);
}

NOKPROBE_INLINE struct kprobe *aggr_next(const struct kprobe *p)
{
    return __atomic_load_n(&p->next, __ATOMIC_ACQUIRE);
}

NOKPROBE_INLINE bool aggr_is_off(const struct kprobe *p)
{
    return READ_ONCE(p->flags) & KPROBE_FLAG_DISABLED;
}

/* aggr_run_pre - call the pre-handler of @p. Return: true when it has set ip itself.
 * aggr_run_post - call its post-handler.
 * Context: trap.
 */
NOKPROBE_INLINE bool aggr_run_pre(struct kprobe *p, struct probe_hit *hit,
                                  struct pt_regs *regs)
{
    int stop;

    if (unlikely(aggr_is_off(p)))
        return false;
    __atomic_add_fetch(&p->hits, 1, __ATOMIC_RELAXED);
    if (!p->pre_handler)
        return false;
    hit->running = p;
    stop = p->pre_handler(p, regs);
    hit->running = NULL;
    return stop;
}

NOKPROBE_INLINE void aggr_run_post(struct kprobe *p, struct probe_hit *hit,
                                   struct pt_regs *regs)
{
    if (unlikely(aggr_is_off(p)) || !p->post_handler)
        return;
    hit->running = p;
    p->post_handler(p, regs, 0);
    hit->running = NULL;
}
