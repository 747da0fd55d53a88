/* near.c - remembers at which addresses sites may be that are jumps or wait for a jump.
 *
 * The code around jumps asks about each of the bytes in front of an address, and few of
 * these bytes begin a probed instruction. A search of the registry that finds nothing takes
 * long. So there is a bit for each byte of text, and only the addresses whose bits are set
 * are searched. A bit stays set when its site is freed. Several lines of text share a word
 * if there is much text. A set bit says only that there may be a site.
 */
#include "probes/jump/near.h"

#include "kernel/base/bits.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"

#define LINE_LEN 64 /* bytes of text: a bit each */
#define LINES 8192  /* 512 KiB of text */

static uint64_t lines[LINES]; /* PLAT_PROBES */

static uint64_t *near_line(uintptr_t addr)
{
    return &lines[addr / LINE_LEN % LINES];
}

void near_note(uintptr_t addr)
{
    *near_line(addr) |= BIT(addr % LINE_LEN);
}

/* next_in_line - the same as near_next(), but only to the end of the line. */
static struct site *next_in_line(uintptr_t addr, uintptr_t end)
{
    uint64_t bits = *near_line(addr) >> addr % LINE_LEN;
    struct site *site = NULL;

    for (; bits && !site; bits &= bits - 1) {
        uintptr_t at = addr + bit_lowest(bits);

        if (at >= end)
            break;
        site = registry_find(at);
    }
    return site;
}

struct site *near_next(uintptr_t addr, uintptr_t end)
{
    struct site *site = NULL;

    for (; addr < end && !site; addr = align_down(addr, LINE_LEN) + LINE_LEN)
        site = next_in_line(addr, end);
    return site;
}
