/* blacklist.c - stage 2: keeps the list of code that can never carry a probe: the
 * re-entry core, and all functions and ranges that other code has marked.
 *
 * NOKPROBE records only the address of a function; its size comes from the symbol table.
 * A table of ranges is never changed: a new table replaces it. A search runs with
 * interrupts off. So when plat_sync_cores() has interrupted all CPUs, no search uses the
 * old table any more, and it is freed.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/core/life.h"

#include <string.h>

struct marks {
    size_t count;
    struct nokprobe_range ranges[]; /* in order of address; no range overlaps another */
};

static struct marks none;
static struct marks *_Atomic table = &none; /* PLAT_PROBES to write */

/* blacklist_insert - add @range, unless it is empty or lies in a range of @t; it replaces the
 * ranges that lie in it.
 */
static void blacklist_insert(struct marks *t, struct nokprobe_range range)
{
    size_t i = t->count, behind;

    while (i && t->ranges[i - 1].end > range.start)
        i--;
    if (range.start == range.end || (i < t->count && t->ranges[i].start <= range.start &&
                                     t->ranges[i].end >= range.end))
        return;
    for (behind = i; behind < t->count && t->ranges[behind].end <= range.end;)
        behind++;
    memmove(&t->ranges[i + 1], &t->ranges[behind],
            (t->count - behind) * sizeof(t->ranges[0]));
    t->count += i + 1 - behind;
    t->ranges[i] = range;
}

static void insert_function(struct marks *t, uintptr_t mark, const char *why)
{
    struct plat_symbol sym;

    if (plat_symbol_at(mark, &sym))
        plat_bug("a NOKPROBE mark names no function", mark);
    blacklist_insert(t, (struct nokprobe_range){ sym.start, sym.start + sym.size, why });
}

int blacklist_replace(uintptr_t start, uintptr_t end, const struct nokprobe_marks *more)
{
    const char *why = more->why ? more->why : probe_reason_text(PROBE_BLACKLISTED);
    struct marks *old = table, *t;

    t = plat_alloc(sizeof(*t) + (old->count + more->function_count + more->range_count) *
                                    sizeof(t->ranges[0]));
    if (!t)
        return -ENOMEM;
    for (size_t i = 0; i < old->count; i++)
        if (old->ranges[i].end <= start || old->ranges[i].start >= end)
            t->ranges[t->count++] = old->ranges[i];
    for (size_t i = 0; i < more->function_count; i++)
        insert_function(t, more->functions[i], why);
    for (size_t i = 0; i < more->range_count; i++) {
        struct nokprobe_range range = more->ranges[i];

        range.why = range.why ? range.why : why;
        blacklist_insert(t, range);
    }
    atomic_store_explicit(&table, t->count ? t : &none, memory_order_release);
    if (!t->count)
        plat_free(t);
    if (old == &none)
        return 0;
    plat_sync_cores();
    plat_free(old);
    return 0;
}

int blacklist_next(uintptr_t addr, struct nokprobe_range *out)
{
    unsigned long flags = plat_irq_save();
    const struct marks *t = atomic_load_explicit(&table, memory_order_acquire);
    size_t lo = 0, hi = t->count;
    bool found;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (addr >= t->ranges[mid].end)
            lo = mid + 1;
        else
            hi = mid;
    }
    found = lo < t->count;
    if (found)
        *out = t->ranges[lo];
    plat_irq_restore(flags);
    return found ? 0 : -ENOENT;
}

const char *blacklist_why(uintptr_t addr)
{
    struct nokprobe_range range;

    return blacklist_next(addr, &range) || range.start > addr ? NULL : range.why;
}
