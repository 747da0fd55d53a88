/* targets.c - look up targets: in the table that the build has made, and in lists of the
 * targets that were added at run time.
 *
 * The table is two sorted arrays of 32-bit offsets. The first array has addresses. The
 * second has ranges, which do not overlap, and in which CPUs may enter at any address.
 * The targets that were added at run time are in a hash table by their address, because
 * they may be many: a static key (kernel/debug/static_key.h) may have thousands of
 * places, each with its own target.
 */
#include "probes/region/targets.h"

#include "kernel/base/err.h"
#include "probes/jump/platform_jump.h"

#define BUCKETS 1024
#define GRANULE 16 /* bytes of text whose targets are in one bucket */

struct added {
    struct added *next;
    uintptr_t from, to;
};

/* Each list is in the order in which its targets were added. Targets that are added
 * together are usually removed in the same order, so the target to remove is usually the
 * first of its list. Locks: PLAT_PROBES.
 */
static struct bucket {
    struct added *first, *last;
} buckets[BUCKETS];

static struct bucket *targets_at(uintptr_t to)
{
    return &buckets[to / GRANULE % BUCKETS];
}

/* first_not_below - index of the first address that is not below @addr. */
static size_t first_not_below(const struct plat_targets *t, uintptr_t addr)
{
    size_t low = 0, high = t->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (t->base + t->offsets[middle] < addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* first_behind - index of the first opaque range that ends behind @addr. */
static size_t first_behind(const struct plat_targets *t, uintptr_t addr)
{
    size_t low = 0, high = t->opaque_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (t->base + t->opaque[middle].end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* opaque_find - the first address in [@start, @end) that lies in an opaque range, or @end. */
static uintptr_t opaque_find(const struct plat_targets *t, uintptr_t start, uintptr_t end)
{
    size_t i = first_behind(t, start);
    uintptr_t at;

    if (i == t->opaque_count)
        return end;
    at = t->base + t->opaque[i].start;
    if (at < start)
        return start;
    return at < end ? at : end;
}

static uintptr_t table_find(const struct plat_targets *t, uintptr_t start, uintptr_t end)
{
    size_t i = first_not_below(t, start);
    uintptr_t at = i < t->count ? t->base + t->offsets[i] : end;

    return at < end ? at : end;
}

static uintptr_t added_find(uintptr_t start, uintptr_t end)
{
    for (uintptr_t at = start; at < end; at = (at / GRANULE + 1) * GRANULE)
        for (const struct added *a = targets_at(at)->first; a; a = a->next)
            if (a->to >= start && a->to < end)
                end = a->to;
    return end;
}

bool targets_known(uintptr_t addr)
{
    struct plat_targets t;

    plat_targets(addr, &t);
    return t.count;
}

static uintptr_t stop_find(uintptr_t start, uintptr_t end)
{
    while (start < end && !plat_stops_at(start))
        start++;
    return start;
}

uintptr_t targets_find(uintptr_t start, uintptr_t end)
{
    uintptr_t first;
    struct plat_targets t;

    if (start >= end)
        return 0;
    plat_targets(start, &t);
    if (!t.count)
        return start;
    first = table_find(&t, start, stop_find(start, end));
    first = opaque_find(&t, start, first);
    first = added_find(start, first);
    return first < end ? first : 0;
}

bool targets_opaque(uintptr_t addr)
{
    struct plat_targets t;

    plat_targets(addr, &t);
    return !t.count || opaque_find(&t, addr, addr + 1) == addr;
}

int targets_add(uintptr_t from, uintptr_t to)
{
    struct added *a = plat_alloc(sizeof(*a));
    struct bucket *b = targets_at(to);

    if (!a)
        return -ENOMEM;
    *a = (struct added){ .from = from, .to = to };
    *(b->first ? &b->last->next : &b->first) = a;
    b->last = a;
    return 0;
}

bool targets_remove(uintptr_t from, uintptr_t to)
{
    struct bucket *b = targets_at(to);
    struct added *before = NULL, *a = b->first;

    for (; a && (a->from != from || a->to != to); a = a->next)
        before = a;
    if (!a)
        return false;
    *(before ? &before->next : &b->first) = a->next;
    if (b->last == a)
        b->last = before;
    plat_free(a);
    return true;
}
