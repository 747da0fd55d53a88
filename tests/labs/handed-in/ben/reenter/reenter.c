/* reenter.c - handed in by Ben: counts every execution, and knows nothing of nesting. */
#include "reenter.h"

void hit(struct probe *p, uint64_t argument)
{
    __atomic_add_fetch(&p->hits, 1, __ATOMIC_RELAXED);
    p->handler(p, argument);
}
