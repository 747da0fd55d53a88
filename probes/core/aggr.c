/* aggr.c - stage 4: keeps the list of the probes at one address.
 *
 * The list is singly linked, and hits read it without locks. A probe is complete before
 * it is linked in. When it is taken out, its own link stays in place, so that a hit that
 * is at this probe finds the next one. So the owner of the probe may use its memory again
 * only after quiescence.
 */
#include "probes/core/aggr.h"

/* mirror - show in the flags of @p whether its site is a jump. */
static void mirror(struct kprobe *p, bool is_jump)
{
    if (is_jump)
        __atomic_or_fetch(&p->flags, KPROBE_FLAG_OPTIMIZED, __ATOMIC_RELAXED);
    else
        __atomic_and_fetch(&p->flags, ~KPROBE_FLAG_OPTIMIZED, __ATOMIC_RELAXED);
}

void aggr_mirror(const struct site *site)
{
    for (struct kprobe *p = site->probes; p; p = p->next)
        mirror(p, site->state == SITE_OPTIMIZED);
}

void aggr_add(struct site *site, struct kprobe *p)
{
    struct kprobe **link = &site->probes;

    p->next = NULL;
    while (*link)
        link = &(*link)->next;
    mirror(p, site->state == SITE_OPTIMIZED);
    __atomic_store_n(link, p, __ATOMIC_RELEASE);
}

void aggr_remove(struct site *site, struct kprobe *p)
{
    struct kprobe **link = &site->probes;

    while (*link != p)
        link = &(*link)->next;
    __atomic_store_n(link, p->next, __ATOMIC_RELEASE);
    mirror(p, false);
}

bool aggr_find(const struct site *site, const struct kprobe *p)
{
    for (const struct kprobe *q = site->probes; q; q = q->next)
        if (q == p)
            return true;
    return false;
}

bool aggr_enabled(const struct site *site)
{
    for (const struct kprobe *q = site->probes; q; q = q->next)
        if (!aggr_is_off(q))
            return true;
    return false;
}

bool aggr_wants_post(const struct site *site)
{
    for (const struct kprobe *q = site->probes; q; q = q->next)
        if (q->post_handler)
            return true;
    return false;
}

void aggr_run_light(struct kprobe *p, struct probe_hit *hit)
{
    bool irqs_off = READ_ONCE(p->flags) & KPROBE_FLAG_IRQS_OFF;
    unsigned long irqs = 0;

    if (!p->light_handler)
        return;
    hit->running = p;
    if (irqs_off)
        irqs = plat_irq_save();
    p->light_handler(p, p->addr);
    if (irqs_off)
        plat_irq_restore(irqs);
    hit->running = NULL;
}
NOKPROBE(aggr_run_light);
