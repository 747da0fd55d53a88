/* aggr.c - stages 4 and 7: several probes at one address.
 *
 * The list is singly linked and read by hits without locks. A probe is linked in whole,
 * and unlinked with its own link left in place, so that a hit that stands on it finds the
 * way on; its memory is the owner's again only after quiescence.
 *
 * What walks the list in a hit is core: it runs in every hit, and probes in it would
 * multiply all hits by its length. Only the handlers themselves are not.
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

bool aggr_wants_post(const struct site *site)
{
    for (const struct kprobe *q = site->probes; q; q = q->next)
        if (q->post_handler)
            return true;
    return false;
}

bool aggr_run_pre(struct kprobe *p, struct probe_hit *hit)
{
    for (; p; p = aggr_next(p)) {
        int stop;

        if (is_off(p))
            continue;
        __atomic_add_fetch(&p->hits, 1, __ATOMIC_RELAXED);
        if (!p->pre_handler)
            continue;
        hit->running = p;
        stop = p->pre_handler(p, hit->regs);
        hit->running = NULL;
        if (stop)
            return true;
    }
    return false;
}
NOKPROBE(aggr_run_pre);

void aggr_run_post(struct kprobe *p, struct probe_hit *hit)
{
    for (; p; p = aggr_next(p)) {
        if (is_off(p) || !p->post_handler)
            continue;
        hit->running = p;
        p->post_handler(p, hit->regs, 0);
        hit->running = NULL;
    }
}
NOKPROBE(aggr_run_post);
