/* power.h - switching the machine off, and starting it again. */
#pragma once

#include "kernel/base/boot_info.h"

/* power_init - find out how. Context: boot. */
void power_init(const struct boot_info *boot);

/* power_off - end QEMU with QEMU_EXIT_OK, or else switch off through ACPI; halts where
 * neither works. power_reset - reset the machine. Nothing is flushed or stopped first.
 *
 * Context: any.
 */
_Noreturn void power_off(void);
_Noreturn void power_reset(void);
