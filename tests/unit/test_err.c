/* test_err.c - tests of libc/err.c: names and sentences of errors are those of the
 * host.
 */
#define _GNU_SOURCE
#include "tests/unit/unit.h"

#include <limits.h>

UNIT_TEST(every_number_we_know_is_called_as_on_linux)
{
    int known = 0;

    for (int err = 1; err < 200; err++) {
        if (strcmp(err_name(err), "E?") == 0)
            continue;
        known++;
        CHECK_STR(err_name(err), strerrorname_np(err));
        CHECK_STR(err_text(err), strerror(err));
    }
    CHECK_EQ(known, 35);
}

UNIT_TEST(zero_is_success)
{
    CHECK_STR(err_name(0), "OK");
    CHECK_STR(err_text(0), "Success");
}

UNIT_TEST(unknown_numbers_have_a_name_too)
{
    static const int unknown[] = { 6, -6, 126, -126, 4095, INT_MAX, INT_MIN };

    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        CHECK_STR(err_name(unknown[i]), "E?");
        CHECK_STR(err_text(unknown[i]), "Unknown error");
    }
}

UNIT_TESTS()
