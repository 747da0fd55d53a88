/* test_glob.c - compares glob_match() with the host's fnmatch(), and tests the cases in
 * which they differ.
 */
#include "libc/include/extra.h"
#include "tests/unit/libc_ours.h"
#include "tests/unit/unit.h"

#include <fnmatch.h>

UNIT_TEST(stars_and_question_marks)
{
    CHECK(glob_match("*", ""));
    CHECK(glob_match("*", "anything"));
    CHECK(glob_match("vfs_*", "vfs_"));
    CHECK(glob_match("*_read", "vfs_read"));
    CHECK(glob_match("a*b*c", "aXbXbXc"));
    CHECK(!glob_match("a*b*c", "aXcXb"));
    CHECK(glob_match("?fs", "vfs"));
    CHECK(!glob_match("?fs", "fs"));
    CHECK(glob_match("**x", "yyx"));
}

UNIT_TEST(sets)
{
    CHECK(glob_match("[a-c]x", "bx"));
    CHECK(!glob_match("[a-c]x", "dx"));
    CHECK(glob_match("[!a-c]x", "dx"));
    CHECK(glob_match("[^a-c]x", "dx"));
    CHECK(!glob_match("[!a-c]x", "ax"));
    CHECK(glob_match("[]a]", "]"));
    CHECK(glob_match("[!]a]", "b"));
    CHECK(glob_match("[a-]", "-"));
    CHECK(glob_match("*[0-9]", "isra.0"));
}

UNIT_TEST(what_is_no_set_is_text)
{
    CHECK(glob_match("[", "["));
    CHECK(glob_match("a[b", "a[b"));
    CHECK(glob_match("\\*", "*"));
    CHECK(!glob_match("\\*", "x"));
    CHECK(glob_match("\\[a]", "[a]"));
    CHECK(glob_match("x\\", "x\\"));
}

UNIT_TEST(bytes_above_ascii_are_in_ranges)
{
    CHECK(glob_match("[\x80-\xff]", "\xc3"));
    CHECK(!glob_match("[a-z]", "\xc3"));
}

/* With so few different letters, a pattern often matches a text, or nearly does. */
UNIT_TEST(random_patterns_match_as_on_the_host)
{
    static const char in_pattern[] = "ab*?[]!-", in_text[] = "ab-]";

    for (int i = 0; i < 300000; i++) {
        char pattern[12] = "", text[12] = "";

        for (size_t n = unit_random() % 9, k = 0; k < n; k++)
            pattern[k] = in_pattern[unit_random() % (sizeof(in_pattern) - 1)];
        for (size_t n = unit_random() % 9, k = 0; k < n; k++)
            text[k] = in_text[unit_random() % (sizeof(in_text) - 1)];
        CHECK(glob_match(pattern, text) == !fnmatch(pattern, text, 0));
        if (glob_match(pattern, text) != !fnmatch(pattern, text, 0)) {
            unit_note("'%s' and '%s'", pattern, text);
            return;
        }
    }
}

UNIT_TESTS()
