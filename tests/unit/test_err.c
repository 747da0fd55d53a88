/* test_err.c - tests of libc/err.c: names and sentences of errors are those of the
 * host.
 */
#define _GNU_SOURCE
#include "kernel/base/err.h"
#include "tests/unit/unit.h"

#include <limits.h>
#include <string.h>

static void every_number_we_know_is_called_as_on_linux(void)
{
    int known = 0;

    for (int err = 1; err < 200; err++) {
        if (strcmp(err_name(err), "E?") == 0)
            continue;
        known++;
        CHECK_STR(err_name(err), strerrorname_np(err));
        CHECK_STR(err_text(err), strerror(err));
    }
    CHECK_EQ(known, 34);
}

static void zero_is_success(void)
{
    CHECK_STR(err_name(0), "OK");
    CHECK_STR(err_text(0), "Success");
}

static void unknown_numbers_have_a_name_too(void)
{
    static const int unknown[] = { 6, -6, 126, -126, 4095, INT_MAX, INT_MIN };

    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        CHECK_STR(err_name(unknown[i]), "E?");
        CHECK_STR(err_text(unknown[i]), "Unknown error");
    }
}

UNIT_TESTS(every_number_we_know_is_called_as_on_linux, zero_is_success,
           unknown_numbers_have_a_name_too)
