/* ksyms.c - finds symbols by address and by name, in the table that the build has made.
 *
 * The code runs in any context, even during a hit, and therefore calls no library.
 */
#include "kernel/debug/ksyms.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/ksyms_table.h"

const struct ksyms_more *ksyms_more; /* set at boot */

static const char *entry_name(const struct ksyms_entry *e)
{
    return &ksyms_names[e->name];
}

static void entry_report(const struct ksyms_entry *e, size_t offset, struct ksym *out)
{
    out->name = entry_name(e);
    out->start = e->start;
    out->size = e->size;
    out->offset = offset;
    out->type = e->type;
    out->module = NULL;
    out->params = NULL;
}

/* The withdrawn part of the table, as addresses and as entries; empty at first. */
static struct {
    uintptr_t start, end;
    size_t first, last; /* last: the first entry behind the part */
} withdrawn;

static bool is_withdrawn(uintptr_t addr)
{
    return addr > READ_ONCE(withdrawn.start) && addr < READ_ONCE(withdrawn.end);
}

static int name_compare(const char *a, const char *b)
{
    for (; *a && *a == *b; b++)
        a++;
    return (uint8_t)*a - (uint8_t)*b;
}

static const struct ksyms_entry *entry_by_name(size_t place)
{
    return &ksyms_table[ksyms_by_name[place]];
}

/* The place, in order of names, of the first symbol with a name not before @name. */
static size_t name_search(const char *name)
{
    size_t low = 0, high = ksyms_total;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (name_compare(entry_name(entry_by_name(middle)), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How many symbols start at or below @addr. */
static size_t start_search(uintptr_t addr)
{
    size_t low = 0, high = ksyms_total;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ksyms_table[middle].start <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Iterators above this belong to loaded code. */
#define MORE (SIZE_MAX / 2)

static bool next_of_more(const char *name, size_t *iter, struct ksym *out)
{
    size_t own = *iter > MORE ? *iter - MORE : 0;

    if (!ksyms_more || !ksyms_more->next(name, &own, out))
        return false;
    *iter = MORE + own;
    return true;
}

void ksyms_withdraw(uintptr_t start, uintptr_t end)
{
    withdrawn.first = start_search(start);
    withdrawn.last = start_search(end - 1);
    WRITE_ONCE(withdrawn.start, start);
    WRITE_ONCE(withdrawn.end, end);
}

bool ksyms_next(const char *name, size_t *iter, struct ksym *out)
{
    size_t place = *iter ? *iter : name_search(name);

    while (place < ksyms_total && is_withdrawn(entry_by_name(place)->start))
        place++;
    if (place >= ksyms_total || name_compare(entry_name(entry_by_name(place)), name))
        return next_of_more(name, iter, out);
    entry_report(entry_by_name(place), 0, out);
    *iter = place + 1;
    return true;
}

int ksyms_find(const char *name, struct ksym *out)
{
    struct ksym first, second;
    size_t iter = 0;

    if (!ksyms_next(name, &iter, &first))
        return -ENOENT;
    if (ksyms_next(name, &iter, &second) && (first.module || !second.module))
        return -EADDRNOTAVAIL;
    *out = first;
    return 0;
}

int ksyms_at(uintptr_t addr, struct ksym *out)
{
    size_t count = start_search(addr);
    size_t i = count ? count - 1 : KSYMS_NONE;

    if (is_withdrawn(addr))
        return -ENOENT;
    /* The symbol with the nearest start may be a label, or may end before @addr. Then
     * @addr belongs to a symbol around that one, if to any.
     */
    for (; i != KSYMS_NONE; i = ksyms_table[i].outer) {
        const struct ksyms_entry *e = &ksyms_table[i];

        if (addr - e->start < e->size) {
            entry_report(e, addr - e->start, out);
            return 0;
        }
    }
    return ksyms_more ? ksyms_more->at(addr, out) : -ENOENT;
}

bool ksyms_is_of(const struct ksym *sym, const char *module, size_t len)
{
    const char *name = sym->module;

    for (; name && len && *name == *module; len--)
        name++, module++;
    return name && !len && !*name;
}

const char *ksyms_gone(uintptr_t addr, size_t *offset)
{
    return ksyms_more ? ksyms_more->gone(addr, offset) : NULL;
}

size_t ksyms_count(void)
{
    return ksyms_total - (withdrawn.last - withdrawn.first);
}

bool ksyms_get(size_t i, struct ksym *out)
{
    if (i >= withdrawn.first)
        i += withdrawn.last - withdrawn.first;
    if (i >= ksyms_total)
        return ksyms_more && ksyms_more->get(i - ksyms_total, out);
    entry_report(&ksyms_table[i], 0, out);
    return true;
}

COLD static bool has_prefix(const char *s, const char *prefix, size_t *len)
{
    size_t i = 0;

    while (prefix[i] && s[i] == prefix[i])
        i++;
    *len = i;
    return !prefix[i];
}

/* A suffix is a word: "x.cold" and "x.part.0" are parts of x, "x.partner" is not. */
COLD static bool is_clone_suffix(const char *s)
{
    static const char *const words[] = { ".isra", ".constprop", ".part", ".cold" };
    size_t len;

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (has_prefix(s, words[i], &len) && (s[len] == '.' || !s[len]))
            return true;
    return false;
}

COLD size_t ksyms_base_name(const char *name, char *buf, size_t size)
{
    size_t len;

    for (len = 0; name[len] && !is_clone_suffix(&name[len]); len++)
        if (len + 1 < size)
            buf[len] = name[len];
    if (size)
        buf[len < size ? len : size - 1] = '\0';
    return len;
}
