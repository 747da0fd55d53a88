/* blacklist.c - stage 2: the re-entry core, which can never carry a probe.
 *
 * NOKPROBE records addresses of functions; their extents come from the symbol table, so
 * that a rename needs no care. Sorted once, then only read.
 */
#include "kernel/base/err.h"
#include "probes/core/life.h"

static struct blacklist_range *ranges; /* immutable after blacklist_init() */
static size_t range_count;

static void insert_sorted(struct blacklist_range range)
{
    size_t i = range_count;

    for (; i && ranges[i - 1].start > range.start; i--)
        ranges[i] = ranges[i - 1];
    if (i && ranges[i - 1].start == range.start) {
        for (; i < range_count; i++)
            ranges[i] = ranges[i + 1]; /* marked twice: close the gap again */
        return;
    }
    ranges[i] = range;
    range_count++;
}

int blacklist_init(void)
{
    size_t count;
    const uintptr_t *marked = plat_nokprobe(&count);

    ranges = plat_alloc((count + 1) * sizeof(*ranges));
    if (!ranges)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct plat_symbol sym;

        if (plat_symbol_at(marked[i], &sym))
            plat_bug("a NOKPROBE mark names no function", marked[i]);
        insert_sorted((struct blacklist_range){ sym.start, sym.start + sym.size });
    }
    return 0;
}

bool blacklist_contains(uintptr_t addr)
{
    size_t lo = 0, hi = range_count;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (addr < ranges[mid].start)
            hi = mid;
        else if (addr >= ranges[mid].end)
            lo = mid + 1;
        else
            return true;
    }
    return false;
}

int blacklist_get(size_t i, struct blacklist_range *out)
{
    if (i >= range_count)
        return -ENOENT;
    *out = ranges[i];
    return 0;
}
