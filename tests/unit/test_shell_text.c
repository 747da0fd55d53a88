/* test_shell_text.c - tests of the commands that filter text: patterns, counting,
 * sorting.
 */
#include "kernel/console/shell_text.h"
#include "tests/unit/fake_kernel.h"
#include "tests/unit/unit.h"

#include <regex.h>

static struct text text_of(const char *s)
{
    return (struct text){ s, strlen(s) };
}

static bool matches(const char *source, const char *line)
{
    struct pattern p;

    CHECK_EQ(pattern_parse(source, false, &p), 0);
    return pattern_matches(&p, text_of(line));
}

UNIT_TEST(pattern_signs_have_their_meaning)
{
    CHECK(matches("a.c", "xabcx"));
    CHECK(!matches("a.c", "ac"));
    CHECK(matches("ab*c", "ac"));
    CHECK(matches("ab*c", "abbbc"));
    CHECK(matches("^a.*z$", "abcz"));
    CHECK(!matches("^b", "abc"));
    CHECK(!matches("b$", "abc"));
    CHECK(matches("^$", ""));
    CHECK(!matches("^$", "a"));
    CHECK(matches("a\\.c", "a.c"));
    CHECK(!matches("a\\.c", "abc"));
    CHECK(matches("\\^", "a^b"));
    CHECK(matches("a$b", "a$b"));
    CHECK(matches("vfs_read+0x", "vfs_read+0x10"));
}

UNIT_TEST(case_can_be_ignored)
{
    struct pattern p;

    CHECK_EQ(pattern_parse("VfS_", true, &p), 0);
    CHECK(pattern_matches(&p, text_of("x vFs_read")));
    CHECK(!pattern_matches(&p, text_of("x vFsread")));
}

UNIT_TEST(long_patterns_are_refused)
{
    char source[PATTERN_MAX + 2];
    struct pattern p;

    memset(source, 'a', sizeof(source));
    source[PATTERN_MAX] = '\0';
    CHECK_EQ(pattern_parse(source, false, &p), 0);
    CHECK(pattern_matches(&p, text_of(source)));
    source[PATTERN_MAX] = 'a';
    source[PATTERN_MAX + 1] = '\0';
    CHECK_EQ(pattern_parse(source, false, &p), -E2BIG);
}

/* Matches are compared with the host's regular expressions. */
UNIT_TEST(random_patterns_agree_with_the_host)
{
    static const char letters[] = "aab.*";

    for (int i = 0; i < 20000; i++) {
        char source[10], line[12];
        size_t len = unit_random() % 8, line_len = unit_random() % 11;
        regex_t judge;

        for (size_t k = 0; k < len; k++)
            source[k] = letters[unit_random() % 5];
        source[len] = '\0';
        if (len > 0 && unit_random() % 4 == 0)
            source[0] = '^';
        if (len > 1 && unit_random() % 4 == 0)
            source[len - 1] = '$';
        for (size_t k = 0; k < line_len; k++)
            line[k] = "ab"[unit_random() % 2];
        line[line_len] = '\0';
        if (source[0] == '*' || strstr(source, "**") || strstr(source, "^*"))
            continue; /* programs differ in what such a pattern means */
        CHECK_EQ(regcomp(&judge, source, REG_NOSUB), 0);
        if (matches(source, line) != (regexec(&judge, line, 0, NULL, 0) == 0)) {
            unit_note("pattern %s, line %s", source, line);
            CHECK(!"agree");
        }
        regfree(&judge);
    }
}

static const char *shown(struct seq *s)
{
    static char text[256];

    snprintf(text, sizeof(text), "%s", seq_str(s));
    seq_free(s);
    return text;
}

UNIT_TEST(grep_selects_and_counts)
{
    struct pattern p;
    struct seq s;

    seq_init(&s, NULL, NULL);
    CHECK_EQ(pattern_parse("b", false, &p), 0);
    CHECK_EQ(text_grep(&s, text_of("abc\nx\n\nb"), &p, false), 2);
    CHECK_STR(shown(&s), "abc\nb\n");
    CHECK_EQ(text_grep(&s, text_of("abc\nx\n\nb"), &p, true), 2);
    CHECK_STR(shown(&s), "x\n\n");
    CHECK_EQ(text_grep(NULL, text_of("b\nb\n"), &p, false), 2);
}

UNIT_TEST(head_and_tail_cut)
{
    struct seq s;

    seq_init(&s, NULL, NULL);
    text_head(&s, text_of("1\n2\n3\n"), 2);
    CHECK_STR(shown(&s), "1\n2\n");
    text_head(&s, text_of("1\n2"), 5);
    CHECK_STR(shown(&s), "1\n2\n");
    text_tail(&s, text_of("1\n2\n3\n"), 2);
    CHECK_STR(shown(&s), "2\n3\n");
    text_tail(&s, text_of("1\n2\n3"), 1);
    CHECK_STR(shown(&s), "3\n");
    text_tail(&s, text_of("1\n2\n"), 0);
    CHECK_STR(shown(&s), "");
    text_tail(&s, text_of("1\n2\n"), SIZE_MAX);
    CHECK_STR(shown(&s), "1\n2\n");
}

UNIT_TEST(counting_counts)
{
    struct text_counts c;

    text_count(text_of("one two\n\n three\t4"), &c);
    CHECK_EQ(c.lines, 3);
    CHECK_EQ(c.words, 4);
    CHECK_EQ(c.bytes, 17);
    text_count(text_of(""), &c);
    CHECK(c.lines == 0 && c.words == 0 && c.bytes == 0);
}

static const char *sorted(const char *in, unsigned flags)
{
    struct seq s;

    seq_init(&s, NULL, NULL);
    CHECK_EQ(text_sort(&s, text_of(in), flags), 0);
    return shown(&s);
}

UNIT_TEST(sorting_sorts)
{
    CHECK_STR(sorted("b\na\nab\n\nb", 0), "\na\nab\nb\nb\n");
    CHECK_STR(sorted("b\na\nb\n", TEXT_SORT_UNIQUE), "a\nb\n");
    CHECK_STR(sorted("b\na\nb\n", TEXT_SORT_UNIQUE | TEXT_SORT_REVERSE), "b\na\n");
    CHECK_STR(sorted("10 x\n9 y\n-1\nz\n", TEXT_SORT_NUMBERS), "-1\nz\n9 y\n10 x\n");
    CHECK_STR(sorted("1\n3\n2\n", TEXT_SORT_NUMBERS | TEXT_SORT_REVERSE), "3\n2\n1\n");
    CHECK_STR(sorted("", 0), "");
}

UNIT_TEST(sorting_without_memory_fails)
{
    struct seq s;

    seq_init(&s, NULL, NULL);
    fake_heap_fail_after(1);
    CHECK_EQ(text_sort(&s, text_of("b\na\n"), 0), -ENOMEM);
    fake_heap_fail_after(0);
    CHECK_EQ(fake_heap_blocks(), 0);
}

UNIT_TESTS()
