/* text_batch.h - which bytes a batch of pokes writes when. For text_poke.c. */
#pragma once

#include "probes/core/text_poke.h"

/* Locks: all PLAT_TEXT. */
struct text_batch {
    struct text_poke *pokes;
    size_t count;
    unsigned levels[TEXT_POKE_FIRST + 1]; /* of each step; 0: nothing to do in it */
    size_t first, end;                    /* of those that the levels to come are about */
};

/* text_batch_begin - check @pokes, and find their levels. A batch that breaks the rules of
 * text_poke_batch() is a bug.
 */
void text_batch_begin(struct text_batch *b, struct text_poke *pokes, size_t count);

/* text_batch_write - what @step writes in @level, from the highest address down.
 * @level: 0 first, then one after the other up to levels[@step] - 1
 * Context: thread; machine stopped.  Locks: PLAT_TEXT held.
 * Return:  false when the text is as it was.
 */
bool text_batch_write(struct text_batch *b, enum text_poke_step step, unsigned level);

/* text_poke_steps - text_poke.c: take the steps of @b, which has begun.
 * Context: thread; machine stopped.  Locks: PLAT_TEXT held.
 */
void text_poke_steps(struct text_batch *b);
