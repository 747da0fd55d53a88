/* shadow.h - the shadow of a stack: a list of the return addresses on the stack that the
 * engine has exchanged. Each entry of the list also tells for which return probe.
 *
 * Entries are in the order of their calls, so the entries of deeper calls come later. Only
 * code that runs on the stack changes its shadow, so there are no locks and no atomic
 * instructions. But an interrupt may come between any two instructions. Functions that
 * the interrupt calls may push entries, and pop them before the interrupt ends.
 * Therefore:
 *
 *   - An entry is claimed before it is filled, and given up after it is emptied.
 *   - An entry that is claimed but not filled has `below` = 0, as if its call were at the
 *     very top of the stack. The code in an interrupt drops only entries that are deeper
 *     than its calls, so it never drops this one.
 *   - `below` is the last field that is filled, and the first that is emptied. Only an entry
 *     that has it keeps its holder from being freed.
 *
 * An entry has 16 bytes, because there is one for every 16 bytes of the stack.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "probes/kprobe.h"
#include "probes/returns/platform_returns.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shadow entries point at a holder. The holder may live longer than its kretprobe: it is
 * not freed as long as an entry points at it.
 * Locks:  I immutable   P PLAT_PROBES   p PLAT_PROBES to write, and read without locks
 */
struct kretprobe_holder {
    struct kretprobe *rp; /* [p] NULL: unregistered */
    union {
        struct {
            uint16_t data_len; /* [I] bytes of an instance with its data; 0: no data */
            bool unarmed;      /* [p] the entry is not armed: no handler may run */
            int32_t limit;     /* [I] the most instances at a time; 0: no limit */
        };
        uint64_t extras; /* not 0: instances have data or a limit, or are `unarmed` */
    };
    uint32_t counter; /* [P] of hits by a jump; set by kretprobe_without_image() */
    int active;       /* instances now, if there is a limit; atomic */
    bool in_use;      /* [P] holder_sweep() has found an entry that points at it */
    bool leaves;      /* [P] holder_sweep() is about to free it */
    struct kretprobe_holder *next; /* [P] the next retired holder */
};

struct shadow_entry {
    int32_t ret;    /* the real return address minus kretprobe_trampoline */
    uint32_t below; /* its slot: bytes below the stack's top; 0: claimed, not filled */
    struct kretprobe_holder *holder;
};

_Static_assert(sizeof(struct shadow_entry) == 16, "no larger than what it is there for");

#define SHADOW_STACK_BYTES 16 /* bytes of the stack for which there is one entry */

/* Locks:  I immutable   o only code that runs on the stack   m set once, while the stack is
 * in use
 */
struct shadow {
    uintptr_t top;              /* [I] of the stack: the address behind its last byte */
    size_t len;                 /* [I] of the stack, in bytes */
    struct shadow_entry *last;  /* [o] the latest in use; entries[0] belongs to no call */
    struct shadow_entry *limit; /* [I] the last entry of the array */
    uint8_t *data;              /* [m] data of instances, @len bytes; or NULL */
    size_t data_used;           /* [o] bytes of @data in use, from its start */
    struct shadow_entry entries[]; /* [o] */
};

/* Empty objects that the trampoline reads where a pointer is NULL: it loads all values
 * first, and tests them afterwards.
 */
extern struct shadow shadow_none;
extern struct kretprobe kretprobe_none;
extern struct kretprobe_holder holder_none;

/* shadow_new - make a shadow for the stack of @len bytes below @top. Return: NULL without
 * memory.
 * shadow_add_data - give @shadow room for data, if it has none yet. Return: 0; -ENOMEM.
 * shadow_free - free @shadow, which may be NULL. No thread runs on its stack any more, and
 * shadow_unwind(@shadow, 0) has dropped its entries while plat_shadow_for_each() still found
 * it. Otherwise holder_sweep() could free a holder before its last entry is dropped.
 * Context: thread.
 */
struct shadow *shadow_new(uintptr_t top, size_t len);
int shadow_add_data(struct shadow *shadow);
void shadow_free(struct shadow *shadow);

/* shadow_find - find the entry of @slot. *@ret receives its real return address.
 * shadow_find_above - find the entry of the innermost call that has its slot at @sp or
 * above. Context: any. A thread may run on the stack meanwhile.
 * Return: false: there is no entry.
 */
bool shadow_find(const struct shadow *shadow, uintptr_t slot, uintptr_t *ret);
bool shadow_find_above(const struct shadow *shadow, uintptr_t sp, uintptr_t *ret);

/* ---- only for code that runs on the stack; part of the re-entry core ---- */

NOKPROBE_INLINE bool shadow_covers(const struct shadow *s, uintptr_t slot)
{
    return s->top - slot - 1 < s->len;
}

/* shadow_is_empty - check that @s has no entry in use. Else s->last is the latest one. */
NOKPROBE_INLINE bool shadow_is_empty(const struct shadow *s)
{
    return s->last == s->entries;
}

NOKPROBE_INLINE uintptr_t shadow_ret(const struct shadow_entry *e)
{
    return (uintptr_t)kretprobe_trampoline + (uintptr_t)(intptr_t)e->ret;
}

/* shadow_claim - take the next entry into use. Return: NULL: the shadow is full.
 * shadow_unclaim - give back an entry that was claimed and has not been filled in.
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

/* shadow_pop - empty the latest entry and give it up, with the instance's data.
 *
 *   1. The holder is read and changed while the entry has its place on the stack.
 *   2. The entry loses its place. From here on holder_sweep() may free the holder: an
 *      interrupt may come, and another CPU may do a whole sweep meanwhile.
 *   3. The entry is given up.
 */
NOKPROBE_INLINE void shadow_pop(struct shadow *s)
{
    struct shadow_entry *e = s->last;
    struct kretprobe_holder *h = e->holder;

    if (unlikely(READ_ONCE(h->extras))) { /* 1 */
        WRITE_ONCE(s->data_used, s->data_used - h->data_len);
        if (h->limit)
            __atomic_sub_fetch(&h->active, 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&e->below, 0, __ATOMIC_RELEASE); /* 2 */
    barrier();
    WRITE_ONCE(s->last, e - 1); /* 3 */
}

/* shadow_drop - pop the entry of a call that will never return; count it as dropped. */
NOKPROBE_INLINE void shadow_drop(struct shadow *s)
{
    struct kretprobe *rp = READ_ONCE(s->last->holder->rp);

    if (rp)
        __atomic_add_fetch(&rp->dropped, 1, __ATOMIC_RELAXED);
    shadow_pop(s);
}

/* shadow_unwind - drop the entries of calls deeper than @below. The code that runs at
 * @below has given up these calls; 0: the thread has ended. Interrupts are off meanwhile.
 * Otherwise, an interrupt could come after the check of an entry and drop the same entry,
 * and then the drop here would hit the next entry, which is still needed.
 */
void shadow_unwind(struct shadow *s, uint32_t below);
