/* unit.h - for test programs on the host: they check facts and print TAP.
 *
 * A test program is a file test_STEM.c that ends with
 *
 *     UNIT_TESTS(jmp_backwards_to_itself, jcc_short_becomes_near)
 *
 * where each name is a `static void f(void)`. UNIT_TESTS_BETWEEN(begin, end, ...) calls
 * begin() before each test, and end() after it. Without arguments the program runs all of
 * these tests, with names as arguments it runs those. A run prints its random seed;
 * SEED=N in the environment repeats the run with the seed N.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unit_test {
    const char *name;
    void (*run)(void);
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

/* unit_seed - return the seed of this run. The first call prints it as a TAP comment. */
uint64_t unit_seed(void);
/* unit_random - return the next random number. The same seed gives the same numbers. */
uint64_t unit_random(void);
/* unit_note - print a line as a TAP comment. */
void unit_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

int unit_main(const struct unit_test *tests, size_t count, int argc, char **argv,
              void (*begin)(void), void (*end)(void));

#define CHECK(cond) unit_check((cond), __FILE__, __LINE__, #cond)
#define CHECK_EQ(got, want)                                                              \
    unit_check_eq((long long)(got), (long long)(want), __FILE__, __LINE__, #got)
#define CHECK_STR(got, want) unit_check_str((got), (want), __FILE__, __LINE__)
#define CHECK_BYTES(got, hex) unit_check_bytes((got), (hex), __FILE__, __LINE__)

#define UNIT_ROW(f) { #f, f },
#define UNIT_TESTS_BETWEEN(begin, end, ...)                                              \
    int main(int argc, char **argv)                                                      \
    {                                                                                    \
        static const struct unit_test tests[] = { UNIT_EACH(UNIT_ROW, __VA_ARGS__) };    \
                                                                                         \
        return unit_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv, begin,     \
                         end);                                                           \
    }
#define UNIT_TESTS(...) UNIT_TESTS_BETWEEN(NULL, NULL, __VA_ARGS__)

/* UNIT_EACH - UNIT_EACH(m, a, b, ...) expands to m(a) m(b) ..., for up to 256 names. */
#define UNIT_PARENS ()
#define UNIT_EXPAND(...) UNIT_X4(UNIT_X4(UNIT_X4(UNIT_X4(__VA_ARGS__))))
#define UNIT_X4(...) UNIT_X3(UNIT_X3(UNIT_X3(UNIT_X3(__VA_ARGS__))))
#define UNIT_X3(...) UNIT_X2(UNIT_X2(UNIT_X2(UNIT_X2(__VA_ARGS__))))
#define UNIT_X2(...) UNIT_X1(UNIT_X1(UNIT_X1(UNIT_X1(__VA_ARGS__))))
#define UNIT_X1(...) __VA_ARGS__
#define UNIT_EACH(m, ...) UNIT_EXPAND(UNIT_EACH_STEP(m, __VA_ARGS__))
#define UNIT_EACH_STEP(m, a, ...)                                                        \
    m(a) __VA_OPT__(UNIT_EACH_AGAIN UNIT_PARENS(m, __VA_ARGS__))
#define UNIT_EACH_AGAIN() UNIT_EACH_STEP
