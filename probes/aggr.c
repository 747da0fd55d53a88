/* aggr.c - stages 4 and 7: several probes at one address.
 *
 * The list is singly linked and read by hits without locks. A probe is linked in whole,
 * and unlinked with its own link left in place, so that a hit that stands on it finds the
 * way on; its memory is the owner's again only after quiescence.
 *
 * What walks the list in a hit is core: it runs in every hit, and probes in it would
 * multiply all hits by its length. Only handlers are called out of the core.
 */
#include "probes/life.h"

NOKPROBE_INLINE bool is_off(const struct kprobe *p)
{
    return READ_ONCE(p->flags) & KPROBE_FLAG_DISABLED;
}

void aggr_add(struct site *site, struct kprobe *p)
{
    struct kprobe **link = &site->probes;

    p->next = NULL;
    while (*link)
        link = &(*link)->next;
    __atomic_store_n(link, p, __ATOMIC_RELEASE);
}

void aggr_remove(struct site *site, struct kprobe *p)
{
    struct kprobe **link = &site->probes;

    while (*link != p)
        link = &(*link)->next;
    __atomic_store_n(link, p->next, __ATOMIC_RELEASE);
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
        if (!is_off(q))
            return true;
    return false;
}

bool aggr_has_post(const struct site *site)
{
    for (const struct kprobe *q = site->probes; q; q = q->next)
        if (q->post_handler)
            return true;
    return false;
}
NOKPROBE(aggr_has_post);

NOKPROBE_INLINE struct kprobe *first(const struct site *site)
{
    return __atomic_load_n(&site->probes, __ATOMIC_ACQUIRE);
}

NOKPROBE_INLINE struct kprobe *next(const struct kprobe *p)
{
    return __atomic_load_n(&p->next, __ATOMIC_ACQUIRE);
}

bool aggr_run_pre(struct site *site, struct pt_regs *regs, struct probe_hit *hit)
{
    for (struct kprobe *p = first(site); p; p = next(p)) {
        int stop;

        if (is_off(p))
            continue;
        __atomic_add_fetch(&p->hits, 1, __ATOMIC_RELAXED);
        if (!p->pre_handler)
            continue;
        hit->running = p;
        stop =
            plat_call_handler(p, regs, 0, (void (*)(void))p->pre_handler, &hit->escape);
        hit->running = NULL;
        if (stop && stop != PLAT_ESCAPED)
            return true;
    }
    return false;
}
NOKPROBE(aggr_run_pre);

void aggr_run_post(struct site *site, struct pt_regs *regs, struct probe_hit *hit)
{
    for (struct kprobe *p = first(site); p; p = next(p)) {
        if (is_off(p) || !p->post_handler)
            continue;
        hit->running = p;
        plat_call_handler(p, regs, 0, (void (*)(void))p->post_handler, &hit->escape);
        hit->running = NULL;
    }
}
NOKPROBE(aggr_run_post);
