/* multiboot2.h - what a multiboot2 loader leaves in memory.
 *
 * It is a block of memory: a fixed part, and then tags, each aligned to 8 bytes. The last one
 * is a tag of type END.
 *
 * Source: Multiboot2 Specification 2.0, "Boot information format".
 */
#pragma once

#include "kernel/base/compiler.h"

#include <stdint.h>

#define MULTIBOOT2_LOADER_MAGIC 0x36d76289u /* in eax at the entry */
#define MULTIBOOT2_ALIGN 8u

enum multiboot2_tag_type {
    MULTIBOOT2_TAG_END = 0,
    MULTIBOOT2_TAG_CMDLINE = 1,
    MULTIBOOT2_TAG_LOADER = 2,
    MULTIBOOT2_TAG_MODULE = 3,
    MULTIBOOT2_TAG_MEMINFO = 4,
    MULTIBOOT2_TAG_MMAP = 6,
    MULTIBOOT2_TAG_EFI32 = 11,
    MULTIBOOT2_TAG_EFI64 = 12,
    MULTIBOOT2_TAG_RSDP_OLD = 14,
    MULTIBOOT2_TAG_RSDP_NEW = 15,
};

struct multiboot2_info {
    uint32_t total_len; /* bytes of the whole block */
    uint32_t reserved;
};

struct multiboot2_tag {
    uint32_t type;
    uint32_t len; /* bytes, with this header, without the padding behind the tag */
};

/* CMDLINE and LOADER: a tag, then text that ends in NUL. */

struct multiboot2_module {
    struct multiboot2_tag tag;
    uint32_t start, end; /* physical, @end exclusive */
                         /* then text that ends in NUL */
};

struct multiboot2_meminfo {
    struct multiboot2_tag tag;
    uint32_t lower_kib; /* from 0 */
    uint32_t upper_kib; /* from 1 MiB up to the first hole */
};

struct multiboot2_mmap {
    struct multiboot2_tag tag;
    uint32_t entry_len; /* bytes; may grow in later versions */
    uint32_t entry_version;
    /* then struct boot_map_entry, @entry_len apart */
};

/* RSDP_OLD and RSDP_NEW: a tag, then a copy of ACPI's root pointer. */
