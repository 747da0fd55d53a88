/* debugcon.h - QEMU's debug port 0xe9: a byte written is a byte in the host's file. */
#pragma once

#include <stddef.h>

/* debugcon_write - no locks, no waiting; nothing happens where there is no such port.
 * Context: any.
 */
void debugcon_write(const char *text, size_t len);
