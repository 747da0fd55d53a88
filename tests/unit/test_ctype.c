/* test_ctype.c - compares libc/ctype.c with the host's functions, for every character. */
#include "tests/unit/libc_ours.h"
#include "tests/unit/unit.h"

static const struct kind {
    int (*ours)(int);
    int (*hosts)(int);
} kinds[] = {
    { our_isalnum, isalnum }, { our_isalpha, isalpha }, { our_isblank, isblank },
    { our_iscntrl, iscntrl }, { our_isdigit, isdigit }, { our_isgraph, isgraph },
    { our_islower, islower }, { our_isprint, isprint }, { our_ispunct, ispunct },
    { our_isspace, isspace }, { our_isupper, isupper }, { our_isxdigit, isxdigit },
};

UNIT_TEST(every_character_is_of_the_hosts_kinds)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        for (int c = EOF; c <= 255; c++)
            CHECK_EQ(!!kinds[i].ours(c), !!kinds[i].hosts(c));
}

UNIT_TEST(case_changes_as_the_hosts)
{
    for (int c = EOF; c <= 255; c++) {
        CHECK_EQ(our_tolower(c), tolower(c));
        CHECK_EQ(our_toupper(c), toupper(c));
    }
}

UNIT_TEST(negative_characters_are_of_no_kind)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        for (int c = -129; c < 0; c++)
            CHECK(!kinds[i].ours(c));
}

UNIT_TESTS()
