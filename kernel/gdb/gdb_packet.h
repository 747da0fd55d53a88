/* gdb_packet.h - the frames of GDB's remote serial protocol: bytes in, packets out, and
 * back. Pure: no hardware, no state but the caller's.
 *
 *   $DATA#SS    a packet; SS is the sum of DATA's bytes modulo 256, in hex
 *   }B          in DATA: the byte B ^ 0x20, for bytes that would end the frame
 *   + -         it has come whole, or has not; left out after QStartNoAckMode
 *   0x03        between packets: stop
 *
 * Source: GDB manual, "Remote Protocol", "Overview".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GDB_PACKET_MAX 0x4000 /* bytes of DATA as they are on the line: PacketSize */

enum gdb_event {
    GDB_NOTHING, /* more bytes are needed, or this one was noise */
    GDB_PACKET,  /* a whole packet is in data */
    GDB_DAMAGED, /* its sum is wrong */
    GDB_TOO_LONG,
    GDB_ACK,
    GDB_NAK,
    GDB_INTERRUPT, /* Ctrl-C */
};

/* What arrives. All zero is a receiver that has seen nothing. */
struct gdb_receiver {
    enum { GDB_OUTSIDE, GDB_DATA, GDB_ESCAPED, GDB_SUM_HIGH, GDB_SUM_LOW } at;
    bool too_long;
    uint8_t sum, sum_high;
    size_t on_line; /* bytes of the packet so far, escapes included */
    size_t len;
    char data[GDB_PACKET_MAX + 1]; /* escapes undone, NUL behind it */
};

/* gdb_receive - take one byte.
 * Return: what it has completed. The packet stays in r->data until the next call.
 * Context: any; one caller at a time.
 */
enum gdb_event gdb_receive(struct gdb_receiver *r, uint8_t byte);

/* gdb_receiving - is a packet under way? Context: any. */
static inline bool gdb_receiving(const struct gdb_receiver *r)
{
    return r->at != GDB_OUTSIDE;
}

/* A packet to send: DATA is put together here. Bytes that do not fit are left out, and is_cut
 * says so.
 */
struct gdb_out {
    size_t len;
    bool is_cut;
    char frame[GDB_PACKET_MAX + 4]; /* '$', DATA, '#', sum */
};

/* gdb_out_start - an empty packet.   gdb_out_end - its sum. Return: bytes of out->frame.
 */
void gdb_out_start(struct gdb_out *out);
size_t gdb_out_end(struct gdb_out *out);

/* gdb_out_room - bytes that still fit. */
size_t gdb_out_room(const struct gdb_out *out);

/* Appending to DATA:
 * gdb_put_text    - @text, unchanged
 * gdb_put_escaped - @len bytes of any value; bytes that would end the frame are escaped
 * gdb_put_hex     - @len bytes, each as two hex digits
 * gdb_put_number  - @value in hex, without leading zeros
 * gdb_put_unknown - "xx" for each of @len bytes: their values are not known
 */
void gdb_put_text(struct gdb_out *out, const char *text);
void gdb_put_escaped(struct gdb_out *out, const void *bytes, size_t len);
void gdb_put_hex(struct gdb_out *out, const void *bytes, size_t len);
void gdb_put_number(struct gdb_out *out, uint64_t value);
void gdb_put_unknown(struct gdb_out *out, size_t len);

/* gdb_is_empty - has nothing been put yet? */
static inline bool gdb_is_empty(const struct gdb_out *out)
{
    return out->len == 1;
}

/* Reading from a packet. Each function moves *@at behind the text that it has read; when
 * it fails, *@at does not change.
 *
 * gdb_take_number - hex digits, at least one, 64 bits at most
 * gdb_take_char   - exactly @c
 * gdb_take_word   - exactly @word
 * gdb_take_hex    - bytes as pairs of digits. Return: how many, up to @max
 */
bool gdb_take_number(const char **at, uint64_t *out);
bool gdb_take_char(const char **at, char c);
bool gdb_take_word(const char **at, const char *word);
size_t gdb_take_hex(const char **at, void *out, size_t max);
