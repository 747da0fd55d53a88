/* test_vsnprintf.c - compares libc/vsnprintf.c and snprintf.c with the host's
 * functions.
 */
#include "tests/unit/guard.h"
#include "tests/unit/libc_ours.h"
#include "tests/unit/unit.h"

#include <limits.h>
#include <stdarg.h>

enum { ROUNDS = 100000, TEXT_MAX = 256 };

static uint8_t *map;

static size_t random_below(size_t limit)
{
    return (size_t)(unit_random() % limit);
}

/* print - as our_snprintf(), for wrong formats, which the compiler would warn of. */
static int print(char *buf, size_t size, const char *fmt, ...)
{
    va_list args;
    int len;

    va_start(args, fmt);
    len = our_vsnprintf(buf, size, fmt, args);
    va_end(args);
    return len;
}

/* check_as_host - print with both libraries into buffers of @size bytes. The text, the
 * NUL, the result and the unused bytes must be the same. Our buffer ends at a guard page.
 */
static void check_as_host(size_t size, const char *fmt, ...)
{
    char want[TEXT_MAX];
    char *got;
    va_list args;
    int want_len, got_len;

    if (!map)
        map = guard_map();
    got = guard_tail(map, size);
    memset(want, '#', sizeof(want));
    memset(got, '#', size);
    va_start(args, fmt);
    want_len = vsnprintf(want, size, fmt, args);
    va_end(args);
    va_start(args, fmt);
    got_len = our_vsnprintf(got, size, fmt, args);
    va_end(args);
    CHECK_EQ(got_len, want_len);
    CHECK(memcmp(got, want, size) == 0);
    if (got_len == want_len && memcmp(got, want, size) == 0)
        return;
    unit_note("format \"%s\", size %zu: \"%.*s\", want \"%.*s\"", fmt, size, (int)size,
              got, (int)size, want);
}

struct format {
    char text[64];
    int star_count;
    int stars[2];
    const char *length;
    char conversion;
};

static void text_add(struct format *f, const char *more)
{
    strcat(f->text, more);
}

static void count_add(struct format *f)
{
    char digits[16];

    if (random_below(3) == 0) {
        f->stars[f->star_count++] = (int)random_below(60) - 30;
        text_add(f, "*");
    } else {
        sprintf(digits, "%zu", 1 + random_below(30));
        text_add(f, digits);
    }
}

/* flags_of - return the flags to try with @conversion: those that the standard defines
 * for it.
 */
static const char *flags_of(char conversion)
{
    switch (conversion) {
    case 'd':
    case 'i':
        return "-+ 0";
    case 'u':
        return "-0";
    case 'c':
    case 's':
    case 'p':
        return "-";
    default:
        return "-#0";
    }
}

static void format_make(struct format *f)
{
    static const char *const lengths[] = { "", "hh", "h", "l", "ll", "z", "t", "j" };
    const char *flags;

    *f = (struct format){ .conversion = "diuxXocsp"[random_below(9)] };
    f->length = strchr("csp", f->conversion) ? "" : lengths[random_below(8)];
    flags = flags_of(f->conversion);
    text_add(f, random_below(2) ? "" : "at ");
    text_add(f, "%");
    for (size_t i = 0; flags[i]; i++)
        if (random_below(3) == 0)
            text_add(f, (char[]){ flags[i], '\0' });
    if (random_below(2))
        count_add(f);
    if (random_below(2) && !strchr("cp", f->conversion)) {
        text_add(f, ".");
        if (random_below(3))
            count_add(f);
    }
    text_add(f, f->length);
    text_add(f, (char[]){ f->conversion, '\0' });
    text_add(f, random_below(2) ? "" : "%% end");
}

/* number_make - return a random number of any width. The ends of the ranges are more
 * frequent than by chance.
 */
static uint64_t number_make(void)
{
    static const uint64_t ends[] = { 0,        1,         0x7f,      0x80,      0xff,
                                     0x7fff,   0x8000,    INT_MAX,   1ul << 31, UINT_MAX,
                                     LONG_MAX, 1ul << 63, ULONG_MAX, 10,        16 };

    if (random_below(3) == 0)
        return ends[random_below(sizeof(ends) / sizeof(ends[0]))];
    return unit_random() >> random_below(64);
}

/* CHECK_FORMAT - call check_as_host() with @value, and in front of it one int for each
 * star in the format.
 */
#define CHECK_FORMAT(size, f, value)                                                     \
    ((f)->star_count == 0 ? check_as_host(size, (f)->text, value)                        \
     : (f)->star_count == 1                                                              \
         ? check_as_host(size, (f)->text, (f)->stars[0], value)                          \
         : check_as_host(size, (f)->text, (f)->stars[0], (f)->stars[1], value))

UNIT_TEST(random_formats_print_as_by_the_host)
{
    static const char *const strings[] = { "", "a", "kprobe",
                                           "a longer piece of text\n" };

    for (int round = 0; round < ROUNDS; round++) {
        size_t size = random_below(4) ? 100 : random_below(30);
        uint64_t value = number_make();
        struct format f;

        format_make(&f);
        if (f.conversion == 's')
            CHECK_FORMAT(size, &f, strings[random_below(4)]);
        else if (f.conversion == 'p')
            CHECK_FORMAT(size, &f, (void *)(uintptr_t)(value | 1));
        else if (f.conversion == 'c' || !f.length[0] || f.length[0] == 'h')
            CHECK_FORMAT(size, &f, (unsigned)value);
        else
            CHECK_FORMAT(size, &f, value);
    }
}

UNIT_TEST(several_arguments_are_taken_in_order)
{
    for (size_t size = 0; size < 90; size++)
        check_as_host(size, "%s+0x%lx/%zu cpu%d %c%%%5d|%-6s|%08x|%+d", "vfs_read",
                      0x1eul, (size_t)64, 3, 'x', -42, "ab", 0xbeefu, 7);
}

UNIT_TEST(the_ends_of_the_ranges)
{
    check_as_host(100, "%d %d %i", INT_MIN, INT_MAX, 0);
    check_as_host(100, "%ld %lld %jd", LONG_MIN, LLONG_MAX, INTMAX_MIN);
    check_as_host(100, "%hhd %hhu %hd %hu", 0x180, 0x1ff, 0x18000, 0x1ffff);
    check_as_host(100, "%lo %#lo %lx %#lX", ULONG_MAX, ULONG_MAX, ULONG_MAX, ULONG_MAX);
    check_as_host(100, "%td %zu", PTRDIFF_MIN, SIZE_MAX);
}

UNIT_TEST(zero_has_no_digits_at_precision_zero)
{
    check_as_host(100, "[%.0d] [%.d] [%+.0d] [%5.0u] [%#.0x] [%#.0o] [%#o] [%#x]", 0, 0,
                  0, 0u, 0u, 0u, 0u, 0u);
}

UNIT_TEST(precision_beats_the_zero_flag)
{
    check_as_host(100, "[%08.3d] [%-08d] [%08.*d]", 5, 5, -1, 5);
}

UNIT_TEST(strings_need_no_nul_within_their_precision)
{
    char *name = memcpy(guard_tail(guard_map(), 3), "abc", 3);
    char buf[32];

    our_snprintf(buf, sizeof(buf), "[%.3s] [%.*s]", name, 3, name);
    CHECK_STR(buf, "[abc] [abc]");
    our_snprintf(buf, sizeof(buf), "[%-5.*s] [%.0s]", 2, name, name + 3);
    CHECK_STR(buf, "[ab   ] []");
    our_snprintf(buf, sizeof(buf), "[%.*s]", -1, "all of it");
    CHECK_STR(buf, "[all of it]");
}

UNIT_TEST(a_short_buffer_is_ended_with_nul_and_never_overrun)
{
    char buf[4] = "###";

    CHECK_EQ(our_snprintf(buf, 0, "%d", 12345), 5);
    CHECK_STR(buf, "###");
    CHECK_EQ(our_snprintf(NULL, 0, "%s", "probe"), 5);
    CHECK_EQ(our_snprintf(buf, 1, "%d", 12345), 5);
    CHECK_BYTES((uint8_t *)buf, "00 23 23");
    CHECK_EQ(our_snprintf(buf, 3, "%d", 12345), 5);
    CHECK_BYTES((uint8_t *)buf, "31 32 00 00");
    CHECK_EQ(our_snprintf(buf, 4, "abc"), 3);
    CHECK_STR(buf, "abc");
    CHECK_EQ(our_snprintf(buf, 4, "%s%d", "x", 9), 2);
    CHECK_STR(buf, "x9");
}

UNIT_TEST(scnprintf_tells_what_it_stored)
{
    char buf[4] = "###";

    CHECK_EQ(scnprintf(buf, 0, "%d", 12345), 0);
    CHECK_STR(buf, "###");
    CHECK_EQ(scnprintf(buf, 1, "%d", 12345), 0);
    CHECK_EQ(scnprintf(buf, 4, "%d", 12345), 3);
    CHECK_STR(buf, "123");
    CHECK_EQ(scnprintf(buf, 4, "%d", 1234), 3);
    CHECK_EQ(scnprintf(buf, 4, "%d", 123), 3);
    CHECK_EQ(scnprintf(buf, 4, "%s", ""), 0);
    CHECK_EQ(scnprintf(buf, 4, "%d", 12), 2);
    CHECK_EQ(scnprintf(buf, 4, "%*d", 2000000000, 1), 3);
    CHECK_STR(buf, "   ");
}

UNIT_TEST(a_text_too_long_for_an_int_is_an_error)
{
    char buf[8];

    CHECK_EQ(print(buf, sizeof(buf), "%*d", INT_MAX, 1), INT_MAX);
    CHECK_EQ(print(buf, sizeof(buf), "%*dx", INT_MAX, 1), -ERANGE);
    CHECK_EQ(print(buf, sizeof(buf), "%-*d", INT_MIN, 1), -ERANGE);
    CHECK_EQ(print(buf, sizeof(buf), "%99999999999999999999dx", 1), -ERANGE);
    CHECK_EQ(print(buf, sizeof(buf), "%.*dx", INT_MAX, 1), -ERANGE);
    CHECK_STR(buf, "0000000");
}

UNIT_TEST(what_ours_prints_its_own_way)
{
    char buf[32];

    print(buf, sizeof(buf), "%p %5p", NULL, NULL);
    CHECK_STR(buf, "0x0   0x0");
    print(buf, sizeof(buf), "%s %.2s", (char *)NULL, (char *)NULL);
    CHECK_STR(buf, "(null) (n");
    print(buf, sizeof(buf), "%-3q|%5.2k|%", 1, 2);
    CHECK_STR(buf, "%-3q|%5.2k|%");
    CHECK_EQ(print(buf, sizeof(buf), "ab%5l"), 5);
    CHECK_STR(buf, "ab%5l");
    CHECK_EQ(print(buf, sizeof(buf), "%c", '\0'), 1);
}

UNIT_TESTS()
