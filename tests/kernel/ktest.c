/* ktest.c - chooses the kernel tests, runs them, and prints the results as KTAP. */
#include "tests/kernel/ktest.h"

#include "kernel/base/boot_info.h"
#include "kernel/debug/panic.h"
#include "kernel/runner.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

extern const struct ktest ktests_start[], ktests_end[];

static unsigned facts, failures; /* of the running test */
static uint64_t random_state;
static void (*sink)(const char *text, size_t len);
static void (*at_end[4])(void); /* of the running test */
static const char *words = "";  /* the boot arguments */

static void print_args(const char *prefix, const char *fmt, va_list args)
{
    char line[512];
    int n = scnprintf(line, sizeof(line) - 1, "%s", prefix);

    n += vscnprintf(line + n, sizeof(line) - 1 - (size_t)n, fmt, args);
    line[n++] = '\n';
    if (sink)
        sink(line, (size_t)n);
}

static void print(const char *fmt, ...) PRINTF(1, 2);
static void print(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    print_args("", fmt, args);
    va_end(args);
}

static void print_fact(const char *verdict, const char *suffix, const char *fmt,
                       va_list args)
{
    char prefix[64];

    snprintf(prefix, sizeof(prefix), "    %s %u %s", verdict, ++facts, suffix);
    print_args(prefix, fmt, args);
}

void ktest_report(bool holds, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    print_fact(holds ? "ok" : "not ok", "- ", fmt, args);
    va_end(args);
    failures += !holds;
}

void ktest_skip(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    print_fact("ok", "# SKIP ", fmt, args);
    va_end(args);
}

bool ktest_lacks_cpus(unsigned count)
{
    if (cpu_count() >= count)
        return false;
    ktest_skip("needs %u CPUs", count);
    return true;
}

void ktest_note(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    print_args("    # ", fmt, args);
    va_end(args);
}

uint64_t ktest_random(void)
{
    uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

int ktest_thread(int (*fn)(void *arg), void *arg, uint64_t cpus)
{
    return kernel_clone(
        &(struct clone_args){ .fn = fn, .arg = arg, .name = "ktest", .cpus = cpus });
}

void ktest_at_end(void (*fn)(void))
{
    for (size_t i = 0; i < ARRAY_LEN(at_end); i++) {
        if (at_end[i] && at_end[i] != fn)
            continue;
        at_end[i] = fn;
        return;
    }
    panic("a test may call ktest_at_end() with %zu functions", ARRAY_LEN(at_end));
}

static void call_at_end(void)
{
    for (size_t i = ARRAY_LEN(at_end); i-- > 0;) {
        if (at_end[i])
            at_end[i]();
        at_end[i] = NULL;
    }
}

bool ktest_word(const char *key, char *out, size_t len)
{
    return boot_option(words, key, out, len);
}

uint64_t ktest_count(uint64_t usual, uint64_t when_long)
{
    return ktest_word("long", NULL, 0) ? when_long : usual;
}

uint64_t ktest_rounds(uint64_t usual, uint64_t when_long)
{
    uint64_t fewer = cpu_count() > 2 ? usual * 2 / cpu_count() : usual;

    return ktest_count(fewer ? fewer : 1, when_long);
}

/* word_names - does @word (@len bytes, not NUL-terminated) name @t? It does if it is
 * "all", the subject of @t, or "subject.name".
 */
static bool word_names(const char *word, size_t len, const struct ktest *t)
{
    size_t subject_len = strlen(t->subject);

    if (len == 3 && memcmp(word, "all", 3) == 0)
        return !t->is_alone;
    if (len < subject_len || memcmp(word, t->subject, subject_len))
        return false;
    if (len == subject_len)
        return !t->is_alone;
    return word[subject_len] == '.' && len - subject_len - 1 == strlen(t->name) &&
           memcmp(word + subject_len + 1, t->name, strlen(t->name)) == 0;
}

static bool selects(const char *selection, const struct ktest *t)
{
    bool selected = false;

    for (const char *word = selection; *word;) {
        size_t len = strcspn(word, ",");

        if (*word == '-' && word_names(word + 1, len - 1, t))
            return false;
        if (word_names(word, len, t))
            selected = true;
        word += len;
        word += *word == ',';
    }
    return selected;
}

/* unknown_in - return @selection from its first word on that names no test, or NULL. */
static const char *unknown_in(const char *selection)
{
    for (const char *word = selection; *word; word += *word == ',') {
        size_t len = strcspn(word, ","), minus = *word == '-';
        const struct ktest *t = ktests_start;

        while (t < ktests_end && !word_names(word + minus, len - minus, t))
            t++;
        if (t == ktests_end)
            return word;
        word += len;
    }
    return NULL;
}

static void flush_tlb(void *unused UNUSED)
{
    write_cr3(read_cr3());
}

/* The TLB of an emulator grows with the number of pages that are used, to millions of
 * entries. The emulator searches all of them when it executes code that has just been
 * written. A flush makes the TLB smaller if fewer entries were used lately. So each test
 * begins with a flush: then a test is not slow because of the test before it.
 */
static bool run_one(const struct ktest *t, unsigned number)
{
    bool passed;

    facts = 0;
    failures = 0;
    smp_call_all(flush_tlb, NULL);
    print("    KTAP version 1");
    print("    # Subtest: %s.%s", t->subject, t->name);
    t->run();
    call_at_end();
    thread_set_affinity(UINT64_MAX);
    print("    1..%u", facts);
    passed = facts > 0 && failures == 0;
    print("%s %u - %s.%s", passed ? "ok" : "not ok", number, t->subject, t->name);
    return passed;
}

static int run_selected(const char *selection)
{
    const char *unknown = unknown_in(selection);
    unsigned count = 0, number = 0;
    int failed = 0;

    for (const struct ktest *t = ktests_start; t < ktests_end && !unknown; t++)
        count += selects(selection, t);
    print("KTAP version 1");
    if (!count) /* in front of 1..0: what runs Bochs stops it there */
        print("Bail out! no test is called %s", unknown ? unknown : selection);
    print("1..%u", count);
    print("# seed %llu, %u CPUs", (unsigned long long)random_state, cpu_count());
    for (const struct ktest *t = ktests_start; t < ktests_end && count; t++)
        if (selects(selection, t))
            failed += !run_one(t, ++number);
    return count ? failed : 1;
}

/* run_tests - run the tests that the boot argument tests= selects, and print KTAP. */
static bool run_tests(const char *cmdline, void (*fn)(const char *text, size_t len))
{
    static char selection[1024];
    char seed[24];

    words = cmdline;
    sink = fn;
    ktest_word("tests", selection, sizeof(selection));
    random_state = clock_ns() | 1;
    if (ktest_word("seed", seed, sizeof(seed)))
        random_state = strtoul(seed, NULL, 0);
    return run_selected(selection) == 0;
}

__attribute__((constructor)) static void ktest_init(void)
{
    runner_set(run_tests);
}
