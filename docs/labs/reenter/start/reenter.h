/* reenter.h - hits inside of hits. You write reenter.c. */
#pragma once

#include <stdint.h>

#define REENTER_MAX 4 /* hits of one thread that may be active at the same time */

struct probe {
    /* May call any function, also those that have probes, and the one that has been hit. */
    void (*handler)(struct probe *p, uint64_t argument);

    uint64_t hits, misses; /* are read while no thread is in a hit */
};

/* hit - the place of @p is executed by this thread.
 *
 * A hit is active from before its handler is called until the handler has returned. The
 * handler is called, with @argument, and the hit is counted in @p->hits, unless
 *   - a hit of the same probe is active in this thread, or
 *   - REENTER_MAX hits are active in this thread.
 * Then the handler is not called, and the execution is counted in @p->misses.
 *
 * Is called by any thread at any time: in a handler, and in a handler of a signal that has
 * come in the middle of hit().
 */
void hit(struct probe *p, uint64_t argument);
