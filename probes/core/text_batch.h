/* text_batch.h - decides, for text_poke.c, which bytes a batch writes, and when. */
#pragma once

#include "probes/core/text_poke.h"

/* Locks: all PLAT_TEXT. */
struct text_batch {
    struct text_poke *pokes;
    size_t count;
    unsigned levels[TEXT_POKE_STEPS]; /* how many each step has; 0: nothing to do */
    size_t first, end; /* outside of this range, no poke is left to write */
};

/* text_batch_begin - check @pokes, and find their levels. A batch that breaks the rules of
 * text_poke_batch() is a bug.
 */
void text_batch_begin(struct text_batch *b, struct text_poke *pokes, size_t count);

/* text_batch_write - write the bytes of @step that belong to @level, from the highest
 * address down.
 * @level: the caller begins with 0 and ends with levels[@step] - 1
 * Context: thread or stopped or held.  Locks: PLAT_TEXT held.
 * Return:  false: no byte has changed.
 */
bool text_batch_write(struct text_batch *b, enum text_poke_step step, unsigned level);

/* text_poke_steps - take all steps of @b, after text_batch_begin(). (text_poke.c)
 * text_poke_sync - synchronise all CPUs. A CPU that has not taken part is a bug.
 *                  (text_poke.c)
 * Context: thread or stopped or held.  Locks: PLAT_TEXT held.
 */
void text_poke_steps(struct text_batch *b);
void text_poke_sync(void);
