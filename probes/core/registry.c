/* registry.c - owns the table of all sites: a hash table with open addressing, which hits
 * search without locks.
 *
 * An entry is a pointer to a site, written when the site is complete. When a table is
 * four fifths full, a new table replaces it: a search uses the old table or the new one.
 * A search by a hit must run with interrupts off. So when every CPU has answered
 * plat_sync_cores(), no search uses the old table any more, and it is freed.
 *
 * A search ends at an empty entry. So the entry of a removed site does not become empty
 * but a grave, which a search passes. A new table has no graves.
 *
 * Beside each entry there is a bit, the mark. A room that has to find a few sites among
 * very many marks them, and walks over the marks: 64 entries without a mark cost as much
 * as one.
 */
#include "probes/core/registry.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "probes/core/cache.h"
#include "probes/core/life.h"

#define TABLE_MIN 256 /* entries */

/* The table. Its length may be any number: if it had to be a power of two, half of the
 * table could be unused. The platform may overwrite the first word as soon as the table is
 * freed (port_held.h), while a search still uses the table.
 */
struct site_table {
    size_t bytes;    /* of memory; [P] no search reads it */
    size_t len;      /* entries; fewer than 2^32 */
    uint64_t *marks; /* [P] behind the entries; bit i is the mark of entry i */
    struct site *_Atomic entries[];
};

/* Locks: P PLAT_PROBES; `table` is read without it. */
static struct site_table *_Atomic table;
size_t registry_sites; /* [P] sites */
static size_t graves;  /* [P] */

static struct site grave; /* its address, 0, belongs to no site */

/* home - return the index of the entry at which the search for @addr begins. */
static ALWAYS_INLINE size_t home(const struct site_table *t, uintptr_t addr)
{
    uint64_t hash = (addr * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

    return (hash * t->len) >> 32;
}

/* search - search @t for the site at @addr. @i: receives the index of its entry.
 * Return: NULL: there is no such site; @i is the empty entry where it belongs.
 */
static ALWAYS_INLINE struct site *search(const struct site_table *t, uintptr_t addr,
                                         size_t *i)
{
    for (*i = home(t, addr);; *i = *i + 1 < t->len ? *i + 1 : 0) {
        struct site *s = atomic_load_explicit(&t->entries[*i], memory_order_acquire);

        if (!s || s->addr == addr)
            return s;
    }
}

struct site *registry_find(uintptr_t addr)
{
    const struct site_table *t = atomic_load_explicit(&table, memory_order_acquire);
    size_t i;

    return t ? search(t, addr, &i) : NULL;
}
NOKPROBE(registry_find);

/* write_entry - make @site, or the grave, the entry for @addr. */
static void write_entry(struct site_table *t, uintptr_t addr, struct site *site)
{
    size_t i;

    search(t, addr, &i);
    atomic_store_explicit(&t->entries[i], site, memory_order_release);
}

static void table_mark(struct site_table *t, const struct site *site)
{
    size_t i;

    if (t && search(t, site->addr, &i))
        t->marks[i / 64] |= BIT(i % 64);
}

static int table_grow(size_t entries)
{
    size_t bytes = sizeof(struct site_table) + (entries + entries / 64 + 1) * 8;
    struct site_table *old = table, *new = plat_alloc(bytes);

    if (!new)
        return -ENOMEM;
    new->len = entries;
    new->bytes = bytes;
    new->marks = (uint64_t *)&new->entries[entries];
    graves = 0; /* they are not copied */
    for (size_t i = 0; old && i < old->len; i++) {
        struct site *site = old->entries[i];

        if (!site || site == &grave)
            continue;
        write_entry(new, site->addr, site);
        if (old->marks[i / 64] & BIT(i % 64))
            table_mark(new, site);
    }
    atomic_store_explicit(&table, new, memory_order_release);
    if (old) {
        plat_sync_cores();
        plat_free(old);
    }
    return 0;
}

/* entries_wanted - return the length of a new table. The table is two thirds full at
 * first, so a fifth more sites fit before it is replaced.
 */
static size_t entries_wanted(void)
{
    size_t n = (registry_sites + 1) * 3 / 2;

    return n < TABLE_MIN ? TABLE_MIN : n;
}

int registry_insert(struct site *site)
{
    const struct site_table *t = table;
    int err;

    if (!t || 5 * (registry_sites + graves + 1) > 4 * t->len) {
        err = table_grow(entries_wanted());
        if (err)
            return err;
    }
    write_entry(table, site->addr, site);
    registry_sites++;
    return 0;
}

static void cache_forget_at(struct probe_cpu *cpu, uintptr_t addr,
                            const struct site *site)
{
    size_t i = cache_index(addr);

    if (READ_ONCE(cpu->cache[i].site) == site)
        WRITE_ONCE(cpu->cache[i].addr, 0);
}

void cache_forget(const struct site *site)
{
    for (unsigned id = 0; id < plat_cpu_count(); id++) {
        struct probe_cpu *cpu = plat_probe_cpu(id);

        if (!cpu)
            continue;
        cache_forget_at(cpu, site->addr, site);
        cache_forget_at(cpu, (uintptr_t)site_step_slot(site) + site->len, site);
    }
}

void registry_remove(struct site *site)
{
    write_entry(table, site->addr, &grave);
    registry_sites--;
    graves++;
    cache_forget(site);
}

void registry_replace(struct site *old, struct site *new)
{
    write_entry(table, old->addr, new);
}

size_t registry_bytes(void)
{
    const struct site_table *t = table;

    return t ? t->bytes : 0;
}

void registry_for_each(void (*fn)(struct site *site, void *arg), void *arg)
{
    struct site_table *t = table;

    for (size_t i = 0; t && i < t->len; i++)
        if (t->entries[i] && t->entries[i] != &grave)
            fn(t->entries[i], arg);
}

void registry_mark(const struct site *site)
{
    table_mark(table, site);
}

void registry_for_each_marked(bool (*fn)(struct site *site, void *arg), void *arg)
{
    struct site_table *t = table;

    for (size_t word = 0; t && word <= t->len / 64; word++)
        for (uint64_t left = t->marks[word]; left; left &= left - 1) {
            unsigned bit = bit_lowest(left);
            struct site *site = t->entries[64 * word + bit];

            if (site == &grave || !fn(site, arg))
                t->marks[word] &= ~BIT(bit);
        }
}

void registry_exit(void)
{
    struct site_table *old = table;

    if (registry_sites || !old)
        return;
    atomic_store_explicit(&table, NULL, memory_order_release);
    graves = 0;
    plat_sync_cores();
    plat_free(old);
}
