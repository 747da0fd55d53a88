/* unit.h - for test programs on the host: they check facts and print TAP.
 *
 * A test program is a file test_STEM.c. Each of its facts is a function:
 *
 *     UNIT_TEST(jmp_backwards_to_itself)
 *     {
 *         ...
 *     }
 *
 * The file ends with UNIT_TESTS(), or with UNIT_TESTS_BETWEEN(begin, end): begin() is
 * called before each test, and end() after it. Without arguments the program runs all of
 * its tests, with names as arguments it runs those. A run prints its random seed; SEED=N
 * in the environment repeats the run with the seed N.
 */
#pragma once

/* What most tests need. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit_test {
    const char *name;
    void (*run)(void);
    int line; /* in its file */
};

/* unit_check, unit_check_eq, unit_check_str - check a fact. If it is false, print it and
 * let the running test fail. @what: the text of the fact
 */
void unit_check(bool holds, const char *file, int line, const char *what);
void unit_check_eq(long long got, long long want, const char *file, int line,
                   const char *what);
void unit_check_str(const char *got, const char *want, const char *file, int line);
/* unit_check_bytes - compare @got with the bytes of @hex, as "e9 fb ff ff ff". @got must
 * have at least as many bytes.
 */
void unit_check_bytes(const uint8_t *got, const char *hex, const char *file, int line);

/* unit_skip - the running test can check nothing here. A test that neither checks nor skips
 * anything has failed. @why: stays as it is
 */
#define unit_skip(why) ((void)(unit_skipped = (why)))
extern const char *unit_skipped;

/* unit_seed - return the seed of this run. The first call prints it as a TAP comment. */
uint64_t unit_seed(void);
/* unit_random - return the next random number. The same seed gives the same numbers. */
uint64_t unit_random(void);
/* unit_note - print a line as a TAP comment. */
void unit_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* unit_main - run the tests of a program, in the order of their lines.
 * [@tests, @tests_end): all that it has, in any order
 */
int unit_main(const struct unit_test *tests, const struct unit_test *tests_end, int argc,
              char **argv, void (*begin)(void), void (*end)(void));

#define CHECK(cond) unit_check((cond), __FILE__, __LINE__, #cond)
#define CHECK_EQ(got, want)                                                              \
    unit_check_eq((long long)(got), (long long)(want), __FILE__, __LINE__, #got)
#define CHECK_STR(got, want) unit_check_str((got), (want), __FILE__, __LINE__)
#define CHECK_BYTES(got, hex) unit_check_bytes((got), (hex), __FILE__, __LINE__)

/* The linker puts the rows of a program's tests into this section. */
#ifndef UNIT_SECTION
#define UNIT_SECTION unit_tests
#endif

#define UNIT_TEST(name)                                                                  \
    static void name(void);                                                              \
    static const struct unit_test unit_row_##name USED SECTION(AS_TEXT(UNIT_SECTION))    \
        ALIGNED(8) = { #name, name, __LINE__ };                                          \
    static void name(void)

#define UNIT_TESTS_BETWEEN(begin, end)                                                   \
    int main(int argc, char **argv)                                                      \
    {                                                                                    \
        extern const struct unit_test UNIT_JOIN(__start_, UNIT_SECTION)[];               \
        extern const struct unit_test UNIT_JOIN(__stop_, UNIT_SECTION)[];                \
                                                                                         \
        return unit_main(UNIT_JOIN(__start_, UNIT_SECTION),                              \
                         UNIT_JOIN(__stop_, UNIT_SECTION), argc, argv, begin, end);      \
    }
#define UNIT_TESTS() UNIT_TESTS_BETWEEN(NULL, NULL)

#define UNIT_JOIN(a, b) UNIT_JOIN_OF(a, b)
#define UNIT_JOIN_OF(a, b) a##b
