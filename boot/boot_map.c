/* boot_map.c - make a sorted list without overlaps from a loader's memory map. Pure.
 *
 * The entries of firmware may overlap, contradict each other and come in any order. So each
 * range is painted over the list: it replaces what the list says of these addresses. The
 * list is in order after each range, and needs no second pass.
 */
#include "boot/boot_map.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"

static INIT int range_insert(struct boot_info *info, unsigned at, uint64_t start,
                             uint64_t end, uint32_t type)
{
    if (info->range_count == BOOT_RANGES_MAX)
        return -E2BIG;
    for (unsigned i = info->range_count; i > at; i--)
        info->ranges[i] = info->ranges[i - 1];
    info->ranges[at] = (struct boot_range){ start, end, type };
    info->range_count++;
    return 0;
}

static INIT void boot_range_remove(struct boot_info *info, unsigned at)
{
    info->range_count--;
    for (unsigned i = at; i < info->range_count; i++)
        info->ranges[i] = info->ranges[i + 1];
}

/* Cut [start, end) out of range @at. A part that remains in front stays at @at; a part that
 * remains behind becomes a range of its own.
 */
static INIT int range_carve(struct boot_info *info, unsigned at, uint64_t start,
                            uint64_t end)
{
    struct boot_range *range = &info->ranges[at];
    uint64_t tail = range->end;
    uint32_t type = range->type;

    if (end <= range->start || start >= range->end)
        return 0;
    if (range->start >= start) {
        if (range->end <= end)
            boot_range_remove(info, at);
        else
            range->start = end;
        return 0;
    }
    range->end = start;
    if (tail <= end)
        return 0;
    return range_insert(info, at + 1, end, tail, type);
}

static INIT void range_merge(struct boot_info *info, unsigned at)
{
    struct boot_range *range = &info->ranges[at];

    if (at + 1 >= info->range_count || range[1].start != range->end ||
        range[1].type != range->type)
        return;
    range->end = range[1].end;
    boot_range_remove(info, at + 1);
}

INIT int boot_map_paint(struct boot_info *info, uint64_t start, uint64_t end,
                        uint32_t type)
{
    unsigned at = 0;
    int err;

    if (start >= end)
        return 0;
    /* Carve from the end of the list. A carve that adds or removes a range moves only the
     * ranges behind it, which are done already.
     */
    for (unsigned i = info->range_count; i-- > 0;) {
        err = range_carve(info, i, start, end);
        if (err)
            return err;
    }
    while (at < info->range_count && info->ranges[at].start < start)
        at++;
    err = range_insert(info, at, start, end, type);
    if (err)
        return err;
    range_merge(info, at);
    if (at > 0)
        range_merge(info, at - 1);
    return 0;
}

static INIT int map_add_kind(struct boot_info *info, const void *entries, size_t stride,
                             size_t count, bool ram)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes = (const uint8_t *)entries + i * stride;
        struct boot_map_entry entry;
        uint64_t end;
        int err;

        __builtin_memcpy(&entry, bytes, sizeof(entry));
        if ((entry.type == BOOT_RAM) != ram)
            continue;
        if (__builtin_add_overflow(entry.start, entry.len, &end))
            end = UINT64_MAX;
        err = boot_map_paint(info, entry.start, end, entry.type);
        if (err)
            return err;
    }
    return 0;
}

INIT int boot_map_add(struct boot_info *info, const void *entries, size_t stride,
                      size_t count)
{
    int err = map_add_kind(info, entries, stride, count, true);

    if (err)
        return err;
    return map_add_kind(info, entries, stride, count, false);
}
