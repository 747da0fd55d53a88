/* kprobe_stores.h - the interface of jumps: registers that are stored without a handler. */
#pragma once

#include "probes/core/kprobe.h"

/* What a jump's own code may do in the place of the pre-handler, to the same effect and
 * without an image: ask for room, store registers there, and say that it is done. It is no
 * handler: what is called must not fault, nor change more than the calling convention allows.
 */
struct kprobe_room {
    void *at;    /* NULL: nothing is stored, and nothing is said */
    void *token; /* for the other one */
};
#define KPROBE_STORES_MAX 5 /* of more there is an image */
struct kprobe_stores {
    struct kprobe_room (*begin)(struct kprobe *p, uintptr_t ip); /* as a light handler */
    void (*end)(void *token);
    size_t count;
    struct kprobe_store {
        uint8_t reg;     /* offset in struct pt_regs: of a general register, sp or ip */
        bool is_value;   /* @value, no register */
        uint8_t size;    /* bytes: 1, 2, 4 or 8 */
        uint16_t offset; /* from room.at; up to 127, else there is an image */
        int32_t value;   /* its sign is extended */
    } store[KPROBE_STORES_MAX];
};

/* kprobe_by_image - from now on the pre-handler of @p is called where stores would do; or no
 * longer. CPUs that are in a hit already may still store: plat_quiesce() waits for those.
 * Context: any.
 */
static inline void kprobe_by_image(struct kprobe *p, bool on)
{
    if (on)
        __atomic_or_fetch(&p->flags, KPROBE_FLAG_BY_IMAGE, __ATOMIC_RELEASE);
    else
        __atomic_and_fetch(&p->flags, ~KPROBE_FLAG_BY_IMAGE, __ATOMIC_RELEASE);
}
