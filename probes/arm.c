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

#define PAGE_LEN 4096

static uintptr_t page_of(const struct site *site)
{
    return align_down(site->addr, PAGE_LEN);
}

static bool is_sorted(struct site **sites, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (sites[i]->addr < sites[i - 1]->addr)
            return false;
    return true;
}

/* highest_to_end - move the sites of the highest page behind all others.
 * Return: where they begin.
 */
static size_t highest_to_end(struct site **sites, size_t count)
{
    uintptr_t page = 0;

    for (size_t i = 0; i < count; i++)
        if (page_of(sites[i]) > page)
            page = page_of(sites[i]);
    for (size_t i = 0; i < count;) {
        struct site *site = sites[i];

        if (page_of(site) != page) {
            i++;
            continue;
        }
        sites[i] = sites[--count];
        sites[count] = site;
    }
    return count;
}

/* group - page by page. Sets mostly come in order. Where one does not, a pass for each page
 * is not what one would do to sort them, but it takes few instructions: all of them may
 * carry probes right now, and so may the library's.
 */
static void group(struct site **sites, size_t count)
{
    if (is_sorted(sites, count))
        return;
    while (count)
        count = highest_to_end(sites, count);
}

static uint8_t first_byte(const struct site *site, enum site_state to)
{
    return to == SITE_ARMED ? INSN_INT3 : site->bytes[0];
}

/* first_on_page - the first of @sites, grouped, on the page of the last. */
static size_t first_on_page(struct site **sites, size_t count)
{
    uintptr_t page = page_of(sites[count - 1]);
    size_t first = count - 1;

    while (first && sites[first - 1]->addr >= page)
        first--;
    return first;
}

static void write_page(struct site **sites, size_t count, enum site_state to)
{
    static uint8_t bytes[PAGE_LEN]; /* under PLAT_TEXT */
    uintptr_t start = sites[0]->addr, last = start;

    for (size_t i = 1; i < count; i++) {
        start = sites[i]->addr < start ? sites[i]->addr : start;
        last = sites[i]->addr > last ? sites[i]->addr : last;
    }
    if (plat_text_read(bytes, start, last + 1 - start))
        plat_bug("the text of a checked probe is not readable", start);
    for (size_t i = 0; i < count; i++)
        bytes[sites[i]->addr - start] = first_byte(sites[i], to);
    if (plat_text_write(start, bytes, last + 1 - start))
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
    group(sites, count);
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
    group(sites, count);
    plat_lock(PLAT_TEXT);
    write_all(sites, count, SITE_DISARMED);
    plat_sync_cores();
    plat_unlock(PLAT_TEXT);
}
