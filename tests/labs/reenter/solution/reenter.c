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

/* A signal may come between any two instructions. Its hits come on top, and are gone when
 * it ends. The entry is taken first and filled then; until it is filled it may name a probe
 * of an earlier hit, whose hits in such a signal are misses.
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
