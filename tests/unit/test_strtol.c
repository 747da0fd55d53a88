/* test_strtol.c - tests of libc/strtol.c: the standard functions as on the host, and our
 * strict functions.
 */
#include "tests/unit/guard.h"
#include "tests/unit/libc_ours.h"
#include "tests/unit/unit.h"

#include <limits.h>

enum { ROUNDS = 100000 };

static void check_as_host(const char *s, int base)
{
    char *got, *want;

    CHECK_EQ(our_strtol(s, &got, base), strtol(s, &want, base));
    CHECK(got == want);
    CHECK_EQ(our_strtoll(s, &got, base), strtoll(s, &want, base));
    CHECK(got == want);
    CHECK_EQ(our_strtoul(s, &got, base), strtoul(s, &want, base));
    CHECK(got == want);
    CHECK_EQ(our_strtoull(s, &got, base), strtoull(s, &want, base));
    CHECK(got == want);
}

UNIT_TEST(well_known_texts_are_read_as_by_the_host)
{
    static const char *const texts[] = {
        "",
        " ",
        "-",
        "+",
        "0",
        "-0",
        "00",
        "08",
        "0x",
        "0xg",
        "0x1g",
        "0X1f",
        "-0x10",
        "1 2",
        " \t\n\v\f\r 42",
        "--1",
        "+-1",
        "+7",
        "0x-1",
        "- 1",
        "z",
        "Zz",
        "0b11",
        "2147483647",
        "2147483648",
        "-2147483648",
        "-2147483649",
        "4294967295",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "-18446744073709551615",
        "-18446744073709551616",
        "99999999999999999999999",
        "-99999999999999999999999",
        "0xffffffffffffffff",
        "0x10000000000000000",
        "01777777777777777777777",
        "02000000000000000000000",
        "1e5",
        "12\x80",
        "\xb2",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (int base = 0; base <= 36; base += base ? 1 : 2)
            check_as_host(texts[i], base);
}

UNIT_TEST(random_texts_are_read_as_by_the_host)
{
    static const char kinds[] = "0123456789abcdefxXzZ+- \t";
    uint8_t *map = guard_map();
    char s[32];

    for (int round = 0; round < ROUNDS; round++) {
        size_t len = unit_random() % 26, kind_count = 2 + unit_random() % 22;
        int base = (int)(unit_random() % 36);

        for (size_t i = 0; i < len; i++)
            s[i] = kinds[unit_random() % kind_count];
        if (len && unit_random() % 4 == 0)
            s[0] = kinds[20 + unit_random() % 4];
        s[len] = '\0';
        check_as_host(guard_string(map, s), base == 1 ? 36 : base);
    }
}

UNIT_TEST(a_base_that_does_not_exist_finds_no_number)
{
    static const int bases[] = { 1, -1, 37, INT_MAX, INT_MIN };
    const char *s = "101";

    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        char *end = NULL;
        uint64_t out;

        CHECK_EQ(our_strtol(s, &end, bases[i]), 0);
        CHECK(end == s);
        CHECK_EQ(our_strtoul(s, &end, bases[i]), 0);
        CHECK(end == s);
        CHECK_EQ(parse_u64(s, bases[i], &out), -EINVAL);
    }
}

UNIT_TEST(the_end_may_be_left_out)
{
    CHECK_EQ(our_strtol("-12x", NULL, 10), -12);
    CHECK_EQ(our_strtoul("12x", NULL, 10), 12);
}

static void check_u64(const char *s, int base, uint64_t want)
{
    uint64_t got = ~want;

    CHECK_EQ(parse_u64(s, base, &got), 0);
    CHECK_EQ(got, want);
}

UNIT_TEST(whole_numbers_are_accepted)
{
    check_u64("0", 0, 0);
    check_u64("10", 0, 10);
    check_u64("010", 0, 8);
    check_u64("0x10", 0, 16);
    check_u64("0X1f", 16, 31);
    check_u64("1F", 16, 31);
    check_u64("z", 36, 35);
    check_u64("18446744073709551615", 0, UINT64_MAX);
    check_u64("0xffffffffffffffff", 0, UINT64_MAX);
}

UNIT_TEST(anything_else_is_refused)
{
    static const char *const texts[] = { "",    " 1",  "1 ",  "+1",  "--1", "-",
                                         "- 1", "0x",  "0xg", "08",  "1a",  "x",
                                         "1.0", "1\n", "-+1", "\t1", "1-1", "0x-1" };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint64_t u = 77;

        CHECK_EQ(parse_u64(texts[i], 0, &u), -EINVAL);
        CHECK_EQ(u, 77);
    }
    CHECK_EQ(parse_u64("-1", 0, &(uint64_t){ 0 }), -EINVAL);
}

UNIT_TEST(numbers_that_do_not_fit_are_out_of_range)
{
    uint64_t u = 77;

    CHECK_EQ(parse_u64("18446744073709551616", 10, &u), -ERANGE);
    CHECK_EQ(parse_u64("99999999999999999999999", 10, &u), -ERANGE);
    CHECK_EQ(parse_u64("99999999999999999999999x", 10, &u), -EINVAL);
    CHECK_EQ(u, 77);
}

UNIT_TEST(yes_and_no_are_told_by_how_they_begin)
{
    static const char *const yes[] = {
        "1", "1\n", "y", "Yes", "t", "TRUE", "on", "ON\n"
    };
    static const char *const no[] = { "0", "0\n", "n", "No", "f", "False", "off", "OFF" };
    static const char *const neither[] = { "", "2", "-1", " 1", "o", "ox", "\n", "junk" };
    bool value;

    for (size_t i = 0; i < 8; i++) {
        value = false;
        CHECK(parse_bool(yes[i], strlen(yes[i]), &value) == 0 && value);
        CHECK(parse_bool(no[i], strlen(no[i]), &value) == 0 && !value);
        CHECK_EQ(parse_bool(neither[i], strlen(neither[i]), &value), -EINVAL);
        CHECK(!value);
    }
    CHECK_EQ(parse_bool("on", 1, &value), -EINVAL);
    CHECK_EQ(parse_bool("1", 0, &value), -EINVAL);
}

UNIT_TESTS()
