/* test_gdb_packet.c - tests of the packets of GDB's protocol: complete, damaged, cut off
 * and too long ones, and bytes between packets.
 */
#include "probes/gdb/gdb_packet.h"
#include "tests/unit/unit.h"

static struct gdb_receiver receiver;

static void start(void)
{
    memset(&receiver, 0, sizeof(receiver));
}

/* feed - let the receiver get all of @text.
 * Return: the last event that is not GDB_NOTHING, or GDB_NOTHING.
 */
static enum gdb_event feed(const char *text, size_t len)
{
    enum gdb_event last = GDB_NOTHING;

    for (size_t i = 0; i < len; i++) {
        enum gdb_event event = gdb_receive(&receiver, (uint8_t)text[i]);

        if (event)
            last = event;
    }
    return last;
}

static enum gdb_event feed_text(const char *text)
{
    return feed(text, strlen(text));
}

UNIT_TEST(a_packet_is_taken_whole)
{
    CHECK_EQ(feed_text("$g#6"), GDB_NOTHING);
    CHECK(gdb_receiving(&receiver));
    CHECK_EQ(feed_text("7"), GDB_PACKET);
    CHECK(!gdb_receiving(&receiver));
    CHECK_STR(receiver.data, "g");
    CHECK_EQ(feed_text("$#00"), GDB_PACKET);
    CHECK_EQ(receiver.len, 0);
    CHECK_EQ(feed_text("$m0,4#FD"), GDB_PACKET); /* capital and small digits */
}

UNIT_TEST(a_wrong_sum_is_damage)
{
    CHECK_EQ(feed_text("$g#68"), GDB_DAMAGED);
    CHECK_EQ(feed_text("$g#x7"), GDB_DAMAGED);
    CHECK_EQ(feed_text("$g#6 "), GDB_DAMAGED);
    CHECK_EQ(feed_text("$g#67"), GDB_PACKET);
}

UNIT_TEST(what_is_between_packets)
{
    CHECK_EQ(feed_text("+"), GDB_ACK);
    CHECK_EQ(feed_text("-"), GDB_NAK);
    CHECK_EQ(feed_text("\x03"), GDB_INTERRUPT);
    CHECK_EQ(feed_text("noise #67 }x"), GDB_NOTHING);
    CHECK_EQ(feed_text("\xff\x80$g#67"), GDB_PACKET);
}

UNIT_TEST(escapes_are_undone_and_count_in_the_sum)
{
    /* The two bytes } 0x03 stand for '#', and } ] for }. */
    CHECK_EQ(feed_text("$X}\x03}]#b2"), GDB_PACKET);
    CHECK_EQ(receiver.len, 3);
    CHECK_STR(receiver.data, "X#}");
}

UNIT_TEST(the_longest_packet_fits_and_no_longer_one)
{
    static char text[GDB_PACKET_MAX + 8];
    unsigned sum = (unsigned)'a' * GDB_PACKET_MAX & 0xff;

    text[0] = '$';
    memset(text + 1, 'a', GDB_PACKET_MAX);
    sprintf(text + 1 + GDB_PACKET_MAX, "#%02x", sum);
    CHECK_EQ(feed(text, GDB_PACKET_MAX + 4), GDB_PACKET);
    CHECK_EQ(receiver.len, GDB_PACKET_MAX);
    text[1 + GDB_PACKET_MAX] = 'a';
    sprintf(text + 2 + GDB_PACKET_MAX, "#%02x", (sum + 'a') & 0xff);
    CHECK_EQ(feed(text, GDB_PACKET_MAX + 5), GDB_TOO_LONG);
    CHECK_EQ(feed_text("$g#67"), GDB_PACKET);
}

UNIT_TEST(a_packet_without_end_is_no_trouble)
{
    feed_text("$");
    for (int i = 0; i < 5 * GDB_PACKET_MAX; i++)
        CHECK_EQ(gdb_receive(&receiver, '}'), GDB_NOTHING);
    CHECK_EQ(feed_text("$g#67"), GDB_PACKET);
}

/* ---- out ---- */

UNIT_TEST(what_is_put_comes_back)
{
    static const uint8_t all[] = "\x00\x03#$}*az\xff";
    static struct gdb_out out;
    size_t len;

    gdb_out_start(&out);
    CHECK(gdb_is_empty(&out));
    gdb_put_escaped(&out, all, sizeof(all));
    len = gdb_out_end(&out);
    CHECK(!out.is_cut);
    CHECK_EQ(feed(out.frame, len), GDB_PACKET);
    CHECK_EQ(receiver.len, sizeof(all));
    CHECK(memcmp(receiver.data, all, sizeof(all)) == 0);
}

UNIT_TEST(numbers_and_bytes)
{
    static struct gdb_out out;

    gdb_out_start(&out);
    gdb_put_number(&out, 0);
    gdb_put_text(&out, ",");
    gdb_put_number(&out, UINT64_MAX);
    gdb_put_text(&out, ",");
    gdb_put_number(&out, 0x1020);
    gdb_put_hex(&out, "\x01\xfe", 2);
    gdb_put_unknown(&out, 2);
    out.frame[out.len] = '\0';
    CHECK_STR(out.frame, "$0,ffffffffffffffff,102001fexxxx");
}

UNIT_TEST(what_does_not_fit_is_cut)
{
    static struct gdb_out out;

    gdb_out_start(&out);
    for (int i = 0; i < GDB_PACKET_MAX + 10; i++)
        gdb_put_text(&out, "x");
    CHECK(out.is_cut);
    CHECK_EQ(gdb_out_room(&out), 0);
    CHECK_EQ(gdb_out_end(&out), sizeof(out.frame));
}

UNIT_TEST(reading_numbers)
{
    const char *at = "1fG";
    uint64_t n = 7;

    CHECK(gdb_take_number(&at, &n));
    CHECK_EQ(n, 0x1f);
    CHECK_STR(at, "G");
    CHECK(!gdb_take_number(&at, &n));
    CHECK(gdb_take_char(&at, 'G'));
    CHECK(!gdb_take_char(&at, 'G'));
    at = "ffffffffffffffff";
    CHECK(gdb_take_number(&at, &n) && n == UINT64_MAX);
    at = "10000000000000000";
    CHECK(!gdb_take_number(&at, &n));
    CHECK_STR(at, "10000000000000000");
}

UNIT_TEST(reading_bytes_and_words)
{
    const char *at = "01feF";
    uint8_t bytes[4];

    CHECK_EQ(gdb_take_hex(&at, bytes, 4), 2);
    CHECK_BYTES(bytes, "01 fe");
    CHECK_STR(at, "F");
    at = "0102";
    CHECK_EQ(gdb_take_hex(&at, bytes, 1), 1);
    CHECK_STR(at, "02");
    at = "vCont?";
    CHECK(!gdb_take_word(&at, "vCont;"));
    CHECK(gdb_take_word(&at, "vCont"));
    CHECK_STR(at, "?");
}

UNIT_TESTS_BETWEEN(start, NULL)
