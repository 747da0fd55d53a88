/* holder.c - makes and frees holders: memory of the engine that shadow entries point at.
 *
 * The caller may free a kretprobe as soon as it is unregistered. But some calls that it
 * has seen may still be running then, and may never return. So the shadow entries of
 * these calls do not point at the kretprobe. They point at its holder, which the engine
 * owns. The engine does not count the entries of a holder. Instead, each registration and
 * each unregistration looks at all shadow stacks. It frees a holder that was retired before
 * the last quiescence and that no entry points at:
 *
 *   1. No entry in use points at the holder. No new entry will, because it is retired.
 *   2. The pointer may still be in an entry that is not in use, because an entry keeps its
 *      holder when it is popped. The trampoline may load that old pointer: a call claims an
 *      entry and fills it later, an NMI may come between the two, and a function in the NMI
 *      may return to the trampoline. The trampoline loads the holder of the latest entry
 *      before it checks whether the entry belongs to the function that returns. Therefore
 *      the pointer to this holder is cleared in all entries. If a call fills an entry at
 *      the same time, it writes a pointer to another holder, which must stay. So the
 *      pointer is cleared by a compare-and-exchange.
 *   3. After plat_sync_cores() every NMI that has loaded the old pointer has ended.
 *   4. The holder is freed. So every holder that an entry in use points at can be read, and
 *      shadow_pop() does not read it any more when the entry is not in use.
 */
#include "probes/returns/holder.h"

#include "probes/returns/platform_returns.h"

#define DATA_ALIGN 16

static struct kretprobe_holder *unused; /* [PLAT_PROBES] retired, and not freed yet */

static uint16_t instance_len(size_t data_size)
{
    size_t len = sizeof(struct kretprobe_instance) + data_size;

    return data_size ? (uint16_t)((len + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN) : 0;
}

struct kretprobe_holder *holder_new(struct kretprobe *rp)
{
    struct kretprobe_holder *h = plat_alloc(sizeof(*h));

    if (!h)
        return NULL;
    h->rp = rp;
    h->data_len = instance_len(rp->data_size);
    h->limit = rp->maxactive > 0 ? rp->maxactive : 0;
    return h;
}

void holder_retire(struct kretprobe_holder *h)
{
    h->next = unused;
    unused = h;
}

/* Step 1. No entry is missed, because an entry does not move until it is popped. If an
 * entry is popped during the walk, its holder may count as used, and is freed at a later
 * sweep. `below` is written last: where it is not 0, the entry has its holder.
 */
static void mark_used(struct shadow *s, void *arg UNUSED)
{
    const struct shadow_entry *last = __atomic_load_n(&s->last, __ATOMIC_ACQUIRE);

    for (const struct shadow_entry *e = s->entries + 1; e <= last; e++)
        if (__atomic_load_n(&e->below, __ATOMIC_ACQUIRE))
            READ_ONCE(e->holder)->in_use = true;
}

/* Step 2. */
static void holder_clear(struct shadow *s, void *arg UNUSED)
{
    for (struct shadow_entry *e = s->entries + 1; e <= s->limit; e++) {
        struct kretprobe_holder *h = READ_ONCE(e->holder);

        if (h && h->leaves)
            __atomic_compare_exchange_n(&e->holder, &h, NULL, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
    }
}

/* choose_leaving - set `leaves` in each retired holder that no entry in use points at.
 * Return: true: there is no such holder.
 */
static bool choose_leaving(void)
{
    bool none = true;

    for (struct kretprobe_holder *h = unused; h; h = h->next)
        h->in_use = false;
    plat_shadow_for_each(mark_used, NULL);
    for (struct kretprobe_holder *h = unused; h; h = h->next) {
        h->leaves = !h->in_use;
        none &= h->in_use;
    }
    return none;
}

void holder_sweep(void)
{
    struct kretprobe_holder **link = &unused, *h;

    if (!unused || choose_leaving())
        return;
    plat_shadow_for_each(holder_clear, NULL);
    plat_sync_cores(); /* step 3 */
    while ((h = *link) != NULL) {
        if (!h->leaves) {
            link = &h->next;
            continue;
        }
        *link = h->next;
        plat_free(h);
    }
}
