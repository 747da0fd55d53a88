/* boot_map.h - the memory map: an entry as loaders give it, and a list in order. */
#pragma once

#include "kernel/base/boot_info.h"

#include <stddef.h>
#include <stdint.h>

/* An entry of multiboot2 and of PVH. The types are those of the BIOS. */
struct boot_map_entry {
    uint64_t start;
    uint64_t len;
    uint32_t type;
    uint32_t reserved;
};

/* boot_map_paint - in info->ranges, give [@start, @end) the type @type; it replaces what the
 * list says of these addresses.
 * @start, @end: physical addresses, in bytes; @end exclusive. An empty range changes nothing
 * @type:        enum boot_range_type
 *
 * The list stays sorted, without overlaps, and neighbours of one type stay merged.
 *
 * Context: boot.
 * Return:  0; -E2BIG the list is full, and a part of the change is made.
 */
int boot_map_paint(struct boot_info *info, uint64_t start, uint64_t end, uint32_t type);

/* boot_map_add - paint a loader's whole map.
 * @entries:  @count entries, @stride bytes apart, all readable
 * @stride:   at least sizeof(struct boot_map_entry)
 *
 * RAM is painted first and all other types over it. So memory is not used if one entry says
 * that it is RAM and another entry says that it is not.
 *
 * Context: boot.
 * Return:  0; -E2BIG the list is full, and a part of the map is painted.
 */
int boot_map_add(struct boot_info *info, const void *entries, size_t stride,
                 size_t count);
