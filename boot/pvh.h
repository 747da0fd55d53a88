/* pvh.h - what a PVH loader (QEMU's -kernel, Xen) leaves in memory.
 *
 * Every pointer is a physical address.
 *
 * Source: Xen, "x86/HVM direct boot ABI" (public/arch-x86/hvm/start_info.h).
 */
#pragma once

#include <stdint.h>

#define PVH_MAGIC 0x336ec578u

struct pvh_start_info {
    uint32_t magic;
    uint32_t version; /* map and map_count exist from version 1 on */
    uint32_t flags;
    uint32_t module_count;
    uint64_t modules; /* struct pvh_module[] */
    uint64_t cmdline; /* text that ends in NUL, or 0 */
    uint64_t rsdp;    /* ACPI's root pointer, or 0 */
    uint64_t map;     /* struct boot_map_entry[] */
    uint32_t map_count;
    uint32_t reserved;
};

struct pvh_module {
    uint64_t start;
    uint64_t len;     /* bytes */
    uint64_t cmdline; /* text that ends in NUL, or 0 */
    uint64_t reserved;
};
