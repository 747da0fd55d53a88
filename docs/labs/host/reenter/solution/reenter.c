/* reenter.c - hits inside of hits: each thread has a stack of the probes that are active. */
#include "reenter.h"

#include <stdbool.h>

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
 * fills it. Between the two the entry may name an older probe, so a hit of that probe
 * is a miss.
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
    depth = depth - 1;
}
