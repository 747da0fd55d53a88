/* test_shell_machine.c - tests of the requests and replies that tools use, byte by
 * byte.
 */
#include "kernel/console/shell_machine.h"
#include "tests/unit/fake_kernel.h"
#include "tests/unit/unit.h"

static struct machine_request request;

static int parse(const char *line)
{
    static char copy[256];

    snprintf(copy, sizeof(copy), "%s", line);
    return machine_parse(copy, strlen(copy), &request);
}

UNIT_TEST(a_request_is_tag_and_command)
{
    CHECK_EQ(parse("@1 cat /proc/version"), 0);
    CHECK_STR(request.tag, "1");
    CHECK_STR(request.command, "cat /proc/version");
    CHECK_EQ(parse("@0042  ls "), 0);
    CHECK_STR(request.tag, "0042");
    CHECK_STR(request.command, " ls ");
    CHECK_EQ(parse("@12345678901234567890 "), 0);
    CHECK_STR(request.command, "");
}

UNIT_TEST(what_is_no_request_is_refused)
{
    CHECK_EQ(parse("1 ls"), -EINVAL);
    CHECK_EQ(parse("@"), -EINVAL);
    CHECK_EQ(parse("@ ls"), -EINVAL);
    CHECK_EQ(parse("@1"), -EINVAL);
    CHECK_EQ(parse("@1ls"), -EINVAL);
    CHECK_EQ(parse("@x1 ls"), -EINVAL);
    CHECK_EQ(parse("@-1 ls"), -EINVAL);
    CHECK_EQ(parse("@123456789012345678901 ls"), -EINVAL);
}

UNIT_TEST(a_nul_in_a_request_is_found)
{
    char line[] = "@7 echo\0 a";

    CHECK_EQ(machine_parse(line, sizeof(line) - 1, &request), -EILSEQ);
    CHECK_STR(request.tag, "7");
}

static const char *reply(char kind, const char *text, size_t len)
{
    static char copy[256];
    struct seq s;

    seq_init(&s, NULL, NULL);
    machine_format_line(&s, "9", kind, text, len);
    snprintf(copy, sizeof(copy), "%s", seq_str(&s));
    seq_free(&s);
    return copy;
}

UNIT_TEST(reply_lines_are_escaped)
{
    CHECK_STR(reply('|', "plain text", 10), "#9|plain text\n");
    CHECK_STR(reply('|', "", 0), "#9|\n");
    CHECK_STR(reply('~', "a\tb", 3), "#9~a\tb\n");
    CHECK_STR(reply('|', "\\", 1), "#9|\\\\\n");
    CHECK_STR(reply('|', "\0\r\n\033\177\377 ~", 8),
              "#9|\\x00\\x0d\\x0a\\x1b\\x7f\\xff ~\n");
}

UNIT_TEST(every_byte_comes_back)
{
    char all[256], back[4 * 256 + 1];
    struct seq s;

    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    seq_init(&s, NULL, NULL);
    machine_escape(&s, all, '\\');
    machine_escape(&s, all + '\\' + 1, sizeof(all) - '\\' - 1);
    CHECK_EQ(machine_unescape(back, seq_str(&s)), 255);
    CHECK_EQ(memcmp(back, all, '\\'), 0);
    CHECK_EQ(memcmp(back + '\\', all + '\\' + 1, sizeof(all) - '\\' - 1), 0);
    seq_free(&s);
}

UNIT_TEST(a_status_is_number_and_name)
{
    char buf[MACHINE_STATUS_MAX];

    CHECK_EQ(machine_format_status(buf, "12", 0), 9);
    CHECK_STR(buf, "#12=0 OK\n");
    machine_format_status(buf, "12345678901234567890", -EADDRNOTAVAIL);
    CHECK_STR(buf, "#12345678901234567890=99 EADDRNOTAVAIL\n");
}

static const char *unescaped(const char *text)
{
    static char out[64];
    char *copy = strdup(text); /* the sanitizer catches accesses behind the text */

    out[machine_unescape(out, copy)] = '\0';
    free(copy);
    return out;
}

UNIT_TEST(only_hex_escapes_are_special)
{
    CHECK_STR(unescaped("a\\x41b"), "aAb");
    CHECK_STR(unescaped("\\x5c\\x27\\x7A\\x7a"), "\\'zz");
    CHECK_STR(unescaped("a\\nb\\\\t\\"), "a\\nb\\\\t\\");
    CHECK_STR(unescaped("\\x4"), "\\x4");
    CHECK_STR(unescaped("\\x"), "\\x");
    CHECK_STR(unescaped("\\x4g\\xg4"), "\\x4g\\xg4");
    CHECK_STR(unescaped("$\",#>!*;"), "$\",#>!*;");
    CHECK_EQ(machine_unescape((char[8]){ 0 }, "\\x00\\x00"), 2);
}

UNIT_TESTS()
