/* boot_map.h - the memory map: an entry as loaders give it, and the list we make of it. */
#pragma once

#include "kernel/base/boot_info.h"

#include <stddef.h>
#include <stdint.h>

/* The same in multiboot2 and in PVH; the types are those of the BIOS. */
struct boot_map_entry {
    uint64_t start;
    uint64_t len;
    uint32_t type;
    uint32_t reserved;
};

/* boot_map_paint - let [@start, @end) be of @type, whatever was there before.
 *
 * An empty range paints nothing. The list stays sorted, disjoint and merged.
 *
 * Context: boot.
 * Return:  0; -E2BIG the list is full (and holds a part of the change).
 */
int boot_map_paint(struct boot_info *info, uint64_t start, uint64_t end, uint32_t type);

/* boot_map_add - paint a loader's whole map.
 * @entries:  @count entries, @stride bytes apart, all readable
 *
 * RAM goes first and everything else over it: where entries contradict each other, memory
 * is not used.
 *
 * Context: boot.
 * Return:  0; -E2BIG the list is full.
 */
int boot_map_add(struct boot_info *info, const void *entries, size_t stride,
                 size_t count);
