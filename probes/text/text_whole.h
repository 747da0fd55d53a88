/* text_whole.h - changes of text that one store makes. */
#pragma once

#include <stddef.h>

struct text_poke;

/* text_whole_choose - let one store make the change @poke, in place of the steps of a batch.
 * text_whole_write - make the changes among @pokes for which this was chosen, and then
 * synchronise all CPUs.
 * text_poke_whole - make the change @poke by one store, and synchronise all CPUs.
 * @poke: the bytes that change lie in one aligned word of 8 bytes
 * Context: thread or held.  Locks: PLAT_TEXT held.
 */
void text_whole_choose(struct text_poke *poke);
void text_whole_write(const struct text_poke *pokes, size_t count);
void text_poke_whole(struct text_poke *poke);
