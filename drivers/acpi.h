/* acpi.h - find ACPI tables. They lie in memory that the firmware has reserved. */
#pragma once

#include "kernel/base/boot_info.h"
#include "kernel/base/compiler.h"

#include <stddef.h>
#include <stdint.h>

/* Every table begins with this. */
struct acpi_table {
    char signature[4];
    uint32_t len; /* bytes of the table, with this header */
    uint8_t revision;
    uint8_t checksum; /* all bytes of the table add up to 0 */
    char oem[6];
    char oem_table[8];
    uint32_t oem_revision;
    uint32_t creator;
    uint32_t creator_revision;
} PACKED;

_Static_assert(sizeof(struct acpi_table) == 36, "ACPI's layout");

/* acpi_find - find the first table that has @signature and a right checksum.
 * @signature: 4 characters
 *
 * Context: boot. The tables are read through the direct map.
 * Return:  the table, which stays where it is; NULL: no ACPI, or no such table.
 * Source:  ACPI Specification, "ACPI System Description Tables".
 */
const struct acpi_table *acpi_find(const struct boot_info *boot, const char *signature);
