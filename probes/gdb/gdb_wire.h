/* gdb_wire.h - drives COM2, the line to the debugger, by polling.
 *
 * The stub must work wherever the kernel has stopped, even in the driver of the other
 * serial ports. So it shares nothing with drivers/serial.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* gdb_wire_init - find COM2 and set it up: 115200 baud, 8N1; no interrupt yet.
 * Return: false: there is no COM2. Context: boot.
 */
bool gdb_wire_init(void);

/* gdb_wire_listen - let received bytes interrupt, or no longer. Context: any. */
void gdb_wire_listen(bool on);

/* gdb_wire_has_byte - has a byte arrived? It is not taken. Context: any. */
bool gdb_wire_has_byte(void);

/* gdb_wire_get - take the next byte; -1: none has arrived. Context: any, one caller at a
 * time.
 */
int gdb_wire_get(void);

/* gdb_wire_put - send @len bytes, or as many as the host takes. If the kernel runs, this
 * function waits for the host some milliseconds at most. If the kernel stands, and so
 * gdb_wire_listen() is off, it waits until the host takes the bytes or sends a byte
 * itself. Context: any, one caller at a time.
 * Return: how many bytes the host has taken.
 */
size_t gdb_wire_put(const char *bytes, size_t len);
