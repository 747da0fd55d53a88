/* test_shell_line.c - tests of the line editor with the bytes that terminals send. */
#include "kernel/console/shell_line.h"
#include "tests/unit/fake_kernel.h"
#include "tests/unit/unit.h"

#define SIZE 200
#define UP "\033[A"
#define DOWN "\033[B"
#define RIGHT "\033[C"
#define LEFT "\033[D"

static char buffer[SIZE + 1];
static struct line_editor ed;

static void set_up(void)
{
    history_free(&ed.history);
    line_init(&ed, buffer, SIZE, true);
}

/* type - feed @bytes to the editor. Return: the last event that is not LINE_MORE, or
 * LINE_MORE.
 */
static enum line_event type(const char *bytes)
{
    enum line_event last = LINE_MORE;

    for (; *bytes; bytes++) {
        enum line_event event = line_put_byte(&ed, *bytes);

        if (event != LINE_MORE)
            last = event;
    }
    return last;
}

/* edited - return the line that the keys @bytes make. */
static const char *edited(const char *bytes)
{
    line_reset(&ed);
    type(bytes);
    CHECK_EQ(ed.text[ed.len], 0);
    CHECK_EQ(strlen(ed.text), ed.len);
    CHECK(ed.cursor <= ed.len);
    return ed.text;
}

static void enter(const char *line)
{
    line_reset(&ed);
    type(line);
    history_add(&ed.history, ed.text);
}

static const char *drawn(void)
{
    static char text[1000];
    struct seq out;

    seq_init(&out, NULL, NULL);
    line_draw(&ed, "> ", &out);
    snprintf(text, sizeof(text), "%s", seq_str(&out));
    seq_free(&out);
    return text;
}

UNIT_TEST(typing_appends_and_enter_ends)
{
    CHECK_EQ(type("help"), LINE_MORE);
    CHECK_EQ(type("\r"), LINE_DONE);
    CHECK_STR(ed.text, "help");
    line_reset(&ed);
    CHECK_EQ(type("\n"), LINE_MORE); /* belongs to the \r in front of it */
    CHECK_EQ(type("\n"), LINE_DONE);
}

UNIT_TEST(arrows_home_and_end_move)
{
    CHECK_STR(edited("acd" LEFT LEFT "b"), "abcd");
    CHECK_STR(edited("bc\033[Ha\033[Fd"), "abcd");
    CHECK_STR(edited("bc\033[1~a\033[4~d"), "abcd");
    CHECK_STR(edited("bc\033OHa\033OFd"), "abcd");
    CHECK_STR(edited("bc\001a\005d"), "abcd");
    CHECK_STR(edited("bd\002c\001a\006\006X"), "abcXd");
    CHECK_STR(edited(LEFT "a" RIGHT RIGHT "b"), "ab");
}

UNIT_TEST(deleting_works_on_both_sides_of_the_cursor)
{
    CHECK_STR(edited("abc\177"), "ab");
    CHECK_STR(edited("abc\b\b\b\b\b"), "");
    CHECK_STR(edited("abc" LEFT LEFT "\177"), "bc");
    CHECK_STR(edited("abc" LEFT LEFT "\033[3~"), "ac");
    CHECK_STR(edited("abc\033[3~"), "abc");
    CHECK_STR(edited("abc\001\004"), "bc");
}

UNIT_TEST(control_u_k_and_w_kill)
{
    CHECK_STR(edited("one two" LEFT LEFT "\025"), "wo");
    CHECK_STR(edited("one two" LEFT LEFT "\013"), "one t");
    CHECK_STR(edited("one two\027"), "one ");
    CHECK_STR(edited("one two  \027"), "one ");
    CHECK_STR(edited("one two\027\027\027"), "");
}

UNIT_TEST(history_goes_up_and_down_and_keeps_the_draft)
{
    enter("first");
    enter("second");
    enter("second");
    CHECK_STR(edited(UP), "second");
    CHECK_STR(edited(UP UP), "first");
    CHECK_STR(edited(UP UP UP UP), "first");
    CHECK_STR(edited("dra\020\020\016\016ft"), "draft");
    CHECK_STR(edited("x" DOWN), "x");
}

UNIT_TEST(history_is_bounded_and_survives_without_memory)
{
    char line[32];

    for (int i = 0; i < HISTORY_MAX + 10; i++) {
        snprintf(line, sizeof(line), "line %d", i);
        enter(line);
    }
    CHECK_EQ(ed.history.count, HISTORY_MAX);
    fake_heap_fail_after(1);
    enter("lost");
    CHECK_STR(edited("keep" UP), "keep");
    fake_heap_fail_after(0);
    CHECK_STR(edited("keep" UP), "line 73");
    history_free(&ed.history);
    CHECK_EQ(fake_heap_blocks(), 0);
}

UNIT_TEST(control_keys_are_reported)
{
    CHECK_EQ(type("abc\003"), LINE_CANCEL);
    line_reset(&ed);
    CHECK_EQ(type("\004"), LINE_END);
    CHECK_EQ(type("a\004"), LINE_MORE);
    CHECK_EQ(type("\t"), LINE_COMPLETE);
    CHECK_EQ(ed.tabs, 1);
    CHECK_EQ(type("\t"), LINE_COMPLETE);
    CHECK_EQ(ed.tabs, 2);
    type("x");
    CHECK_EQ(ed.tabs, 0);
    CHECK_EQ(type("\014"), LINE_CLEAR);
    CHECK_STR(ed.text, "ax");
}

UNIT_TEST(unknown_sequences_do_nothing)
{
    CHECK_STR(edited("a\033[99~b\033[1;5Zc\033Zd\033[?25he"), "abcde");
    CHECK_STR(edited("ab\033[1;5Dc"), "acb");  /* Ctrl-left counts as left */
    CHECK_STR(edited("ab\033[\rc"), "abc");    /* Enter ends a sequence */
    CHECK_STR(edited("ab\033\033[Dc"), "acb"); /* another sequence ends it, too */
}

UNIT_TEST(requests_are_not_edited)
{
    CHECK_EQ(type("@1 a\tb\004\033[D\177\\x\r"), LINE_DONE);
    CHECK(ed.raw);
    CHECK_STR(ed.text, "@1 a\tb\004\033[D\177\\x");
    CHECK_STR(drawn(), "");
    line_reset(&ed);
    CHECK(!ed.raw);
    CHECK_EQ(type("\n"), LINE_MORE); /* it belongs to the CR */
    CHECK_EQ(type("@1 a\n"), LINE_DONE);
    CHECK_STR(ed.text, "@1 a");
    line_reset(&ed);
    CHECK_EQ(type("@1 a\003"), LINE_CANCEL);
    line_reset(&ed);
    CHECK(!ed.raw);
    CHECK_STR(edited("a@b" LEFT "\177"), "ab");
}

UNIT_TEST(lines_without_requests_take_the_at_sign_as_text)
{
    ed.takes_raw = false;
    CHECK_STR(edited("@1\177"), "@");
}

UNIT_TEST(too_much_is_counted_and_not_kept)
{
    for (int i = 0; i < SIZE + 5; i++)
        type("x");
    CHECK_EQ(ed.len, SIZE);
    CHECK_EQ(ed.lost, 5);
    CHECK_EQ(type("\177"), LINE_MORE);
    CHECK_EQ(ed.lost, 5);
    CHECK_EQ(type("\025short\r"), LINE_DONE); /* Ctrl-U */
    CHECK_EQ(ed.lost, 0);
    CHECK_STR(ed.text, "short");
}

UNIT_TEST(drawing_writes_only_what_is_new)
{
    type("ab");
    CHECK_STR(drawn(), "ab");
    CHECK_STR(drawn(), "");
    type("x\177");
    CHECK_STR(drawn(), "\r> ab\033[K");
    type("c");
    CHECK_STR(drawn(), "c");
    type(LEFT "x");
    CHECK_STR(drawn(), "\r> abxc\033[K\033[1D");
    type("\005\177");
    CHECK_STR(drawn(), "\r> abx\033[K");
    type("y");
    CHECK_STR(drawn(), "y");
    type("\t\377");
    CHECK_STR(drawn(), "?");
    type("\022");
    CHECK_STR(drawn(), "\r> abxy?\033[K");
}

UNIT_TEST(a_long_line_is_seen_through_a_window)
{
    char want[200];

    for (int i = 0; i < 100; i++)
        type(i < 50 ? "a" : "b");
    snprintf(want, sizeof(want), "\r> %.27s%.50s\033[K",
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
             "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    CHECK_STR(drawn(), want);
    type("\001");
    snprintf(want, sizeof(want), "\r> %.50s%.27s\033[K\033[77D",
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
             "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    CHECK_STR(drawn(), want);
}

UNIT_TEST(random_bytes_keep_the_editor_sound)
{
    for (int i = 0; i < 200000; i++) {
        char byte = (char)unit_random();

        if (line_put_byte(&ed, byte) == LINE_DONE) {
            history_add(&ed.history, ed.text);
            line_reset(&ed);
        }
        if (i % 64 == 0)
            drawn();
        if (ed.len > SIZE || ed.cursor > ed.len || ed.text[ed.len]) {
            CHECK(!"sound");
            break;
        }
    }
    history_free(&ed.history);
    CHECK_EQ(fake_heap_blocks(), 0);
}

UNIT_TESTS_BETWEEN(set_up, NULL)
