/* gdb_packet.h - receives and builds the packets of GDB's remote serial protocol, byte by
 * byte. Pure: no hardware, and all state belongs to the caller.
 *
 *   $DATA#SS    a packet; SS is the sum of DATA's bytes modulo 256, in hex
 *   }B          in DATA: stands for the byte B ^ 0x20, which would end the packet
 *   + -         the packet has come whole, or damaged; not sent after QStartNoAckMode
 *   0x03        between packets: Ctrl-C, which asks for a stop
 *
 * Source: GDB manual, "Remote Protocol", "Overview".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GDB_PACKET_MAX 0x4000 /* bytes of DATA on the line, with escapes: PacketSize */

enum gdb_event {
    GDB_NOTHING, /* more bytes are needed, or the byte was noise */
    GDB_PACKET,  /* a whole packet is in data */
    GDB_DAMAGED, /* a packet with a wrong sum */
    GDB_TOO_LONG,
    GDB_ACK,
    GDB_NAK,
    GDB_INTERRUPT, /* Ctrl-C */
};

/* The state of a receiver. All zero: nothing has been received yet. */
struct gdb_receiver {
    enum { GDB_OUTSIDE, GDB_DATA, GDB_ESCAPED, GDB_SUM_HIGH, GDB_SUM_LOW } at;
    bool too_long;
    uint8_t sum, sum_high;
    size_t on_line; /* bytes of the packet so far, escapes included */
    size_t len;
    char data[GDB_PACKET_MAX + 1]; /* DATA without escapes, and a NUL behind it */
};

/* gdb_receive - handle one received byte.
 * Return: what the byte has completed. The packet stays in r->data until the next call.
 * Context: any, one caller at a time.
 */
enum gdb_event gdb_receive(struct gdb_receiver *r, uint8_t byte);

/* gdb_receiving - has a packet begun that is not complete? Context: any. */
static inline bool gdb_receiving(const struct gdb_receiver *r)
{
    return r->at != GDB_OUTSIDE;
}

/* A packet to send. The functions below build its DATA. Bytes that do not fit are left
 * out, and is_cut says so.
 */
struct gdb_out {
    size_t len;
    bool is_cut;
    char frame[GDB_PACKET_MAX + 4]; /* '$', DATA, '#', sum */
};

/* gdb_out_start - begin a packet without DATA.
 * gdb_out_end - add the sum. Return: bytes of out->frame to send.
 */
void gdb_out_start(struct gdb_out *out);
size_t gdb_out_end(struct gdb_out *out);

/* gdb_out_room - return how many more bytes fit into DATA. */
size_t gdb_out_room(const struct gdb_out *out);

/* Appending to DATA:
 * gdb_put_text    - add @text, unchanged
 * gdb_put_escaped - add @len bytes of any value; bytes that would end it are escaped
 * gdb_put_hex     - add @len bytes, each as two hex digits
 * gdb_put_number  - add @value in hex, without leading zeros
 * gdb_put_unknown - add "xx" for each of @len bytes: their values are not known
 */
void gdb_put_text(struct gdb_out *out, const char *text);
void gdb_put_escaped(struct gdb_out *out, const void *bytes, size_t len);
void gdb_put_hex(struct gdb_out *out, const void *bytes, size_t len);
void gdb_put_number(struct gdb_out *out, uint64_t value);
void gdb_put_unknown(struct gdb_out *out, size_t len);

/* gdb_is_empty - is DATA empty? */
static inline bool gdb_is_empty(const struct gdb_out *out)
{
    return out->len == 1;
}

/* Reading from a packet. Each function moves *@at behind the text that it has read; when
 * it fails, *@at does not change.
 *
 * gdb_take_number - read hex digits: at least one, 64 bits at most
 * gdb_take_char   - read exactly @c
 * gdb_take_word   - read exactly @word
 * gdb_take_hex    - read bytes as pairs of digits. Return: how many bytes, up to @max
 */
bool gdb_take_number(const char **at, uint64_t *out);
bool gdb_take_char(const char **at, char c);
bool gdb_take_word(const char **at, const char *word);
size_t gdb_take_hex(const char **at, void *out, size_t max);

/* ---- a packet and its answer ---- */

/* A packet and its answer. */
struct gdb_request {
    const char *at; /* [at, end): the part that is not read yet */
    const char *end;
    struct gdb_out *out;
};

/* gdb_ok - answer OK.
 * gdb_error - answer "E." and @why, a sentence of one line.
 * gdb_done - answer as gdb_ok() if @why is NULL, else as gdb_error().
 */
void gdb_ok(struct gdb_request *r);
void gdb_error(struct gdb_request *r, const char *why);
void gdb_done(struct gdb_request *r, const char *why);

/* gdb_take_range - read ADDRESS,LENGTH from the packet.
 * Return: false: the packet has something else there.
 */
bool gdb_take_range(struct gdb_request *r, uint64_t *addr, uint64_t *len);
