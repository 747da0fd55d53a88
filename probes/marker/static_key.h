/* static_key.h - static keys are switched: kernel/debug/static_key.h has what they are. */
#pragma once

#include "kernel/debug/static_key.h"

#include <stddef.h>

/* static_key_switch - on return every CPU that comes to a place of @key finds it on, or off.
 * All places change in one batch.
 *
 * Context: thread.  Locks: takes PLAT_PROBES; waits for quiescence.
 * Return:  0, also where it is so already; -ENOMEM, what xmc_batch() says, and nothing has
 *          changed; -EDEADLK from a handler of a probe, or while this CPU runs a marker's
 *          function.
 */
int static_key_switch(struct static_key *key, bool on);

/* Where the keys of one text are asked. */
struct static_key_part {
    struct static_key_part *next;
    const struct static_key_insn *insns;
    size_t count;
};

/* static_keys_come - text comes: where keys are on that it asks, it jumps before a CPU
 * executes it. @part stays until static_keys_go().
 * static_keys_go - the text goes, and no thread is in it.
 * Context, Locks: as static_key_switch().  Return: 0; -ENOMEM, what xmc_batch() says.
 */
int static_keys_come(struct static_key_part *part);
void static_keys_go(struct static_key_part *part);
