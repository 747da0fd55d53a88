/* static_key.h - switches static keys. kernel/debug/static_key.h tells what a key is. */
#pragma once

#include "kernel/debug/static_key.h"

#include <stddef.h>

/* static_key_switch - switch @key on or off. On return every CPU that asks @key, at any
 * place in the text, finds it in the new position. All places change in one batch.
 * Context: thread.  Locks: takes PLAT_PROBES; waits for quiescence.
 * Return:  0, also when @key was in that position before; -ENOMEM; the errno of a refusal
 *          by xmc_batch(); -EDEADLK the caller is a handler of a probe, or a marker's
 *          function. After an error no place has changed.
 */
int static_key_switch(struct static_key *key, bool on);

/* static_key_places - count the places in all text where @key is asked. Context: thread.
 */
size_t static_key_places(const struct static_key *key);

/* The places in one text where static keys are asked. */
struct static_key_part {
    struct static_key_part *next;
    const struct static_key_insn *insns;
    size_t count;
};

/* static_keys_come - new text has been loaded, and no CPU executes it yet: at each place
 * where it asks a key that is on, write the jump. @part must exist until
 * static_keys_go().
 * static_keys_go - the text is about to be unloaded, and no thread is in it: make NOPs of
 * its jumps, and forget @part.
 * Context, Locks: as static_key_switch().
 * Return: 0; -ENOMEM; the errno of a refusal by xmc_batch().
 */
int static_keys_come(struct static_key_part *part);
void static_keys_go(struct static_key_part *part);
