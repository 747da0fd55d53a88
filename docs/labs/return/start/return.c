/* return.c - your return probes. */
#include "return.h"

void return_enter(uint64_t *slot, uint64_t argument)
{
    (void)slot;
    (void)argument;
}
