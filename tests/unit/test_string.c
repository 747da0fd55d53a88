/* test_string.c - compares libc/string.c with the host's functions, at the ends of
 * readable memory.
 */
#include "tests/unit/guard.h"
#include "tests/unit/libc_ours.h"
#include "tests/unit/unit.h"

enum { ROUNDS = 20000, AREA = 200 };

static size_t random_below(size_t limit)
{
    return (size_t)(unit_random() % limit);
}

static void bytes_fill(uint8_t *area, size_t len)
{
    for (size_t i = 0; i < len; i++)
        area[i] = (uint8_t)unit_random();
}

/* string_fill - fill @s with a random string of at most @max characters. There are only
 * six different characters, so that matches are common.
 */
static size_t string_fill(char *s, size_t max)
{
    static const char kinds[] = { 'a', 'b', 'c', '.', (char)0x80, (char)0xff };
    size_t len = random_below(max + 1);

    for (size_t i = 0; i < len; i++)
        s[i] = kinds[random_below(sizeof(kinds))];
    s[len] = '\0';
    return len;
}

static int sign(int x)
{
    return (x > 0) - (x < 0);
}

UNIT_TEST(memcpy_and_memset_write_exactly_their_bytes)
{
    uint8_t want[AREA], got[AREA], src[AREA];

    for (int round = 0; round < ROUNDS; round++) {
        size_t at = random_below(AREA), from = random_below(AREA);
        size_t len = random_below(AREA - (at > from ? at : from) + 1);
        int byte = (int)unit_random();

        bytes_fill(src, AREA);
        bytes_fill(want, AREA);
        memcpy(got, want, AREA);
        memcpy(want + at, src + from, len);
        CHECK(our_memcpy(got + at, src + from, len) == got + at);
        CHECK(memcmp(got, want, AREA) == 0);
        memset(want + at, byte, len);
        CHECK(our_memset(got + at, byte, len) == got + at);
        CHECK(memcmp(got, want, AREA) == 0);
    }
}

UNIT_TEST(memmove_copies_overlapping_bytes_both_ways)
{
    uint8_t want[AREA], got[AREA];

    for (int round = 0; round < ROUNDS; round++) {
        size_t at = random_below(AREA), from = random_below(AREA);
        size_t len = random_below(AREA - (at > from ? at : from) + 1);

        bytes_fill(want, AREA);
        memcpy(got, want, AREA);
        memmove(want + at, want + from, len);
        CHECK(our_memmove(got + at, got + from, len) == got + at);
        CHECK(memcmp(got, want, AREA) == 0);
    }
}

UNIT_TEST(copies_stay_between_the_guard_pages)
{
    uint8_t *a = guard_map(), *b = guard_map();

    bytes_fill(a, GUARD_MAX);
    our_memcpy(b, a, GUARD_MAX);
    CHECK(memcmp(a, b, GUARD_MAX) == 0);
    for (size_t len = 0; len < 40; len++) {
        our_memset(guard_tail(b, len), 0x5a, len);
        CHECK(our_memcmp(guard_tail(a, len), guard_tail(b, len), len) != 0 || len == 0);
        our_memmove(guard_tail(b, len), guard_tail(a, len), len);
        CHECK(our_memcmp(guard_tail(a, len), guard_tail(b, len), len) == 0);
        our_memcpy(b, a, len);
        our_memmove(b + (len ? 1 : 0), b, len);
        CHECK(memcmp(b + (len ? 1 : 0), a, len) == 0);
    }
}

UNIT_TEST(memcmp_and_memchr_answer_as_the_hosts)
{
    uint8_t *a = guard_map(), *b = guard_map();

    for (int round = 0; round < ROUNDS; round++) {
        size_t len = random_below(50);
        uint8_t *x = guard_tail(a, len), *y = guard_tail(b, len);
        int byte = (int)unit_random();

        bytes_fill(x, len);
        memcpy(y, x, len);
        if (len && random_below(3))
            y[random_below(len)] = (uint8_t)unit_random();
        if (len && random_below(2))
            byte = x[random_below(len)] | (int)0xabcdef00u;
        CHECK_EQ(sign(our_memcmp(x, y, len)), sign(memcmp(x, y, len)));
        CHECK(our_memchr(x, byte, len) == memchr(x, byte, len));
    }
}

UNIT_TEST(lengths_and_comparisons_answer_as_the_hosts)
{
    uint8_t *a = guard_map(), *b = guard_map();
    char s[48], t[48];

    for (int round = 0; round < ROUNDS; round++) {
        size_t len = string_fill(s, 40), max = random_below(50);
        const char *x, *y;

        if (random_below(2)) {
            string_fill(t, 40);
        } else {
            strcpy(t, s);
            t[random_below(len + 1)] = random_below(2) ? '\0' : 'b';
            t[len] = '\0';
        }
        x = guard_string(a, s);
        y = guard_string(b, t);
        CHECK_EQ(our_strlen(x), len);
        CHECK_EQ(our_strnlen(x, max), len < max ? len : max);
        CHECK_EQ(sign(our_strcmp(x, y)), sign(strcmp(x, y)));
        CHECK_EQ(sign(our_strncmp(x, y, max)), sign(strncmp(x, y, max)));
    }
}

UNIT_TEST(bytes_compare_as_unsigned)
{
    CHECK(our_strcmp("\x80", "\x7f") > 0);
    CHECK(our_strncmp("\x80", "\x7f", 1) > 0);
    CHECK(our_memcmp("\x80", "\x7f", 1) > 0);
}

UNIT_TEST(counted_functions_need_no_nul)
{
    uint8_t *a = guard_map(), *b = guard_map();
    char *x = memcpy(guard_tail(a, 4), "same", 4);
    char *y = memcpy(guard_tail(b, 4), "same", 4);

    CHECK_EQ(our_strnlen(x, 4), 4);
    CHECK_EQ(our_strncmp(x, y, 4), 0);
    CHECK_EQ(our_strncmp(x, "other", 0), 0);
}

UNIT_TEST(searches_find_what_the_hosts_find)
{
    uint8_t *a = guard_map(), *b = guard_map();
    char s[48], t[8];

    for (int round = 0; round < ROUNDS; round++) {
        const char *x, *set;
        int c;

        string_fill(s, 40);
        string_fill(t, 4);
        x = guard_string(a, s);
        set = guard_string(b, t);
        c = random_below(4) ? set[0] : (int)unit_random();
        CHECK(our_strchr(x, c) == strchr(x, c));
        CHECK(our_strrchr(x, c) == strrchr(x, c));
        CHECK(our_strstr(x, set) == strstr(x, set));
        CHECK(our_strpbrk(x, set) == strpbrk(x, set));
        CHECK_EQ(our_strspn(x, set), strspn(x, set));
        CHECK_EQ(our_strcspn(x, set), strcspn(x, set));
    }
}

UNIT_TEST(the_empty_string_is_found_at_once)
{
    CHECK_STR(our_strstr("text", ""), "text");
    CHECK_STR(our_strstr("", ""), "");
    CHECK(our_strstr("", "a") == NULL);
    CHECK_STR(our_strchr("text", '\0'), "");
    CHECK_STR(our_strrchr("text", '\0'), "");
    CHECK(our_strpbrk("text", "") == NULL);
    CHECK_EQ(our_strspn("text", ""), 0);
    CHECK_EQ(our_strcspn("text", ""), 4);
}

UNIT_TEST(strcpy_copies_the_nul_as_well)
{
    uint8_t *a = guard_map(), *b = guard_map();
    char s[48];

    for (int round = 0; round < ROUNDS; round++) {
        size_t len = string_fill(s, 40);
        const char *x = guard_string(a, s);
        char *exact = guard_tail(b, len + 1);

        memset(exact, '#', len + 1);
        CHECK(our_strcpy(exact, x) == exact);
        CHECK(strcmp(exact, s) == 0);
    }
}

UNIT_TEST(strlcpy_cuts_and_tells_the_whole_length)
{
    char buf[8];

    memset(buf, '#', sizeof(buf));
    CHECK_EQ(strlcpy(buf, "probe", 0), 5);
    CHECK_EQ(buf[0], '#');
    CHECK_EQ(strlcpy(buf, "probe", 1), 5);
    CHECK_BYTES((uint8_t *)buf, "00 23");
    CHECK_EQ(strlcpy(buf, "probe", 5), 5);
    CHECK_STR(buf, "prob");
    CHECK_EQ(buf[5], '#');
    CHECK_EQ(strlcpy(buf, "probe", 6), 5);
    CHECK_STR(buf, "probe");
    CHECK_EQ(buf[6], '#');
    CHECK_EQ(strlcpy(buf, "", 8), 0);
    CHECK_STR(buf, "");
    CHECK_EQ(buf[1], 'r');
}

UNIT_TEST(strlcat_cuts_and_tells_the_whole_length)
{
    char buf[8] = "ab";

    CHECK_EQ(strlcat(buf, "cd", sizeof(buf)), 4);
    CHECK_STR(buf, "abcd");
    CHECK_EQ(strlcat(buf, "efghi", sizeof(buf)), 9);
    CHECK_STR(buf, "abcdefg");
    CHECK_EQ(strlcat(buf, "x", sizeof(buf)), 8);
    CHECK_STR(buf, "abcdefg");
}

UNIT_TEST(strlcat_leaves_a_buffer_without_nul_alone)
{
    uint8_t *map = guard_map();
    char *full = memcpy(guard_tail(map, 4), "full", 4);

    CHECK_EQ(strlcat(full, "er", 4), 6);
    CHECK(memcmp(full, "full", 4) == 0);
    CHECK_EQ(strlcat(full, "er", 0), 2);
    CHECK(memcmp(full, "full", 4) == 0);
}

UNIT_TEST(strsep_cuts_fields_as_the_hosts)
{
    char s[48], delims[8], want_text[48], got_text[48];

    for (int round = 0; round < ROUNDS; round++) {
        char *want_rest = want_text, *got_rest = got_text;

        string_fill(s, 40);
        string_fill(delims, 2);
        memset(want_text, 0, sizeof(want_text));
        memset(got_text, 0, sizeof(got_text));
        strcpy(want_text, s);
        strcpy(got_text, s);
        while (want_rest) {
            char *want = strsep(&want_rest, delims);
            char *got = our_strsep(&got_rest, delims);

            CHECK(got && got - got_text == want - want_text);
            CHECK((got_rest == NULL) == (want_rest == NULL));
            if (!got_rest)
                break;
        }
        CHECK(our_strsep(&got_rest, delims) == NULL);
        CHECK(memcmp(got_text, want_text, sizeof(got_text)) == 0);
    }
}

UNIT_TESTS()
