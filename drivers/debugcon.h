/* debugcon.h - QEMU's debug port 0xe9: QEMU appends each byte written there to a file. */
#pragma once

#include <stddef.h>

/* debugcon_write - write @len bytes of @text to the port, without waiting. Nothing is written
 * if the machine has no such port.
 * Context: any.  Locks: none. Bytes of several CPUs may mix.
 */
void debugcon_write(const char *text, size_t len);
