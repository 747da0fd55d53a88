/* test_agent_format.c - tests of probes/agent/agent_format: which text a format and its
 * words give.
 */
#include "probes/agent/agent_op.h"

#include "tests/unit/unit.h"

static char text[AGENT_TEXT_MAX];
static char memory[1024];

static int read_memory(void *arg UNUSED, void *dst, uintptr_t addr, size_t len)
{
    if (addr < (uintptr_t)memory || addr + len > (uintptr_t)memory + sizeof(memory))
        return -EFAULT;
    memcpy(dst, (const void *)addr, len);
    return 0;
}

static const struct agent_world world = { .read = read_memory };

static const char *checked(const char *format, unsigned count)
{
    const char *why = agent_format_check(format, strlen(format) + 1, count);

    return why ? why : "";
}

#define PRINTED(format, ...)                                                             \
    printed(format, (const uint64_t[]){ __VA_ARGS__ },                                   \
            sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static const char *printed(const char *format, const uint64_t *word, unsigned count)
{
    size_t len;

    CHECK_STR(checked(format, count), "");
    len = agent_format(format, word, &world, text, sizeof(text));
    CHECK_EQ(len, strlen(text));
    return text;
}

UNIT_TEST(numbers_have_the_width_they_say)
{
    CHECK_STR(PRINTED("%d %u %x", UINT64_MAX, UINT64_MAX, UINT64_MAX),
              "-1 4294967295 ffffffff");
    CHECK_STR(PRINTED("%hhd %hu %hx", 0x1ff, 0x12345, 0xfedcba), "-1 9029 dcba");
    CHECK_STR(PRINTED("%ld %llx %zu", UINT64_MAX, UINT64_MAX, 7),
              "-1 ffffffffffffffff 7");
    CHECK_STR(PRINTED("[%5d|%-5d|%05d|%+d|%#x]", 42, 42, 42, 42, 42),
              "[   42|42   |00042|+42|0x2a]");
    CHECK_STR(PRINTED("%i%o%X", 1, 8, 255), "110FF");
}

UNIT_TEST(letters_texts_and_addresses)
{
    strcpy(memory + 100, "a file of some length");
    CHECK_STR(PRINTED("%c%c", 'o', 0x16b), "ok");
    CHECK_STR(PRINTED("a%cb", 0x100), "ab");
    CHECK_STR(PRINTED("<%s>", (uintptr_t)memory + 100), "<a file of some length>");
    CHECK_STR(PRINTED("<%-8.4s>", (uintptr_t)memory + 100), "<a fi    >");
    CHECK_STR(PRINTED("%p", 0x1234), "0x1234");
    CHECK_STR(PRINTED("100%% of %d", 3), "100% of 3");
}

UNIT_TEST(escapes_are_as_typed)
{
    CHECK_STR(PRINTED("%d\\t%d\\n", 1, 2), "1\t2\n");
    CHECK_STR(PRINTED("\\a\\b\\e\\f\\r\\v\\\\\\\"%c", 'x'), "\a\b\x1b\f\r\v\\\"x");
    CHECK_STR(PRINTED("%d\\101\\1011\\0.", 1), "1AA1.");
}

UNIT_TEST(a_text_that_cannot_be_read_is_told)
{
    CHECK_STR(PRINTED("%s.", 0), "(fault).");
    memset(memory, 'x', sizeof(memory));
    /* The first string has no NUL before the readable memory ends. */
    CHECK_STR(PRINTED("%s", (uintptr_t)memory + sizeof(memory) - 20), "(fault)");
    memory[sizeof(memory) - 1] = '\0';
    CHECK_STR(PRINTED("%s", (uintptr_t)memory + sizeof(memory) - 5), "xxxx");
}

UNIT_TEST(what_is_too_long_is_cut)
{
    char small[12];

    memset(memory, 'y', sizeof(memory));
    printed("%s", (const uint64_t[]){ (uintptr_t)memory }, 1);
    CHECK_EQ(strlen(text), 200);
    CHECK_EQ(strlen(PRINTED("%900d!", 1)), AGENT_TEXT_MAX - 1);
    CHECK_EQ(agent_format("a long format", NULL, &world, small, sizeof(small)), 11);
    CHECK_STR(small, "a long form");
}

UNIT_TEST(what_is_not_understood_is_refused)
{
    static const char *const bad[] = {
        "%n", "%f",  "%*d", "%",   "%5", "%hhhd", "%l", "% %", "%12345678901234567d",
        "%m", "%5%", "%ls", "%hc", "%lp"
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_STR(checked(bad[i], 1), "a conversion of the format is not understood");
    CHECK_STR(checked("%d", 0), "the format has not as many conversions as words");
    CHECK_STR(checked("%d", 2), "the format has not as many conversions as words");
    CHECK_STR(checked("no words", 0), "");
    for (const char *const *each =
             (const char *const[]){ "\\q", "\\", "\\%d", "\\8", NULL };
         *each; each++)
        CHECK_STR(checked(*each, 0), "an escape of the format is not understood");
    CHECK(agent_format_check("a\0b", 4, 0) != NULL);
    CHECK(agent_format_check("", 0, 0) != NULL);
}

UNIT_TESTS()
