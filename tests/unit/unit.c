/* unit.c - runs the tests of a program, and checks their facts; see unit.h. */
#include "tests/unit/unit.h"

#include <ctype.h>
#include <stdarg.h>
#include <time.h>

static int failures;    /* of the running test */
static bool is_checked; /* it has checked something */
const char *unit_skipped;
static uint64_t seed;
static uint64_t random_state;

static void complain(const char *file, int line)
{
    failures++;
    printf("# %s:%d: ", file, line);
}

/* holds_or_not - note that a test checks something, in any of its threads. */
static bool holds_or_not(bool holds)
{
    __atomic_store_n(&is_checked, true, __ATOMIC_RELAXED);
    return holds;
}

void unit_check(bool holds, const char *file, int line, const char *what)
{
    if (holds_or_not(holds))
        return;
    complain(file, line);
    printf("does not hold: %s\n", what);
}

void unit_check_eq(long long got, long long want, const char *file, int line,
                   const char *what)
{
    if (holds_or_not(got == want))
        return;
    complain(file, line);
    printf("%s is %lld (0x%llx), want %lld (0x%llx)\n", what, got,
           (unsigned long long)got, want, (unsigned long long)want);
}

void unit_check_str(const char *got, const char *want, const char *file, int line)
{
    if (holds_or_not(strcmp(got, want) == 0))
        return;
    complain(file, line);
    printf("\"%s\", want \"%s\"\n", got, want);
}

void unit_check_bytes(const uint8_t *got, const char *hex, const char *file, int line)
{
    size_t count = 0;
    bool same = true;

    for (const char *p = hex; *p;) {
        char *end;
        unsigned long byte = strtoul(p, &end, 16);

        if (end == p)
            break;
        same &= got[count++] == byte;
        p = end;
    }
    if (holds_or_not(same))
        return;
    complain(file, line);
    printf("bytes");
    for (size_t i = 0; i < count; i++)
        printf(" %02x", got[i]);
    printf(", want %s\n", hex);
}

uint64_t unit_seed(void)
{
    const char *given = getenv("SEED");

    if (seed)
        return seed;
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    if (!seed)
        seed = 1;
    random_state = seed;
    unit_note("seed %llu", (unsigned long long)seed);
    return seed;
}

uint64_t unit_random(void)
{
    uint64_t x;

    unit_seed();
    random_state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = random_state;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void unit_note(const char *fmt, ...)
{
    va_list args;

    printf("# ");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
}

static bool selected(const char *name, int argc, char **argv)
{
    if (argc < 2)
        return true;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return false;
}

/* next_test - return the first test behind line @line, or NULL. */
static const struct unit_test *next_test(const struct unit_test *tests,
                                         const struct unit_test *tests_end, int line)
{
    const struct unit_test *next = NULL;

    for (const struct unit_test *test = tests; test < tests_end; test++)
        if (test->line > line && (!next || test->line < next->line))
            next = test;
    return next;
}

int unit_main(const struct unit_test *tests, const struct unit_test *tests_end, int argc,
              char **argv, void (*begin)(void), void (*end)(void))
{
    size_t run = 0, failed = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (const struct unit_test *test = next_test(tests, tests_end, 0); test;
         test = next_test(tests, tests_end, test->line)) {
        if (!selected(test->name, argc, argv))
            continue;
        failures = 0;
        unit_skipped = NULL;
        if (begin)
            begin();
        is_checked = false;
        test->run();
        unit_check(is_checked || unit_skipped, __FILE__, __LINE__, "it checks something");
        if (end)
            end();
        printf("%s %zu - %s%s%s\n", failures ? "not ok" : "ok", ++run, test->name,
               unit_skipped ? " # SKIP " : "", unit_skipped ? unit_skipped : "");
        failed += failures != 0;
    }
    printf("1..%zu\n", run);
    return run == 0 || failed ? 1 : 0;
}
