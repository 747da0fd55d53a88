/* shadow.c - shadow stacks: creating and freeing them, and searching in them. */
#include "probes/returns/shadow.h"

#include "kernel/base/err.h"

struct kretprobe kretprobe_none;
struct kretprobe_holder holder_none;
struct shadow shadow_none = {
    .last = shadow_none.entries,
    .limit = shadow_none.entries,
    .entries = { { .holder = &holder_none } },
};

struct shadow *shadow_new(uintptr_t top, size_t len)
{
    size_t room = len / SHADOW_STACK_BYTES;
    struct shadow *s = plat_alloc(sizeof(*s) + (room + 1) * sizeof(s->entries[0]));

    if (!s)
        return NULL;
    s->top = top;
    s->len = len;
    s->last = s->entries;
    s->limit = s->entries + room;
    s->entries[0].holder = &holder_none;
    return s;
}

int shadow_add_data(struct shadow *s)
{
    uint8_t *data;

    if (s->data)
        return 0;
    data = plat_alloc(s->len);
    if (!data)
        return -ENOMEM;
    __atomic_store_n(&s->data, data, __ATOMIC_RELEASE);
    return 0;
}

void shadow_free(struct shadow *s)
{
    if (!s)
        return;
    plat_free(s->data);
    plat_free(s);
}

/* Each drop reads a pointer to the instance's kretprobe, and then adds one to a counter in
 * that kretprobe. Interrupts are off between the two. So there is no quiescence between
 * them, and the kretprobe cannot be unregistered and freed.
 */
void shadow_unwind(struct shadow *s, uint32_t below)
{
    unsigned long flags = plat_irq_save();

    while (s->last->below > below)
        shadow_drop(s);
    plat_irq_restore(flags);
}
NOKPROBE(shadow_unwind);

/* The search begins with the latest entry: if several entries have the same slot, only the
 * latest one can be valid. The slot of a stale entry may also hold the return address of
 * another call by now.
 */
bool shadow_find(const struct shadow *s, uintptr_t slot, uintptr_t *ret)
{
    uint32_t below = (uint32_t)(s->top - slot);

    if (!shadow_covers(s, slot))
        return false;
    for (const struct shadow_entry *e = READ_ONCE(s->last); e > s->entries; e--) {
        if (READ_ONCE(e->below) != below)
            continue;
        *ret = shadow_ret(e);
        return true;
    }
    return false;
}

bool shadow_find_above(const struct shadow *s, uintptr_t sp, uintptr_t *ret)
{
    uint32_t below = (uint32_t)(s->top - sp);

    if (!shadow_covers(s, sp))
        return false;
    for (const struct shadow_entry *e = READ_ONCE(s->last); e > s->entries; e--) {
        uint32_t at = READ_ONCE(e->below);

        if (!at || at > below)
            continue;
        *ret = shadow_ret(e);
        return true;
    }
    return false;
}
