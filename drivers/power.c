/* power.c - switch the machine off, or reset it. Each function tries one way after the other,
 * and halts if none works.
 *
 * Source: ACPI Specification, "Fixed ACPI Description Table (FADT)", "PM1 Control
 * Registers".
 */
#include "drivers/power.h"

#include "drivers/acpi.h"
#include "drivers/qemu_exit.h"
#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"

#include <string.h>

#define FADT_PM1A_CONTROL 64 /* offset; 4 bytes, an I/O port */
#define PM1_SLEEP_ENABLE (1u << 13)
#define PM1_SLEEP_TYPE_S5 0u /* QEMU's value; other machines define theirs in AML */

#define RESET_PORT 0xcf9
#define RESET_HARD 0x02
#define RESET_GO 0x06

#define KEYBOARD_PORT 0x64
#define KEYBOARD_PULSE_RESET 0xfe

#define RESET_WAIT 1000000 /* reads of a port, which take longer than any reset */

static uint16_t pm1a_control; /* immutable after power_init(); 0: unknown */

INIT void power_init(const struct boot_info *boot)
{
    const struct acpi_table *fadt = acpi_find(boot, "FACP");
    uint32_t port;

    if (!fadt || fadt->len < FADT_PM1A_CONTROL + sizeof(port))
        return;
    memcpy(&port, (const uint8_t *)fadt + FADT_PM1A_CONTROL, sizeof(port));
    pm1a_control = (uint16_t)port;
}

static _Noreturn void power_halt(void)
{
    cli();
    for (;;)
        hlt();
}

_Noreturn void power_off(void)
{
    qemu_exit(QEMU_EXIT_OK);
    if (pm1a_control)
        outw(pm1a_control, PM1_SLEEP_ENABLE | PM1_SLEEP_TYPE_S5 << 10);
    power_halt();
}

_Noreturn void power_reset(void)
{
    outb(RESET_PORT, RESET_HARD);
    outb(RESET_PORT, RESET_GO);
    for (unsigned i = 0; i < RESET_WAIT; i++)
        inb(KEYBOARD_PORT);
    outb(KEYBOARD_PORT, KEYBOARD_PULSE_RESET);
    power_halt();
}
