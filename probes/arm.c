/* arm.c - stages 5 and 13: put the breakpoint in, take it out.
 *
 * Owns the first byte of every probed instruction. One byte changes, so there is no state
 * in between: a CPU executes the old instruction or traps.
 *
 * A set is written page by page, not byte by byte: what lies between two breakpoints is
 * written back as it is, which nobody can notice, and a page costs one mapping.
 */
#include "kernel/base/bits.h"
#include "probes/insn/encode.h"
#include "probes/life.h"

#include <stdlib.h>

#define PAGE_LEN 4096

static int by_addr(const void *a, const void *b)
{
    uintptr_t x = (*(struct site *const *)a)->addr, y = (*(struct site *const *)b)->addr;

    return (x > y) - (x < y);
}

/* Sets mostly come in order; with probes on qsort itself that matters. */
static void sort(struct site **sites, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (sites[i]->addr < sites[i - 1]->addr) {
            qsort(sites, count, sizeof(sites[0]), by_addr);
            return;
        }
}

static uint8_t first_byte(const struct site *site, enum site_state to)
{
    return to == SITE_ARMED ? INSN_INT3 : site->bytes[0];
}

/* first_on_page - the first of @sites, in order, on the page of the last. */
static size_t first_on_page(struct site **sites, size_t count)
{
    uintptr_t page = align_down(sites[count - 1]->addr, PAGE_LEN);
    size_t first = count - 1;

    while (first && sites[first - 1]->addr >= page)
        first--;
    return first;
}

static void write_page(struct site **sites, size_t count, enum site_state to)
{
    static uint8_t bytes[PAGE_LEN]; /* under PLAT_TEXT */
    uintptr_t start = sites[0]->addr;
    size_t len = sites[count - 1]->addr + 1 - start;

    if (plat_text_read(bytes, start, len))
        plat_bug("the text of a checked probe is not readable", start);
    for (size_t i = 0; i < count; i++)
        bytes[sites[i]->addr - start] = first_byte(sites[i], to);
    if (plat_text_write(start, bytes, len))
        plat_bug("the text of a checked probe is not writable", start);
}

/* The engine's own code lies in front of everything else, so it is armed last: else it
 * would trap its way through the rest.
 */
static void write_all(struct site **sites, size_t count, enum site_state to)
{
    for (size_t i = 0; i < count; i++)
        site_move(sites[i], to);
    while (count) {
        size_t first = first_on_page(sites, count);

        write_page(sites + first, count - first, to);
        count = first;
    }
}

/* Why two rounds of synchronisation:
 *   1. the copies were written by prepare.c; each CPU must see them whole before it can
 *      be sent there
 *   2. the int3s: on return every CPU must trap
 */
void kprobe_arm(struct site **sites, size_t count)
{
    if (!count)
        return;
    sort(sites, count);
    plat_lock(PLAT_TEXT);
    plat_sync_cores();
    write_all(sites, count, SITE_ARMED);
    plat_sync_cores();
    plat_unlock(PLAT_TEXT);
}

void kprobe_disarm(struct site **sites, size_t count)
{
    if (!count)
        return;
    sort(sites, count);
    plat_lock(PLAT_TEXT);
    write_all(sites, count, SITE_DISARMED);
    plat_sync_cores();
    plat_unlock(PLAT_TEXT);
}
