/* kprobe_stores.h - part of the interface of probes: a jump stores registers, and calls
 * no handler.
 */
#pragma once

#include "probes/core/kprobe.h"

/* What a specialized detour may do in place of the pre-handler, with the same effect but
 * without an image: it calls begin() to get memory, stores registers there, and calls
 * end(). begin() and end() are not handlers: they must not fault, and must not change
 * more than the calling convention allows.
 */
struct kprobe_room {
    void *at;    /* NULL: nothing is stored, and end() is not called */
    void *token; /* passed to end() */
};
#define KPROBE_STORES_MAX 5 /* if there are more, the pre-handler is called */
struct kprobe_stores {
    struct kprobe_room (*begin)(struct kprobe *p, uintptr_t ip); /* as a light handler */
    void (*end)(void *token);
    size_t count;
    struct kprobe_store {
        uint8_t reg;     /* offset in struct pt_regs: of a general register, sp or ip */
        bool is_value;   /* store @value, not a register */
        uint8_t size;    /* bytes: 1, 2, 4 or 8 */
        uint16_t offset; /* from room.at, in bytes; above 127 the pre-handler is called */
        int32_t value;   /* its sign is extended */
    } store[KPROBE_STORES_MAX];
};

/* kprobe_by_image - if @on: from now on call the pre-handler of @p, with an image, also
 * where stores would do. Else allow stores again. A CPU that is in a hit already may
 * still store; plat_quiesce() waits for it.
 * Context: any.
 */
static inline void kprobe_by_image(struct kprobe *p, bool on)
{
    if (on)
        __atomic_or_fetch(&p->flags, KPROBE_FLAG_BY_IMAGE, __ATOMIC_RELEASE);
    else
        __atomic_and_fetch(&p->flags, ~KPROBE_FLAG_BY_IMAGE, __ATOMIC_RELEASE);
}
