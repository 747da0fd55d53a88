/* share.h - registers probes at a random share of all instructions of the
 * kernel, for tests.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct kprobe;

/* The probes of the latest share_register(): the first count of pointers[] point at those
 * that are registered.
 */
extern struct share {
    struct kprobe *probes, **pointers;
    size_t count, max;
    unsigned percent;
} share;

/* share_begin - allocate the memory, and report whether there is enough.
 * share_register - choose @percent percent of all instructions, and register probes at
 *                  those that can carry one. Instructions of the engine are chosen only
 *                  if @with_engine is true.
 * share_end - free the memory.
 * Context: thread.
 */
void share_begin(void);
void share_register(unsigned percent, bool with_engine);
void share_end(void);
