/* aggr.h - stage 7: calls the handlers of all probes at an address, one after the other.
 *
 * The functions are inline, and so belong to the re-entry core: every hit runs them, and
 * if each of their instructions carried a probe, every hit would cause as many further
 * hits. The handlers themselves do not belong to the re-entry core.
 */
#pragma once

#include "probes/core/life.h"

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

/* After a jump interrupts are as the program has them, so KPROBE_FLAG_IRQS_OFF means that
 * they are switched off here.
 */
NOKPROBE_INLINE int aggr_call_pre(struct kprobe *p, struct pt_regs *regs, uint32_t flags)
{
    unsigned long irqs;
    int stop;

    if (likely(!(flags & KPROBE_FLAG_IRQS_OFF)))
        return p->pre_handler(p, regs);
    irqs = plat_irq_save();
    stop = p->pre_handler(p, regs);
    plat_irq_restore(irqs);
    return stop;
}

NOKPROBE_INLINE void aggr_call_post(struct kprobe *p, struct pt_regs *regs,
                                    uint32_t flags)
{
    unsigned long irqs;

    if (likely(!(flags & KPROBE_FLAG_IRQS_OFF))) {
        p->post_handler(p, regs, 0);
        return;
    }
    irqs = plat_irq_save();
    p->post_handler(p, regs, 0);
    plat_irq_restore(irqs);
}

/* aggr_run_light - call the light handler of @p, if it has one. Not inline, since it
 * would take registers from the code that calls pre-handlers. Context: trap.
 */
void aggr_run_light(struct kprobe *p, struct probe_hit *hit);

/* handler_returned - undo what the handler of @p has done to the flags of the CPU. After
 * a trap the engine goes on with interrupts off. After a jump the next handler must find
 * interrupts as the program has them. After the last handler of a jump, the code of the
 * detour looks at the flags itself; only DF must be clear for the C code before it.
 */
NOKPROBE_INLINE void handler_returned(const struct kprobe *p, const struct pt_regs *regs,
                                      bool jumped)
{
    if (!jumped)
        plat_flags_of_trap();
    else if (aggr_next(p))
        plat_flags_as(regs->flags);
    else
        plat_df_clear();
}

/* aggr_run_pre - call the pre-handler, or light handler, of @p.
 * @jumped: the CPU has come by a jump, not by a trap
 * Return: true: the handler has set ip itself.
 * aggr_run_post - call the post-handler of @p, if it has one. Context: trap.
 */
NOKPROBE_INLINE bool aggr_run_pre(struct kprobe *p, struct probe_hit *hit,
                                  struct pt_regs *regs, bool jumped)
{
    uint32_t flags = READ_ONCE(p->flags);
    int stop;

    if (unlikely(flags & KPROBE_FLAG_DISABLED))
        return false;
    __atomic_add_fetch(&p->hits, 1, __ATOMIC_RELAXED);
    if (unlikely(!p->pre_handler)) {
        aggr_run_light(p, hit);
        handler_returned(p, regs, jumped);
        return false;
    }
    hit->running = p;
    stop = aggr_call_pre(p, regs, flags);
    handler_returned(p, regs, jumped);
    hit->running = NULL;
    return stop;
}

NOKPROBE_INLINE void aggr_run_post(struct kprobe *p, struct probe_hit *hit,
                                   struct pt_regs *regs, bool jumped)
{
    uint32_t flags = READ_ONCE(p->flags);

    if (unlikely(flags & KPROBE_FLAG_DISABLED) || !p->post_handler)
        return;
    hit->running = p;
    aggr_call_post(p, regs, flags);
    handler_returned(p, regs, jumped);
    hit->running = NULL;
}
