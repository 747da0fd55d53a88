/* acpi_madt.h - the CPUs and interrupt controllers of this machine, from ACPI. */
#pragma once

#include "kernel/base/boot_info.h"
#include "kernel/cpu/madt.h"

/* acpi_madt_parse - read the MADT.
 * @out: filled in any case; without a MADT it has no CPUs and no I/O APIC, and the
 *       default address of the local APIC
 *
 * Context: boot.
 * Return:  0; -ENOENT there is no MADT with a right checksum.
 * Source:  ACPI Specification, "Multiple APIC Description Table (MADT)".
 */
int acpi_madt_parse(const struct boot_info *boot, struct madt_info *out);
