/* reenter.c - hits inside of hits: each thread has a stack of the probes that are active. */
#include "reenter.h"

#include <stdbool.h>
#include <stddef.h>

static __thread struct probe *volatile active[REENTER_MAX];
static __thread volatile unsigned depth;

static bool may_run(const struct probe *p)
{
    for (unsigned i = 0; i < depth; i++)
        if (active[i] == p)
            return false;
    return depth < REENTER_MAX;
}

/* A signal may come between any two instructions. Hits in the signal handler are pushed
 * on the stack, and are gone when the handler ends. A hit first takes its entry, then
 * fills it. A free entry is NULL, so between the two the entry names no probe.
 */
void hit(struct probe *p, uint64_t argument)
{
    if (!may_run(p)) {
        __atomic_add_fetch(&p->misses, 1, __ATOMIC_RELAXED);
        return;
    }
    __atomic_add_fetch(&p->hits, 1, __ATOMIC_RELAXED);
    depth = depth + 1;
    active[depth - 1] = p;
    p->handler(p, argument);
    active[depth - 1] = NULL;
    depth = depth - 1;
}
