/* fuzz_gdb.c - libFuzzer: gives any bytes to the receiver of the kernel's stub for gdb.
 *
 *     make build/fuzz/fuzz_gdb && build/fuzz/fuzz_gdb -max_len=128
 *
 * In the input, REPEAT N B stands for 257 * N bytes B, because a packet that is too long
 * has very many bytes. These facts must hold:
 *   - for each byte, the receiver reports the same event as a second implementation. The
 *   receiver
 *     gets one byte after the other; the second implementation, in this file, has the
 *     whole stream at once;
 *   - numbers and bytes in a packet are read as by the C library, and nothing behind the
 *   end of
 *     the packet is read, which the sanitizers check;
 *   - data that are put into a packet come out of it at the other end, or the packet is
 *   marked as
 *     cut.
 */
#include "probes/gdb/gdb_packet.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MUST(cond)                                                                       \
    do {                                                                                 \
        if (!(cond))                                                                     \
            abort();                                                                     \
    } while (0)

#define REPEAT 0xf8
#define REPEAT_UNIT 257 /* 64 times this is too long for a packet */
#define STREAM_MAX (GDB_PACKET_MAX + 0x200)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t stream[STREAM_MAX];
static size_t stream_len;

static void expand(const uint8_t *data, size_t size)
{
    stream_len = 0;
    for (size_t i = 0; i < size && stream_len < STREAM_MAX; i++) {
        size_t n = 1;

        if (data[i] == REPEAT && i + 2 < size) {
            n = (size_t)data[i + 1] * REPEAT_UNIT;
            i += 2;
        }
        if (n > STREAM_MAX - stream_len)
            n = STREAM_MAX - stream_len;
        memset(stream + stream_len, data[i], n);
        stream_len += n;
    }
}

/* ---- the second implementation ---- */

struct reading {
    enum gdb_event event;
    size_t last;        /* index of the last byte of the event */
    size_t start, hash; /* of a packet: its data are [start, hash) */
};

/* end_of_data - return the index of the first '#' that is not escaped, or of the first
 * '$', which begins a new packet in any case.
 */
static size_t end_of_data(size_t at)
{
    while (at < stream_len && stream[at] != '$' && stream[at] != '#')
        at += stream[at] == '}' && at + 1 < stream_len && stream[at + 1] != '$' ? 2 : 1;
    return at;
}

static int digit(uint8_t c)
{
    static const char all[] = "0123456789abcdef";

    return isxdigit(c) ? (int)(strchr(all, tolower(c)) - all) : -1;
}

static enum gdb_event judge(size_t start, size_t hash)
{
    int high = digit(stream[hash + 1]), low = digit(stream[hash + 2]);
    unsigned sum = 0;

    for (size_t i = start; i < hash; i++)
        sum += stream[i];
    if (high < 0 || low < 0 || (sum & 0xff) != (unsigned)(high * 16 + low))
        return GDB_DAMAGED;
    return hash - start > GDB_PACKET_MAX ? GDB_TOO_LONG : GDB_PACKET;
}

/* read_packet - read the packet that begins with the '$' at @at, or with a later '$' if
 * that cuts the packet off. Return: false: the stream ends inside the packet.
 */
static bool read_packet(size_t at, struct reading *r)
{
    for (;;) {
        size_t hash = end_of_data(at + 1), next;

        if (hash >= stream_len)
            return false;
        if (stream[hash] == '#') {
            for (next = hash + 1; next < stream_len && next <= hash + 2; next++)
                if (stream[next] == '$')
                    break;
            if (next == hash + 3) {
                *r = (struct reading){ judge(at + 1, hash), hash + 2, at + 1, hash };
                return true;
            }
            if (next >= stream_len)
                return false;
            hash = next;
        }
        at = hash;
    }
}

/* read_from - read the first event at or behind @at. Return: false: there is none. */
static bool read_from(size_t at, struct reading *r)
{
    for (; at < stream_len; at++) {
        static const enum gdb_event alone[256] = {
            ['+'] = GDB_ACK, ['-'] = GDB_NAK, [0x03] = GDB_INTERRUPT
        };

        if (stream[at] == '$')
            return read_packet(at, r);
        if (alone[stream[at]]) {
            *r = (struct reading){ .event = alone[stream[at]], .last = at };
            return true;
        }
    }
    return false;
}

static bool has_content(const struct gdb_receiver *r, const struct reading *reading)
{
    size_t len = 0;

    for (size_t i = reading->start; i < reading->hash; i++, len++) {
        uint8_t byte = stream[i];

        if (byte == '}' && i + 1 == reading->hash)
            break; /* the escaped byte would be the '#' that ends the data */
        if (byte == '}')
            byte = stream[++i] ^ 0x20;
        if (len >= r->len || (uint8_t)r->data[len] != byte)
            return false;
    }
    return len == r->len && !r->data[len];
}

/* ---- the content of a packet ---- */

static void read_number(const char *text)
{
    const char *at = text;
    size_t digits = strspn(text, "0123456789abcdefABCDEF");
    size_t zeros = strspn(text, "0");
    uint64_t value = 0;
    bool fits = digits && (digits <= zeros || digits - zeros <= 16);
    char *alone = strndup(text, digits); /* the C library would read 0X1, too */

    MUST(gdb_take_number(&at, &value) == fits);
    MUST(at == text + (fits ? digits : 0));
    MUST(!fits || value == strtoull(alone, NULL, 16));
    free(alone);
}

static void read_bytes(const char *text)
{
    size_t digits = strspn(text, "0123456789abcdefABCDEF"), max = strlen(text) / 3 + 1;
    size_t want = digits / 2 < max ? digits / 2 : max;
    uint8_t *out = malloc(max);
    const char *at = text;

    MUST(gdb_take_hex(&at, out, max) == want && at == text + 2 * want);
    for (size_t i = 0; i < want; i++)
        MUST(out[i] ==
             digit((uint8_t)text[2 * i]) * 16 + digit((uint8_t)text[2 * i + 1]));
    free(out);
}

static void read_words(const char *text)
{
    const char *at = text;
    char *first = strndup(text, strlen(text) / 2);

    MUST(gdb_take_word(&at, first) && at == text + strlen(first));
    at = first;
    MUST(gdb_take_word(&at, text) == !*text && (at == first || !*text));
    at = text;
    MUST(!gdb_take_char(&at, (char)(*text + 1)) && at == text);
    free(first);
}

/* look_into - read numbers, bytes and words at the start of the packet, and at each place
 * near its end.
 */
static void look_into(const struct gdb_receiver *r)
{
    char *copy = malloc(r->len + 1); /* the sanitizer catches reads behind it */

    memcpy(copy, r->data, r->len + 1);
    for (size_t i = 0; i <= r->len; i++) {
        if (i && i + 128 < r->len)
            i = r->len - 128;
        read_number(copy + i);
        read_bytes(copy + i);
        read_words(copy + i);
    }
    free(copy);
}

/* ---- packets that are sent ---- */

static struct gdb_out out;
static struct gdb_receiver back;

/* arrives - send the packet `out` to the receiver `back`. Return: true: it has
 * arrived.
 */
static bool arrives(void)
{
    size_t len = gdb_out_end(&out);

    MUST(len <= sizeof(out.frame));
    for (size_t i = 0; i < len; i++) {
        enum gdb_event event = gdb_receive(&back, (uint8_t)out.frame[i]);

        MUST(event == (i == len - 1 ? GDB_PACKET : GDB_NOTHING));
    }
    return true;
}

static void send_escaped(const uint8_t *bytes, size_t len)
{
    gdb_out_start(&out);
    MUST(gdb_is_empty(&out));
    gdb_put_escaped(&out, bytes, len);
    MUST(gdb_out_room(&out) <= GDB_PACKET_MAX);
    if (out.is_cut && out.frame[out.len - 1] == '}')
        out.len--; /* only the first half of an escaped byte had room */
    MUST(arrives() && (out.is_cut ? back.len < len : back.len == len));
    MUST(!memcmp(back.data, bytes, back.len));
}

static void send_hex(const uint8_t *bytes, size_t len)
{
    const char *at = back.data;
    uint8_t *again = malloc(len + 1);
    uint64_t number = 0, value = 0;

    for (size_t i = 0; i < len && i < 8; i++)
        number = number << 8 | bytes[i];
    gdb_out_start(&out);
    gdb_put_number(&out, number);
    gdb_put_text(&out, ",");
    gdb_put_hex(&out, bytes, len);
    MUST(arrives() && gdb_take_number(&at, &value) && value == number);
    MUST(number < 16 ? at == back.data + 1 : back.data[0] != '0');
    MUST(gdb_take_char(&at, ','));
    if (!out.is_cut)
        MUST(gdb_take_hex(&at, again, len + 1) == len && !memcmp(again, bytes, len));
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gdb_receiver r;
    struct reading next;
    size_t at = 0;
    bool found;

    expand(data, size);
    memset(&r, 0, sizeof(r));
    found = read_from(0, &next);
    for (; at < stream_len; at++) {
        enum gdb_event event = gdb_receive(&r, stream[at]);

        MUST(event == (found && next.last == at ? next.event : GDB_NOTHING));
        if (!event)
            continue;
        if (event == GDB_PACKET) {
            MUST(has_content(&r, &next));
            look_into(&r);
        }
        MUST(!gdb_receiving(&r));
        found = read_from(at + 1, &next);
    }
    send_escaped(stream, stream_len);
    send_hex(stream, stream_len);
    return 0;
}
