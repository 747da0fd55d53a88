/* blacklist.c - stage 2: what can never carry a probe: the re-entry core, and what loaded
 * code says of its own functions.
 *
 * NOKPROBE records addresses of functions; their extents come from the symbol table, so
 * that a rename needs no care. A table is never changed, but replaced by another one. A
 * search has interrupts off, so the old table can be freed when all CPUs have been
 * interrupted.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/core/life.h"

struct marks {
    size_t count;
    struct blacklist_range ranges[]; /* by address, each once */
};

static struct marks *_Atomic table; /* PLAT_PROBES to write */

static void insert_sorted(struct marks *t, struct blacklist_range range)
{
    size_t i = t->count;

    while (i && t->ranges[i - 1].start > range.start)
        i--;
    if (range.start == range.end || (i && t->ranges[i - 1].start == range.start))
        return; /* marked twice */
    for (size_t k = t->count++; k > i; k--)
        t->ranges[k] = t->ranges[k - 1];
    t->ranges[i] = range;
}

static void insert_function(struct marks *t, uintptr_t mark)
{
    struct plat_symbol sym;

    if (plat_symbol_at(mark, &sym))
        plat_bug("a NOKPROBE mark names no function", mark);
    insert_sorted(t, (struct blacklist_range){ sym.start, sym.start + sym.size });
}

/* table_new - with room for @more than there are. */
static struct marks *table_new(size_t more)
{
    const struct marks *old = table;
    size_t count = (old ? old->count : 0) + more;

    return plat_alloc(sizeof(*table) + (count + 1) * sizeof(old->ranges[0]));
}

static void table_replace(struct marks *new)
{
    struct marks *old = table;

    atomic_store_explicit(&table, new, memory_order_release);
    if (!old)
        return;
    plat_sync_cores();
    plat_free(old);
}

/* copy_but - all of the present ones that do not begin in [@start, @end). */
static void copy_but(struct marks *to, uintptr_t start, uintptr_t end)
{
    const struct marks *old = table;

    for (size_t i = 0; old && i < old->count; i++)
        if (old->ranges[i].start < start || old->ranges[i].start >= end)
            to->ranges[to->count++] = old->ranges[i];
}

int blacklist_add(const uintptr_t *functions, size_t count, struct blacklist_range range)
{
    struct marks *t = table_new(count + 1);

    if (!t)
        return -ENOMEM;
    copy_but(t, 0, 0);
    for (size_t i = 0; i < count; i++)
        insert_function(t, functions[i]);
    insert_sorted(t, range);
    table_replace(t);
    return 0;
}

INIT int blacklist_init(void)
{
    size_t count;
    const uintptr_t *functions = plat_nokprobe(&count);

    return blacklist_add(functions, count, (struct blacklist_range){ 0, 0 });
}

void blacklist_remove(uintptr_t start, uintptr_t end)
{
    const struct marks *old = table;
    size_t inside = 0;
    struct marks *t;

    for (size_t i = 0; old && i < old->count; i++)
        inside += old->ranges[i].start >= start && old->ranges[i].start < end;
    t = inside ? table_new(0) : NULL;
    if (!t)
        return;
    copy_but(t, start, end);
    table_replace(t);
}

static bool contains(const struct marks *t, uintptr_t addr)
{
    size_t lo = 0, hi = t ? t->count : 0;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (addr < t->ranges[mid].start)
            hi = mid;
        else if (addr >= t->ranges[mid].end)
            lo = mid + 1;
        else
            return true;
    }
    return false;
}

bool blacklist_contains(uintptr_t addr)
{
    unsigned long flags = plat_irq_save();
    bool is = contains(atomic_load_explicit(&table, memory_order_acquire), addr);

    plat_irq_restore(flags);
    return is;
}

int blacklist_get(size_t i, struct blacklist_range *out)
{
    const struct marks *t = table;

    if (!t || i >= t->count)
        return -ENOENT;
    *out = t->ranges[i];
    return 0;
}
