/* boot_info.h - reads what the boot loader has left, into one form for all loaders. Pure.
 *
 * boot/boot_info.c fills the struct once, before anything else runs. After that it is
 * read-only. All texts are copied out of the loader's memory, so that memory may be reused at
 * once. The struct has pointers into itself, so it must not be copied.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOT_RANGES_MAX 256
#define BOOT_MODULES_MAX 64
#define BOOT_CMDLINE_MAX 4096
#define BOOT_NAME_MAX 64
#define BOOT_RSDP_MAX 36 /* ACPI 2.0 and later; 20 bytes before that */

/* Values 1..5 are those of the BIOS memory map (E820). */
enum boot_range_type {
    BOOT_RAM = 1,
    BOOT_RESERVED = 2,
    BOOT_ACPI = 3,
    BOOT_NVS = 4,
    BOOT_BAD = 5,
    BOOT_MODULE = 0x100, /* RAM that holds a boot module: in use */
};

struct boot_range {
    uint64_t start, end; /* physical bytes, @end exclusive, @start < @end */
    uint32_t type;       /* BOOT_RAM is free; memory of other types is not */
};

struct boot_module {
    uint64_t start, end; /* physical bytes, @end exclusive; an empty file has none */
    char name[BOOT_NAME_MAX];
};

struct boot_info {
    const char *cmdline; /* boot arguments; never NULL */
    const char *loader;  /* the boot loader's name; never NULL */
    bool efi;            /* firmware is UEFI, so there is no VGA text mode */

    /* ACPI's root pointer: a copy (@rsdp_len bytes) if the loader handed one over, else
     * its physical address, 0 when there is none.
     */
    uint64_t rsdp;
    unsigned rsdp_len;
    uint8_t rsdp_copy[BOOT_RSDP_MAX];

    /* Sorted, disjoint, neighbours of one type merged. Not page aligned. */
    struct boot_range ranges[BOOT_RANGES_MAX];
    unsigned range_count;

    struct boot_module modules[BOOT_MODULES_MAX];
    unsigned module_count;
    unsigned modules_left_out; /* there was no room for them */

    char cmdline_buf[BOOT_CMDLINE_MAX];
    char loader_buf[BOOT_NAME_MAX];
};

/* boot_info_from_multiboot2 - read the tags that GRUB left.
 * @mbi:    the information block, 8-byte aligned
 * @limit:  bytes readable at @mbi
 *
 * Nothing in the block is trusted: sizes are checked against @limit and against the tag
 * that holds them; unknown tags are skipped; a text that is too long is cut.
 *
 * Context: boot.
 * Return:  0; -EINVAL the block is cut off or its sizes contradict each other;
 *          -ENOENT no memory map; -E2BIG more than BOOT_RANGES_MAX memory ranges.
 * Source:  Multiboot2 Specification 2.0, "Boot information format".
 */
int boot_info_from_multiboot2(struct boot_info *out, const void *mbi, size_t limit);

/* boot_info_from_pvh - read the start info of a PVH boot (QEMU's -kernel, Xen).
 * @start_info:  struct hvm_start_info, 56 bytes readable, 8-byte aligned
 * @at_phys:     returns a pointer to @len readable bytes at @phys, or NULL
 *
 * Context: boot.
 * Return:  0; -EINVAL bad magic or unreadable memory; -ENOENT no memory map;
 *          -E2BIG more than BOOT_RANGES_MAX memory ranges.
 * Source:  Xen, "x86/HVM direct boot ABI".
 */
int boot_info_from_pvh(struct boot_info *out, const void *start_info,
                       const void *(*at_phys)(uint64_t phys, size_t len));

/* boot_info_append - add more boot arguments, after a blank. Text that does not fit in
 * BOOT_CMDLINE_MAX bytes is cut. Context: boot.
 */
void boot_info_append(struct boot_info *info, const char *more);

/* boot_option - look a word up among the boot arguments.
 * @cmdline:  words separated by blanks; a value may be quoted: key="a b"
 * @key:      the word, without '='
 * @out:      gets the value, cut to @len - 1 characters, without quotes; "" if the word has
 *            no '='; not touched if the word is not there; may be NULL
 * @len:      bytes of @out
 *
 * If the word is there several times, the last one counts. So appended arguments override
 * earlier arguments. A loader may have put the whole word in quotes, with a backslash in
 * front of its own quotes: "key=a b".
 *
 * Context: any.
 * Return:  true: the word is there.
 */
bool boot_option(const char *cmdline, const char *key, char *out, size_t len);

/* boot_option_next - find the next word of the boot arguments.
 * @at:  where to look: the arguments, or what the last call has returned
 * @key: gets the word up to its '=', cut to @len - 1 characters
 * Context: any.
 * Return:  what follows the word; NULL: there is no further word.
 */
const char *boot_option_next(const char *at, char *key, size_t len);
