/* port_fake_known.c - port_fake's part about what is known of text: symbols, fix-ups, entry
 * code, marks, and which addresses fault.
 */
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "tests/unit/port_fake.h"
#include "tests/unit/port_fake_parts.h"

#include <stdlib.h>
#include <string.h>

#define SYMBOLS_MAX 512
#define RANGES_MAX 16

struct range {
    uintptr_t start, end;
};

struct ranges {
    struct range at[RANGES_MAX];
    size_t count;
};

static struct plat_symbol symbols[SYMBOLS_MAX];
static size_t symbol_count;
static struct ranges entries, engines, fixups, bad;
static uintptr_t nokprobe[RANGES_MAX];
static size_t nokprobe_count;
static struct nokprobe_range nokprobe_ranges[RANGES_MAX];
static size_t nokprobe_range_count;

void fake_known_start(void)
{
    symbol_count = 0;
    entries.count = engines.count = fixups.count = bad.count = 0;
}

/* ---- ranges ---- */

static void range_add(struct ranges *r, uintptr_t start, uintptr_t end)
{
    if (r->count == RANGES_MAX)
        abort();
    r->at[r->count++] = (struct range){ start, end };
}

static bool range_overlaps(const struct ranges *r, uintptr_t start, uintptr_t end)
{
    for (size_t i = 0; i < r->count; i++)
        if (start < r->at[i].end && end > r->at[i].start)
            return true;
    return false;
}

void fake_entry(uintptr_t start, uintptr_t end)
{
    range_add(&entries, start, end);
}

void fake_engine(uintptr_t start, uintptr_t end)
{
    range_add(&engines, start, end);
}

void fake_fixup(uintptr_t addr)
{
    range_add(&fixups, addr, addr + 1);
}

void fake_bad(uintptr_t start, size_t len)
{
    range_add(&bad, start, start + len);
}

bool fake_is_bad(uintptr_t addr, size_t len)
{
    return range_overlaps(&bad, addr, addr + len);
}

bool plat_has_fixup(uintptr_t addr)
{
    return range_overlaps(&fixups, addr, addr + 1);
}

bool plat_is_entry(uintptr_t addr)
{
    return range_overlaps(&entries, addr, addr + 1);
}

bool plat_is_engine(uintptr_t addr)
{
    return range_overlaps(&engines, addr, addr + 1);
}

/* ---- marks ---- */

void fake_nokprobe(uintptr_t addr)
{
    if (nokprobe_count == RANGES_MAX)
        abort();
    nokprobe[nokprobe_count++] = addr;
}

void fake_nokprobe_range(uintptr_t start, uintptr_t end, const char *why)
{
    if (nokprobe_range_count == RANGES_MAX)
        abort();
    nokprobe_ranges[nokprobe_range_count++] = (struct nokprobe_range){ start, end, why };
}

static int take_marks(void)
{
    return blacklist_add(&(struct nokprobe_marks){
        nokprobe, nokprobe_count, nokprobe_ranges, nokprobe_range_count });
}

void fake_take_marks(void)
{
    CHECK_EQ(fake_boot(take_marks), 0);
    nokprobe_count = nokprobe_range_count = 0;
}

/* ---- symbols ---- */

void fake_symbol(const char *name, uintptr_t start, size_t size)
{
    if (symbol_count == SYMBOLS_MAX)
        abort();
    symbols[symbol_count++] = (struct plat_symbol){ start, size, name, NULL };
}

int plat_symbol_find(const char *name, struct plat_symbol *out)
{
    size_t found = 0;

    for (size_t i = 0; i < symbol_count; i++) {
        if (strcmp(symbols[i].name, name))
            continue;
        *out = symbols[i];
        found++;
    }
    return found == 1 ? 0 : found ? -EADDRNOTAVAIL : -ENOENT;
}

int plat_symbol_at(uintptr_t addr, struct plat_symbol *out)
{
    for (size_t i = 0; i < symbol_count; i++) {
        if (addr - symbols[i].start >= symbols[i].size)
            continue;
        *out = symbols[i];
        return 0;
    }
    return -ENOENT;
}
