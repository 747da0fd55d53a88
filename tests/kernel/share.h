/* share.h - probes at a random share of all instructions of the kernel, for tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct kprobe;

/* Of the latest share_register(): pointers[] has those that are registered in front. */
extern struct share {
    struct kprobe *probes, **pointers;
    size_t count, max;
    unsigned percent;
} share;

/* share_begin - get the memory; a failure of the test if there is none.
 * share_register - probes at @percent of a hundred instructions, without those that cannot
 *                  carry one, and of the engine's own only @with_engine
 * share_end - give the memory back.
 * Context: thread.
 */
void share_begin(void);
void share_register(unsigned percent, bool with_engine);
void share_end(void);
