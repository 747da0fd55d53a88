/* reenter.h - hits inside of hits. You write reenter.c. */
#pragma once

#include <stdint.h>

#define REENTER_MAX 4 /* hits of one thread that may be active at the same time */

struct probe {
    /* The handler may call any function: functions with probes, and also the function
     * with this probe.
     */
    void (*handler)(struct probe *p, uint64_t argument);

    uint64_t hits, misses; /* the grader may read them at any time */
};

/* hit - handle a hit: this thread executes the place of the probe @p.
 *
 * A hit is active from just before its handler is called until the handler has returned.
 * Call the handler with @argument and count the hit in @p->hits, unless
 *   - a hit of the same probe is active in this thread, or
 *   - REENTER_MAX hits are active in this thread.
 * In these two cases do not call the handler, and count the hit in @p->misses.
 *
 * Any thread may call this function at any time: also in a handler of a probe, and in the
 * handler of a signal that has come in the middle of hit(). Such a signal stands for an NMI,
 * which nothing holds back: hit() does not block signals. (The grader's is SIGTRAP, and ends
 * the program if it is blocked.)
 */
void hit(struct probe *p, uint64_t argument);
