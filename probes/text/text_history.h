/* text_history.h - remember the last changes of text. */
#pragma once

#include "probes/insn/insn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_HISTORY_LEN 1024

/* One change of a piece of text, and the phases in which it was written: text_phases.h. */
struct text_change {
    uintptr_t addr;
    uint64_t ns;          /* plat_clock_ns() when all CPUs executed the new text */
    uint64_t first_phase; /* the number of the first phase of its batch */
    uint16_t phases;      /* of its batch; not each phase has written bytes here */
    uint16_t guard_level, first_level; /* as in struct text_poke */
    uint8_t len;
    bool whole;                  /* as in struct text_poke */
    uint8_t old[INSN_MAX_LEN];   /* the bytes before; 0 where they could not be read */
    uint8_t bytes[INSN_MAX_LEN]; /* the bytes after the change */
};

/* text_history_begin - note the changes that are about to be made: @count pokes.
 * text_history_end - all of them have been made.
 * Context: thread or held.  Locks: PLAT_TEXT held. It is held from the one to the other.
 */
struct text_poke;
void text_history_begin(const struct text_poke *pokes, size_t count);
void text_history_end(size_t count);
/* text_history_find - the latest changes of bytes in [@start, @end), the latest one first.
 * Context: thread or held.  Locks: PLAT_TEXT held.  Return: how many, at most @max.
 * text_history_forget - forget them: this text goes, and other text may come there. The same.
 */
size_t text_history_find(uintptr_t start, uintptr_t end, struct text_change *out,
                         size_t max);
void text_history_forget(uintptr_t start, uintptr_t end);

/* text_change_in - find the bytes of @c that one of its phases has stored.
 * @step, @level: of the phase
 * @off:          receives the offset of the first of these bytes from c->addr
 * Context: any.  Return: how many bytes; 0: the phase has stored no bytes of @c.
 */
size_t text_change_in(const struct text_change *c, unsigned step, unsigned level,
                      size_t *off);
