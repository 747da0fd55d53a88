/* shadow.h - the shadow of a stack: which return addresses on it were exchanged, and for
 * whom.
 *
 * Entries are in the order of their calls, so deeper ones come later. Only what runs on the
 * stack changes its shadow: no locks, no atomics. But interrupts, and hits in them, come in
 * between any two instructions, push entries of their own and pop them before they end. So
 *
 *   - an entry is claimed before it is filled, and given up after it is emptied
 *   - an entry that is claimed and not filled looks like the shallowest possible, which no
 *     context that comes on top takes for a stale one
 *   - `below` is filled in last and emptied first
 *
 * An entry is as small as the 16 bytes of stack that it is there for.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "probes/kprobe.h"
#include "probes/returns/platform_returns.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Entries point at a holder. It outlives its kretprobe as long as there are such entries.
 * Locks:  I immutable   P PLAT_PROBES   p PLAT_PROBES to write, and read without locks
 */
struct kretprobe_holder {
    struct kretprobe *rp; /* [p] NULL: unregistered */
    union {
        struct {
            uint32_t data_len; /* [I] of an instance, bytes; 0: it has no data */
            int32_t limit;     /* [I] maxactive; 0: none */
        };
        uint64_t extras; /* either of them */
    };
    uint32_t counter; /* [P] of rp's hits by jumps, when a site has it as plain */
    int active;       /* instances, where there is a limit; atomic */
    bool in_use;      /* [P] holder_sweep() has met it */
    bool leaves;      /* [P] and will free it */
    struct kretprobe_holder *next; /* [P] among the unregistered ones */
};

struct shadow_entry {
    int32_t ret;    /* the real return address, from kretprobe_trampoline on */
    uint32_t below; /* where it belongs: bytes below the stack's top; 0: claimed only */
    struct kretprobe_holder *holder;
};

_Static_assert(sizeof(struct shadow_entry) == 16, "no larger than what it is there for");

#define SHADOW_STACK_BYTES 16 /* of the stack, for each entry */

/* Locks:  I immutable   o only what runs on the stack   m made once, while it runs */
struct shadow {
    uintptr_t top;              /* [I] of the stack, behind its last byte */
    size_t len;                 /* [I] of the stack, bytes */
    struct shadow_entry *last;  /* [o] the latest in use; entries[0] belongs to no call */
    struct shadow_entry *limit; /* [I] the last there is */
    uint8_t *data;              /* [m] of instances, used from the beginning; or NULL */
    size_t data_used;           /* [o] of @len bytes */
    struct shadow_entry entries[]; /* [o] */
};

/* Where there is none, for the trampoline, which looks first and asks then. */
extern struct shadow shadow_none;
extern struct kretprobe kretprobe_none;
extern struct kretprobe_holder holder_none;

/* shadow_new - for the stack of @len bytes below @top. Return: NULL without memory.
 * shadow_add_data - with room for data, if it has none yet. Return: 0; -ENOMEM.
 * shadow_free - no thread runs on that stack; @shadow may be NULL.
 * Context: thread.
 */
struct shadow *shadow_new(uintptr_t top, size_t len);
int shadow_add_data(struct shadow *shadow);
void shadow_free(struct shadow *shadow);

/* shadow_find - the entry of the return address at @slot, the real one is *@ret.
 * shadow_find_above - of the innermost one at or above @sp.
 * Context: any; the stack may be in use meanwhile. Return: false if there is none.
 */
bool shadow_find(const struct shadow *shadow, uintptr_t slot, uintptr_t *ret);
bool shadow_find_above(const struct shadow *shadow, uintptr_t sp, uintptr_t *ret);

/* ---- by what runs on the stack; parts of the re-entry core ---- */

NOKPROBE_INLINE bool shadow_covers(const struct shadow *s, uintptr_t slot)
{
    return s->top - slot - 1 < s->len;
}

/* shadow_is_empty - else the latest entry is s->last. */
NOKPROBE_INLINE bool shadow_is_empty(const struct shadow *s)
{
    return s->last == s->entries;
}

NOKPROBE_INLINE uintptr_t shadow_ret(const struct shadow_entry *e)
{
    return (uintptr_t)kretprobe_trampoline + (uintptr_t)(intptr_t)e->ret;
}

/* shadow_claim - the next entry. Return: NULL when it is full.
 * shadow_unclaim - it has not been filled in.
 */
NOKPROBE_INLINE struct shadow_entry *shadow_claim(struct shadow *s)
{
    struct shadow_entry *e = s->last;

    if (unlikely(e == s->limit))
        return NULL;
    WRITE_ONCE(s->last, e + 1);
    return e + 1;
}

NOKPROBE_INLINE void shadow_unclaim(struct shadow *s)
{
    WRITE_ONCE(s->last, s->last - 1);
}

/* shadow_pop - give the latest entry up, with its data. */
NOKPROBE_INLINE void shadow_pop(struct shadow *s)
{
    struct shadow_entry *e = s->last;
    struct kretprobe_holder *h = e->holder;

    WRITE_ONCE(e->below, 0);
    barrier();
    if (unlikely(h->extras)) {
        WRITE_ONCE(s->data_used, s->data_used - h->data_len);
        if (h->limit)
            __atomic_sub_fetch(&h->active, 1, __ATOMIC_RELAXED);
    }
    WRITE_ONCE(s->last, e - 1);
}

/* shadow_drop - the same for one that never returned. */
NOKPROBE_INLINE void shadow_drop(struct shadow *s)
{
    struct kretprobe *rp = READ_ONCE(s->last->holder->rp);

    if (rp)
        __atomic_add_fetch(&rp->dropped, 1, __ATOMIC_RELAXED);
    shadow_pop(s);
}

/* shadow_unwind - drop the entries of calls deeper than @below: what runs there now has left
 * them behind. With interrupts off, since one that comes between the look at an entry and its
 * drop could drop the same one, and then a living one would go in its place.
 */
void shadow_unwind(struct shadow *s, uint32_t below);
