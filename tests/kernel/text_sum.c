/* text_sum.c - hashes the text; the hash depends on each byte and on its place. */
#include "tests/kernel/text_sum.h"

#include "kernel/memmap.h"

uint64_t text_sum(void)
{
    uint64_t sum = 0;

    for (const uint64_t *p = (const uint64_t *)_text; p < (const uint64_t *)_etext; p++)
        sum = (sum ^ *p) * UINT64_C(0x9e3779b97f4a7c15);
    return sum;
}
