/* gdb_line.h - receives whole packets from the debugger and sends packets to it, with
 * acknowledgements.
 */
#pragma once

#include "probes/gdb/gdb_packet.h"

/* gdb_line_poll - take the bytes that have arrived.
 * Return: true: the kernel shall stop: an attached debugger has sent Ctrl-C, or any
 * debugger a packet. Context: any, one caller at a time. No CPU serves.
 */
bool gdb_line_poll(void);

/* gdb_line_has_packet - has a packet arrived already? Context: held. */
bool gdb_line_has_packet(void);

/* gdb_line_packet - wait for the next packet.
 * @len: receives its length
 * Return: its data, until the next call; NULL: the packet was too long, and is lost.
 * Context: held.
 */
const char *gdb_line_packet(size_t *len);

/* gdb_line_send - finish @out and send it. The debugger may ask to get it again, so the
 * caller must not change @out before the next packet. Context: any, one caller at a time.
 * In another context than `held`, no CPU serves.
 * Return: false: @out is dropped, because the host has not taken all of the packet before
 * it.
 */
bool gdb_line_send(struct gdb_out *out);

/* gdb_line_answer - do as gdb_line_send(), but first wait until the host has taken the
 * packet before it. If the host sends a packet first, @out is dropped. Context: held.
 */
void gdb_line_answer(struct gdb_out *out);

/* gdb_line_flush - send the rest of the last packet, which the host has not taken yet.
 * Context: as gdb_line_send(). Return: false: the host does not take all of it now
 * either.
 */
bool gdb_line_flush(void);

/* gdb_line_is_slow - is a part of the last packet left to send? Context: any. */
bool gdb_line_is_slow(void);

/* gdb_line_attached - has a debugger been served, and not detached? Context: any.
 * gdb_line_greet - note the first packet of a debugger: acknowledgements begin again.
 * gdb_line_detach - note that the debugger has detached.
 */
bool gdb_line_attached(void);
void gdb_line_greet(void);
void gdb_line_detach(void);

/* gdb_line_no_acks - send no '+' and '-' from now on. Context: held. */
void gdb_line_no_acks(void);
