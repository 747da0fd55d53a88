/* holder.c - what shadow entries point at, and when it can be freed.
 *
 * A kretprobe is its caller's again as soon as it is unregistered, while calls that it has
 * seen may still be under way, and stay so for ever. Their entries point at its holder
 * instead. Nobody counts them. Whoever registers or unregisters the next time looks at all
 * shadow stacks: a holder that was taken out of use before the last quiescence, and that no
 * entry points at, will never be pointed at again.
 */
#include "probes/holder.h"

#include "probes/platform.h"

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

/* An entry stays where it is until it is popped, so none is missed; one that is popped
 * meanwhile keeps its holder until the next time. Where `below` is filled in, the holder is,
 * and has not been freed: only we do that.
 */
static void mark(struct shadow *s, void *arg)
{
    const struct shadow_entry *last = __atomic_load_n(&s->last, __ATOMIC_ACQUIRE);

    (void)arg;
    for (const struct shadow_entry *e = s->entries + 1; e <= last; e++)
        if (__atomic_load_n(&e->below, __ATOMIC_ACQUIRE))
            READ_ONCE(e->holder)->in_use = true;
}

void holder_sweep(void)
{
    struct kretprobe_holder **link = &unused, *h;

    for (h = unused; h; h = h->next)
        h->in_use = false;
    if (unused)
        plat_shadow_for_each(mark, NULL);
    while ((h = *link) != NULL) {
        if (h->in_use) {
            link = &h->next;
            continue;
        }
        *link = h->next;
        plat_free(h);
    }
}
