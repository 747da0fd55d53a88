/* text_part.h - tells the engine about text that comes and goes beside the image, such as
 * that of a module. The engine learns where the text is. It does not know what the text
 * was made from, nor where its memory comes from.
 *
 * If the text of a probe goes, the probe stays registered, with its counts, and is GONE
 * (KPROBE_FLAG_GONE). If the probe was registered by name, it is armed again when text
 * with this name comes. If it was registered by address, it is never armed again, since
 * another instruction may be at the address then. A probe may also be registered before
 * its name exists: KPROBE_FLAG_PENDING.
 */
#pragma once

#include "kernel/base/list.h"
#include "kernel/base/nokprobe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text. The engine uses this struct from text_comes() to text_gone(). */
struct text_part {
    uintptr_t start, end;
    uintptr_t memory, memory_end;   /* all memory that goes together with the text */
    struct nokprobe_marks nokprobe; /* code of the text that can never carry a probe */
    /* The engine's own. */
    struct list link;
    size_t own_count; /* registered probes of the text's own code: see text_owns() */
    bool closed;      /* the text goes: no more probes on it */
};

/* text_comes - tell the engine that the text @t is there, and arm the probes that have
 * waited for it. The text can be read, its symbols are known, and no CPU executes it yet.
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0; -ENOMEM, -EDEADLK, and the engine knows nothing of the text.
 */
int text_comes(struct text_part *t);
/* text_goes - take all probes off the text @t, and refuse new ones. No thread is in the
 * text, or will be in it; the text can still be read and written.
 * text_gone - tell the engine that the symbols of @t are not known any more: it forgets
 * @t.
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 */
void text_goes(struct text_part *t);
void text_gone(struct text_part *t);

/* text_owns - does @p belong to the code of @t: does @p lie in the memory of @t, or a
 * handler, the name or the program of @p, or a function that the program calls?
 * text_own_changes - change own_count of each text that owns @p, when @p is registered
 * (@by: 1), and when it is not registered any more (@by: -1). @p does not change in
 * between. Locks: PLAT_PROBES held.
 */
struct kprobe;
bool text_owns(const struct text_part *t, const struct kprobe *p);
void text_own_changes(const struct kprobe *p, long by);
