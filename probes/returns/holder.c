/* holder.c - what shadow entries point at, and when it can be freed.
 *
 * A kretprobe is its caller's again as soon as it is unregistered, while calls that it has
 * seen may still be under way, and stay so for ever. Their entries point at its holder
 * instead. The entries of a holder are not counted. The next registering or unregistering
 * looks at all shadow stacks, and frees a holder that was taken out of use before the last
 * quiescence, and that no entry points at:
 *
 *   1. No entry that is in use points at it, and none ever will again.
 *   2. An entry keeps its holder when it is popped, and a call claims an entry before it
 *      fills it. Between the two an NMI may come, and a function in it may return to the
 *      trampoline, which loads the holder of the latest entry before it knows whether the
 *      entry is its own. So the pointers in all entries that are not in use are cleared,
 *      too. A call that fills such an entry meanwhile writes another holder there: the
 *      pointer is cleared only while it is that of this one.
 *   3. Each NMI that has loaded the pointer before has ended, after plat_sync_cores().
 *   4. The holder is freed. So each holder that any entry points at can be read.
 */
#include "probes/returns/holder.h"

#include "probes/returns/platform_returns.h"

#define DATA_ALIGN 16

static struct kretprobe_holder *unused; /* PLAT_PROBES: unregistered, not freed */

static uint32_t instance_len(size_t data_size)
{
    size_t len = sizeof(struct kretprobe_instance) + data_size;

    return data_size ? (uint32_t)((len + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN) : 0;
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

/* 1. An entry stays where it is until it is popped, so none is missed. An entry popped
 * meanwhile keeps its holder until the next time. Where `below` is filled in, the holder is.
 */
static void mark_used(struct shadow *s, void *arg UNUSED)
{
    const struct shadow_entry *last = __atomic_load_n(&s->last, __ATOMIC_ACQUIRE);

    for (const struct shadow_entry *e = s->entries + 1; e <= last; e++)
        if (__atomic_load_n(&e->below, __ATOMIC_ACQUIRE))
            READ_ONCE(e->holder)->in_use = true;
}

/* 2. */
static void clear(struct shadow *s, void *arg UNUSED)
{
    for (struct shadow_entry *e = s->entries + 1; e <= s->limit; e++) {
        struct kretprobe_holder *h = READ_ONCE(e->holder);

        if (h && h->leaves)
            __atomic_compare_exchange_n(&e->holder, &h, NULL, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
    }
}

/* choose_leaving - which of them leave? Return: none does. */
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
    plat_shadow_for_each(clear, NULL);
    plat_sync_cores(); /* 3. */
    while ((h = *link) != NULL) {
        if (!h->leaves) {
            link = &h->next;
            continue;
        }
        *link = h->next;
        plat_free(h);
    }
}
