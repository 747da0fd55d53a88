/* acpi_madt.h - CPUs and interrupt controllers of this machine. */
#pragma once

#include "kernel/base/boot_info.h"
#include "kernel/cpu/madt.h"

/* acpi_madt_parse - read the MADT.
 * @out: filled in any case; without a MADT it has no CPUs and no I/O APIC, and the
 *       architectural address of the local APIC
 *
 * Context: boot.
 * Return:  0; -ENOENT there is no (valid) MADT.
 * Source:  ACPI Specification, "Multiple APIC Description Table (MADT)".
 */
int acpi_madt_parse(const struct boot_info *boot, struct madt_info *out);
