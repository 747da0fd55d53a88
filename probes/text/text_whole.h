/* text_whole.h - changes of text that one store makes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct text_poke;

/* text_whole_choose - let one store make the change @poke, in place of the steps of a batch.
 * text_whole_write - store the bytes of those among @pokes for which this was chosen.
 * @poke: the bytes that change lie in one aligned word of 8 bytes
 * Return: false: no byte has changed.
 * text_poke_whole - choose it for @poke, which is no part of a batch, store its bytes, and
 * synchronise all CPUs.
 * Context: thread, held.  Locks: PLAT_TEXT held.
 */
void text_whole_choose(struct text_poke *poke);
bool text_whole_write(const struct text_poke *pokes, size_t count);
void text_poke_whole(struct text_poke *poke);
