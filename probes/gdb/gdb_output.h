/* gdb_output.h - sends text to the debugger, whether the kernel runs or stands.
 *
 * dprintf prints in hits, on any CPU; commands of `monitor` print when the kernel runs
 * again. Each CPU has a ring in which such text waits. It goes out in the order of time,
 * as `O` packets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define GDB_OUTPUT_MAX 512 /* bytes of one text */

/* gdb_output_init - make the rings. Context: boot, all CPUs online. Return: false: no
 * memory.
 */
bool gdb_output_init(void);

/* gdb_output_put - put a text of @len bytes into this CPU's ring. Bytes behind
 * GDB_OUTPUT_MAX are cut off. A text that finds no room is lost and counted, and the
 * debugger is told how many texts are lost. Context: any.
 */
void gdb_output_put(const char *text, size_t len);

/* gdb_output_is_waiting - is there text to send? Context: any. */
bool gdb_output_is_waiting(void);

/* gdb_output_send - send texts that wait, until @most bytes have gone. Context: held or
 * nmi. In `nmi` no CPU serves, and no other CPU sends.
 */
void gdb_output_send(size_t most);

/* gdb_output_now - send @len bytes, of any number, at once as `O` packets. Context: held.
 */
void gdb_output_now(const char *text, size_t len);
