/* power.h - switch the machine off, or reset it. */
#pragma once

#include "kernel/base/boot_info.h"

/* power_init - find the ACPI port for power_off(). Context: boot. */
void power_init(const struct boot_info *boot);

/* power_off - end QEMU with QEMU_EXIT_OK, or else switch the machine off by ACPI. If neither
 * works, halt this CPU.
 * power_reset - reset the machine.
 *
 * Neither flushes output or stops other CPUs first.
 *
 * Context: any.
 */
_Noreturn void power_off(void);
_Noreturn void power_reset(void);
