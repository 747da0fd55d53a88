/* text_history.c - the last changes of text, in a ring: for people who look at an address,
 * and wonder what has changed it.
 */
#include "probes/explain/text_history.h"

#include "probes/core/extend.h"
#include "probes/core/platform.h"
#include "probes/core/text_poke.h"

/* Locks: PLAT_TEXT. */
static struct text_change changes[TEXT_HISTORY_LEN];
static uint64_t noted;

/* The oldest are forgotten. */
void ext_poked(const struct text_poke *pokes, size_t count)
{
    uint64_t now = plat_clock_ns();

    for (size_t i = 0; i < count; i++) {
        struct text_change *c = &changes[noted++ % TEXT_HISTORY_LEN];

        c->addr = pokes[i].addr;
        c->ns = now;
        c->len = pokes[i].len;
        for (size_t j = 0; j < c->len; j++)
            c->bytes[j] = pokes[i].bytes[j];
    }
}

size_t text_history_find(uintptr_t start, uintptr_t end, struct text_change *out,
                         size_t max)
{
    uint64_t oldest = noted > TEXT_HISTORY_LEN ? noted - TEXT_HISTORY_LEN : 0;
    size_t count = 0;

    for (uint64_t n = noted; n > oldest && count < max; n--) {
        const struct text_change *c = &changes[(n - 1) % TEXT_HISTORY_LEN];

        if (c->addr < end && c->addr + c->len > start)
            out[count++] = *c;
    }
    return count;
}

uint64_t text_history_count(void)
{
    return noted;
}
