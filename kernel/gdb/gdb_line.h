/* gdb_line.h - whole packets from the debugger, and to it: is there one, and
 * acknowledgements.
 */
#pragma once

#include "kernel/gdb/gdb_packet.h"

/* gdb_line_poll - take what has arrived.
 * Return: true: the debugger wants the kernel to stand still: Ctrl-C of one that is
 * attached, or a packet of anybody.
 * Context: any, while no CPU serves; one caller at a time.
 */
bool gdb_line_poll(void);

/* gdb_line_has_packet - has one come already? Context: serving. */
bool gdb_line_has_packet(void);

/* gdb_line_packet - wait for the next packet.
 * @len: receives its length
 * Return: its data, until the next call; NULL: it was too long, and is lost.
 * Context: serving.
 */
const char *gdb_line_packet(size_t *len);

/* gdb_line_send - finish @out and send it. It is sent again when the debugger asks for
 * that, so it is left alone until the next packet. Context: serving, or as gdb_line_poll().
 * Return: false: it is dropped, as the host has not taken all of the packet before it.
 */
bool gdb_line_send(struct gdb_out *out);

/* gdb_line_answer - the same, and wait until the host takes what was sent before it, or sends
 * a packet of its own. Context: serving.
 */
void gdb_line_answer(struct gdb_out *out);

/* gdb_line_flush - send what the host has not taken of the last packet.
 * Context: as gdb_line_send(). Return: false: the host does not take it now either.
 */
bool gdb_line_flush(void);

/* gdb_line_is_slow - is something left for gdb_line_flush()? Context: any. */
bool gdb_line_is_slow(void);

/* gdb_line_attached - has a debugger been served, and not said good-bye? Context: any.
 * gdb_line_greet - the packet is the first of a debugger: acknowledgements begin again.
 * gdb_line_detach - it has said good-bye.
 */
bool gdb_line_attached(void);
void gdb_line_greet(void);
void gdb_line_detach(void);

/* gdb_line_no_acks - from now on without '+' and '-'. Context: serving. */
void gdb_line_no_acks(void);
