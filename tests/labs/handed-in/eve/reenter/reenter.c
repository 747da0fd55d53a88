/* reenter.c - handed in by Eve: it never ends. */
#include "reenter.h"

void hit(struct probe *p, uint64_t argument)
{
    (void)p;
    (void)argument;
    for (;;)
        ;
}
