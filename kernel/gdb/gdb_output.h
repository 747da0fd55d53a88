/* gdb_output.h - text for the debugger, from a kernel that runs or stands.
 *
 * dprintf prints in hits, on any CPU, and commands of `monitor` print when the kernel runs
 * again. Their text waits in a ring for each CPU, and goes out by time, as `O` packets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define GDB_OUTPUT_MAX 512 /* bytes of one text */

/* gdb_output_init - Context: boot, all CPUs online. Return: false: no memory. */
bool gdb_output_init(void);

/* gdb_output_put - @len bytes, GDB_OUTPUT_MAX at most; the rest is cut off. What finds no
 * room is counted, and the debugger is told how many texts are missing, and where.
 * Context: any.
 */
void gdb_output_put(const char *text, size_t len);

/* gdb_output_is_waiting - Context: any. */
bool gdb_output_is_waiting(void);

/* gdb_output_send - send what waits, until @most bytes have gone. Context: serving; or nmi,
 * while no CPU serves and no other one sends.
 */
void gdb_output_send(size_t most);

/* gdb_output_now - send @len bytes at once, any number of them, as `O` packets.
 * Context: serving.
 */
void gdb_output_now(const char *text, size_t len);
