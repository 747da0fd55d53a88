/* text_part.h - text that comes and goes beside the image: how the engine hears of it. It is
 * told where the text is; what it was made of, and where its memory comes from, it does not
 * know.
 *
 * A probe whose text has gone stays registered, with its counts, as KPROBE_FLAG_GONE. If it
 * was registered by name, it is armed again when text comes in which that name is found; by
 * address never, since another address may mean another instruction. A probe may also be
 * registered before its name exists: KPROBE_FLAG_PENDING.
 */
#pragma once

#include "kernel/base/list.h"
#include "kernel/base/nokprobe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lent to the engine from text_comes() to text_gone(). */
struct text_part {
    uintptr_t start, end;
    uintptr_t memory, memory_end;   /* what goes with it */
    struct nokprobe_marks nokprobe; /* where it carries no probe */
    /* The engine's own. */
    struct list link;
    size_t own_count; /* registered probes of its own */
    bool closed;
};

/* text_comes - the text is there and can be read, its symbols are known, and no CPU executes
 * it yet. Probes that have waited for it are armed.
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0; -ENOMEM, and the engine knows nothing of it.
 */
int text_comes(struct text_part *t);
/* text_goes - no thread is in the text or will be, and it can still be read and written. No
 * probe is on it on return, and none will be.
 * text_gone - its symbols are not known any more.
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 */
void text_goes(struct text_part *t);
void text_gone(struct text_part *t);

/* text_owns - is @p a probe of its own: does @p lie in its memory, or has a handler in it?
 * text_own_changes - @p, which is not changed while it is registered, is registered from now
 * on (@by: 1), or no longer (-1): t->own_count changes where text_owns() says so.
 * Locks: PLAT_PROBES held.
 */
struct kprobe;
bool text_owns(const struct text_part *t, const struct kprobe *p);
void text_own_changes(const struct kprobe *p, long by);
