/* registry.c - an open-addressed hash table, read without locks.
 *
 * Entries are pointers, written once with everything behind them in place. A table that
 * gets four fifths full is not changed but replaced: readers see the old one or the new one.
 * Readers have interrupts off, so all that have seen the old one are gone when every CPU
 * has answered plat_sync_cores(). A removed entry leaves a grave,
 * so that searches do not stop short; graves vanish with the next table.
 */
#include "probes/core/registry.h"

#include "kernel/base/err.h"
#include "probes/core/cache.h"
#include "probes/core/life.h"

#define TABLE_MIN 256 /* entries */

/* Of any size: with powers of two, half of it could be unused room. */
struct site_table {
    size_t len; /* entries; fewer than 2^32 */
    struct site *_Atomic entries[];
};

/* Locks: P PLAT_PROBES; `table` is read without it. */
static struct site_table *_Atomic table;
static size_t count;  /* [P] sites */
static size_t graves; /* [P] */

static struct site grave; /* its address, 0, belongs to no site */

/* home - the entry of @t at which the search for @addr begins. */
static ALWAYS_INLINE size_t home(const struct site_table *t, uintptr_t addr)
{
    uint64_t hash = (addr * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

    return (hash * t->len) >> 32;
}

static ALWAYS_INLINE size_t next_index(const struct site_table *t, size_t i)
{
    return i + 1 < t->len ? i + 1 : 0;
}

struct site *registry_find(uintptr_t addr)
{
    const struct site_table *t = atomic_load_explicit(&table, memory_order_acquire);

    if (!t)
        return NULL;
    for (size_t i = home(t, addr);; i = next_index(t, i)) {
        struct site *s = atomic_load_explicit(&t->entries[i], memory_order_acquire);

        if (!s || s->addr == addr)
            return s;
    }
}
NOKPROBE(registry_find);

static void table_put(struct site_table *t, struct site *site)
{
    size_t i = home(t, site->addr);

    while (t->entries[i])
        i = next_index(t, i);
    atomic_store_explicit(&t->entries[i], site, memory_order_release);
}

static int table_grow(size_t entries)
{
    struct site_table *old = table;
    struct site_table *new = plat_alloc(sizeof(*new) + entries * sizeof(new->entries[0]));

    if (!new)
        return -ENOMEM;
    new->len = entries;
    for (size_t i = 0; old && i < old->len; i++)
        if (old->entries[i] && old->entries[i] != &grave)
            table_put(new, old->entries[i]);
    graves = 0;
    atomic_store_explicit(&table, new, memory_order_release);
    if (old) {
        plat_sync_cores();
        plat_free(old);
    }
    return 0;
}

/* Two thirds full: there is room for a fifth more. */
static size_t entries_wanted(void)
{
    size_t n = (count + 1) * 3 / 2;

    return n < TABLE_MIN ? TABLE_MIN : n;
}

int registry_insert(struct site *site)
{
    const struct site_table *t = table;
    int err;

    if (!t || 5 * (count + graves + 1) > 4 * t->len) {
        err = table_grow(entries_wanted());
        if (err)
            return err;
    }
    table_put(table, site);
    count++;
    return 0;
}

void registry_remove(struct site *site)
{
    struct site_table *t = table;
    size_t i = home(t, site->addr);

    while (t->entries[i] != site)
        i = next_index(t, i);
    atomic_store_explicit(&t->entries[i], &grave, memory_order_release);
    count--;
    graves++;
    cache_forget(site);
}

void registry_replace(struct site *old, struct site *new)
{
    struct site_table *t = table;
    size_t i = home(t, old->addr);

    while (t->entries[i] != old)
        i = next_index(t, i);
    atomic_store_explicit(&t->entries[i], new, memory_order_release);
}

void registry_forget(const struct site *old)
{
    cache_forget(old);
}

size_t registry_count(void)
{
    return count;
}

size_t registry_bytes(void)
{
    const struct site_table *t = table;

    return t ? sizeof(*t) + t->len * sizeof(t->entries[0]) : 0;
}

void registry_for_each(void (*fn)(struct site *site, void *arg), void *arg)
{
    struct site_table *t = table;

    for (size_t i = 0; t && i < t->len; i++)
        if (t->entries[i] && t->entries[i] != &grave)
            fn(t->entries[i], arg);
}

void registry_exit(void)
{
    struct site_table *old = table;

    if (count || !old)
        return;
    atomic_store_explicit(&table, NULL, memory_order_release);
    graves = 0;
    plat_sync_cores();
    plat_free(old);
}
