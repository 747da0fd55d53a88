/* gdb_wire.h - COM2, polled: the line to the debugger.
 *
 * The stub must work wherever the kernel has been stopped, in the driver of the other
 * ports as well, so it shares nothing with drivers/serial.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* gdb_wire_init - find COM2 and set it up: 115200 baud, 8N1; no interrupt yet.
 * Return: false: there is none. Context: boot.
 */
bool gdb_wire_init(void);

/* gdb_wire_listen - whether a byte that arrives interrupts. Context: any. */
void gdb_wire_listen(bool on);

/* gdb_wire_has_byte - has one arrived? It stays there. Context: any. */
bool gdb_wire_has_byte(void);

/* gdb_wire_get - the next byte; -1: none has arrived. Context: any, one caller at a time.
 */
int gdb_wire_get(void);

/* gdb_wire_put - send @len bytes, as far as the host takes them. A kernel that runs waits
 * some milliseconds at most; a kernel that stands, and so does not listen, waits until the
 * host takes the bytes or sends one itself. Context: any, one caller at a time.
 * Return: how many bytes the host has taken.
 */
size_t gdb_wire_put(const char *bytes, size_t len);
