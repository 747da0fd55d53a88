/* gdb_packet.c - receives and builds the packets of GDB's protocol. It runs in any
 * context, since the kernel may stop in any context.
 */
#include "probes/gdb/gdb_packet.h"

#include "kernel/base/hex.h"

#include <string.h>

#define CTRL_C 0x03
#define ESCAPE '}'

static const char digits[] = "0123456789abcdef";

/* ---- in ---- */

static void packet_begin(struct gdb_receiver *r)
{
    r->at = GDB_DATA;
    r->too_long = false;
    r->sum = 0;
    r->on_line = 0;
    r->len = 0;
}

static void packet_store(struct gdb_receiver *r, uint8_t byte)
{
    if (r->on_line > GDB_PACKET_MAX)
        r->too_long = true;
    else
        r->data[r->len++] = (char)byte;
}

static enum gdb_event outside(uint8_t byte)
{
    switch (byte) {
    case '+':
        return GDB_ACK;
    case '-':
        return GDB_NAK;
    case CTRL_C:
        return GDB_INTERRUPT;
    default:
        return GDB_NOTHING;
    }
}

static enum gdb_event in_data(struct gdb_receiver *r, uint8_t byte)
{
    if (byte == '#' && r->at == GDB_DATA) {
        r->at = GDB_SUM_HIGH;
        return GDB_NOTHING;
    }
    r->sum = (uint8_t)(r->sum + byte);
    if (r->on_line <= GDB_PACKET_MAX)
        r->on_line++;
    if (r->at == GDB_ESCAPED) {
        r->at = GDB_DATA;
        packet_store(r, byte ^ 0x20);
    } else if (byte == ESCAPE) {
        r->at = GDB_ESCAPED;
    } else {
        packet_store(r, byte);
    }
    return GDB_NOTHING;
}

static enum gdb_event completed(struct gdb_receiver *r, uint8_t byte)
{
    int high = hex_digit((char)r->sum_high), low = hex_digit((char)byte);

    r->at = GDB_OUTSIDE;
    r->data[r->len] = '\0';
    if (high < 0 || low < 0 || high * 16 + low != r->sum)
        return GDB_DAMAGED;
    return r->too_long ? GDB_TOO_LONG : GDB_PACKET;
}

/* DATA never contains a '$'. So a '$' always begins a packet: if it comes inside a
 * packet, the sender of that packet has died in its middle.
 */
enum gdb_event gdb_receive(struct gdb_receiver *r, uint8_t byte)
{
    if (byte == '$') {
        packet_begin(r);
        return GDB_NOTHING;
    }
    switch (r->at) {
    case GDB_OUTSIDE:
        return outside(byte);
    case GDB_SUM_HIGH:
        r->sum_high = byte;
        r->at = GDB_SUM_LOW;
        return GDB_NOTHING;
    case GDB_SUM_LOW:
        return completed(r, byte);
    default:
        return in_data(r, byte);
    }
}

/* ---- out ---- */

void gdb_out_start(struct gdb_out *out)
{
    out->frame[0] = '$';
    out->len = 1;
    out->is_cut = false;
}

size_t gdb_out_room(const struct gdb_out *out)
{
    return GDB_PACKET_MAX + 1 - out->len;
}

static void packet_put(struct gdb_out *out, char c)
{
    if (gdb_out_room(out))
        out->frame[out->len++] = c;
    else
        out->is_cut = true;
}

size_t gdb_out_end(struct gdb_out *out)
{
    uint8_t sum = 0;

    for (size_t i = 1; i < out->len; i++)
        sum = (uint8_t)(sum + (uint8_t)out->frame[i]);
    out->frame[out->len] = '#';
    out->frame[out->len + 1] = digits[sum >> 4];
    out->frame[out->len + 2] = digits[sum & 15];
    return out->len + 3;
}

void gdb_put_text(struct gdb_out *out, const char *text)
{
    while (*text)
        packet_put(out, *text++);
}

void gdb_put_escaped(struct gdb_out *out, const void *bytes, size_t len)
{
    const char *from = bytes;

    for (size_t i = 0; i < len; i++) {
        bool special =
            from[i] == '$' || from[i] == '#' || from[i] == '*' || from[i] == ESCAPE;

        if (special)
            packet_put(out, ESCAPE);
        packet_put(out, special ? (char)(from[i] ^ 0x20) : from[i]);
    }
}

void gdb_put_hex(struct gdb_out *out, const void *bytes, size_t len)
{
    const uint8_t *from = bytes;

    for (size_t i = 0; i < len; i++) {
        packet_put(out, digits[from[i] >> 4]);
        packet_put(out, digits[from[i] & 15]);
    }
}

void gdb_put_number(struct gdb_out *out, uint64_t value)
{
    int shift = 60;

    while (shift > 0 && !(value >> shift))
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        packet_put(out, digits[(value >> shift) & 15]);
}

void gdb_put_unknown(struct gdb_out *out, size_t len)
{
    for (size_t i = 0; i < 2 * len; i++)
        packet_put(out, 'x');
}

/* ---- what is in a packet ---- */

bool gdb_take_number(const char **at, uint64_t *out)
{
    const char *from = *at;
    uint64_t value = 0;

    while (hex_digit(*from) >= 0) {
        if (value >> 60)
            return false;
        value = value * 16 + (uint64_t)hex_digit(*from++);
    }
    if (from == *at)
        return false;
    *at = from;
    *out = value;
    return true;
}

bool gdb_take_char(const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

bool gdb_take_word(const char **at, const char *word)
{
    size_t len = strlen(word);

    if (strncmp(*at, word, len) != 0)
        return false;
    *at += len;
    return true;
}

size_t gdb_take_hex(const char **at, void *out, size_t max)
{
    uint8_t *to = out;
    size_t n = 0;

    for (; n < max; n++) {
        int high = hex_digit((*at)[0]);
        int low = high < 0 ? -1 : hex_digit((*at)[1]);

        if (low < 0)
            break;
        to[n] = (uint8_t)(high * 16 + low);
        *at += 2;
    }
    return n;
}

/* ---- a packet and its answer ---- */

void gdb_ok(struct gdb_request *r)
{
    gdb_put_text(r->out, "OK");
}

void gdb_error(struct gdb_request *r, const char *why)
{
    gdb_out_start(r->out);
    gdb_put_text(r->out, "E.");
    gdb_put_escaped(r->out, why, strlen(why));
}

void gdb_done(struct gdb_request *r, const char *why)
{
    if (why)
        gdb_error(r, why);
    else
        gdb_ok(r);
}

bool gdb_take_range(struct gdb_request *r, uint64_t *addr, uint64_t *len)
{
    return gdb_take_number(&r->at, addr) && gdb_take_char(&r->at, ',') &&
           gdb_take_number(&r->at, len);
}
