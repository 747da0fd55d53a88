/* reenter.c - your hits. */
#include "reenter.h"

void hit(struct probe *p, uint64_t argument)
{
    p->handler(p, argument);
}
