/* reenter.c - Ben's answer: counts every execution as a hit, also nested ones. */
#include "reenter.h"

void hit(struct probe *p, uint64_t argument)
{
    __atomic_add_fetch(&p->hits, 1, __ATOMIC_RELAXED);
    p->handler(p, argument);
}
