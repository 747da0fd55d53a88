/* qemu_exit.h - end QEMU with a chosen exit status, by its isa-debug-exit device.
 *
 * The exit status is 2 * code + 1. On a machine without this device, a write to the port has
 * no effect.
 */
#pragma once

#include "kernel/cpu/instr.h"

#include <stdint.h>

#define QEMU_EXIT_PORT 0xf4
#define QEMU_EXIT_OK 0x10             /* 33: power off, all tests passed */
#define QEMU_EXIT_TESTS_FAILED 0x11   /* 35 */
#define QEMU_EXIT_PANIC 0x12          /* 37 */
#define QEMU_EXIT_COMMAND_FAILED 0x13 /* 39: power off; a piped command failed */

/* qemu_exit - end QEMU. Returns only if there is no such device. Context: any. */
static inline void qemu_exit(uint8_t code)
{
    outb(QEMU_EXIT_PORT, code);
}
