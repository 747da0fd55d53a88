/* port_fake_known.c - port_fake's facts about text: fix-ups, entry code, marks, and the
 * addresses that fault. Symbols are in symbol_list.c.
 */
#include "tests/unit/port_fake.h"
#include "tests/unit/port_fake_parts.h"
#include "tests/unit/symbol_list.h"

#define RANGES_MAX 16

struct range {
    uintptr_t start, end;
};

struct ranges {
    struct range at[RANGES_MAX];
    size_t count;
};

static struct ranges entries, engines, fixups, bad;
static uintptr_t nokprobe[RANGES_MAX];
static size_t nokprobe_count;
static struct nokprobe_range nokprobe_ranges[RANGES_MAX];
static size_t nokprobe_range_count;

void fake_known_start(void)
{
    symbols_clear();
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

bool plat_stops_at(uintptr_t addr)
{
    return fake.stops_at == addr;
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
        nokprobe, nokprobe_count, nokprobe_ranges, nokprobe_range_count, NULL });
}

void fake_take_marks(void)
{
    CHECK_EQ(fake_boot(take_marks), 0);
    nokprobe_count = nokprobe_range_count = 0;
}
