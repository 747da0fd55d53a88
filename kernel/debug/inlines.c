/* inlines.c - searches the table of inlined functions that the build has made.
 *
 *   inlines_table   one entry for each name, in order of names (bytes)
 *   inlines_total   how many entries
 *   inlines_places  low halves of the addresses; those of one name lie together, in order
 *   inlines_names   the names, each with its NUL
 *
 * Owns nothing; the tables are in section .ksyms, which is never written.
 */
#include "kernel/debug/inlines.h"

#include <string.h>

struct inlines_entry {
    uint32_t name;  /* offset in inlines_names */
    uint32_t first; /* in inlines_places */
    uint32_t count;
};

_Static_assert(sizeof(struct inlines_entry) == 12, "gen_inlines.py writes 12 bytes");

extern const struct inlines_entry inlines_table[];
extern const uint32_t inlines_total;
extern const uint32_t inlines_places[];
extern const char inlines_names[];

static const struct inlines_entry *inlines_find(const char *name)
{
    size_t low = 0, high = inlines_total;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct inlines_entry *e = &inlines_table[middle];
        int order = strcmp(&inlines_names[e->name], name);

        if (order == 0)
            return e;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

size_t inlines_count(const char *name)
{
    const struct inlines_entry *e = inlines_find(name);

    return e ? e->count : 0;
}

/* Kernel text lies in the last 2 GiB: the upper half of an address is all ones. */
uintptr_t inlines_get(const char *name, size_t i)
{
    const struct inlines_entry *e = inlines_find(name);

    if (!e || i >= e->count)
        return 0;
    return UINT64_C(0xffffffff00000000) | inlines_places[e->first + i];
}
