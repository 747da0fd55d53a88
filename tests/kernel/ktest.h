/* ktest.h - tests that run inside the kernel, chosen by the boot word `tests=`.
 *
 * A file tests/kernel/test_STEM.c holds tests of one subject, STEM:
 *
 *     KTEST(frame, freed_frames_are_handed_out_again)
 *     {
 *         ktest_report(a == b, "the frame came back");
 *     }
 *
 * Each test is one KTAP subtest with a line per fact. `tests=all`, `tests=frame,heap` or
 * `tests=frame.freed_frames_are_handed_out_again` select, and a word with a minus in front of
 * it leaves out what it names: `tests=all,-heap`. The machine is switched off afterwards with
 * the verdict as QEMU's exit status.
 */
#pragma once

#include "kernel/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ktest {
    const char *subject, *name;
    void (*run)(void);
    bool is_alone; /* only when it is named in full */
};

#define KTEST_ROW(subject, name, is_alone)                                               \
    static void ktest_##subject##_##name(void);                                          \
    static const struct ktest ktest_row_##subject##_##name USED SECTION(".ktests")       \
        ALIGNED(8) = { #subject, #name, ktest_##subject##_##name, is_alone };            \
    static void ktest_##subject##_##name(void)

#define KTEST(subject, name) KTEST_ROW(subject, name, false)

/* KTEST_FATAL - one that ends in a panic, whose report is the fact: runs only when it is
 * named in full. tests/session/test_fatal.py reads what it says.
 */
#define KTEST_FATAL(subject, name) KTEST_ROW(subject, name, true)

/* KTEST_ALONE - one that takes boot words of its own, and as long as these say. */
#define KTEST_ALONE(subject, name) KTEST_ROW(subject, name, true)

/* ktest_report - one fact of the running test, in words. Context: thread. */
void ktest_report(bool holds, const char *fmt, ...) PRINTF(2, 3);
/* ktest_skip - a fact that cannot be looked at here, and why. */
void ktest_skip(const char *fmt, ...) PRINTF(1, 2);
/* ktest_note - a comment line. */
void ktest_note(const char *fmt, ...) PRINTF(1, 2);
/* ktest_random - a reproducible stream; boot word seed=N gives back a printed seed. */
uint64_t ktest_random(void);

/* ktest_count - how often to do what is repeated: @usual, or @when_long with the boot word
 * `long`.
 */
uint64_t ktest_count(uint64_t usual, uint64_t when_long);
/* ktest_rounds - the same for what all CPUs take part in: @usual on up to two, and fewer on
 * more, as each round takes longer.
 */
uint64_t ktest_rounds(uint64_t usual, uint64_t when_long);
/* ktest_at_end - @fn is called when the running test has returned; one function at most.
 * Context: thread.
 */
void ktest_at_end(void (*fn)(void));
/* ktest_set_words - the boot arguments. Context: boot.
 * ktest_word - what one of them says, as boot_option(). Context: thread.
 */
void ktest_set_words(const char *cmdline);
bool ktest_word(const char *key, char *out, size_t len);

/* ktest_set_sink - where the KTAP lines go. Context: boot. */
void ktest_set_sink(void (*fn)(const char *text, size_t len));

/* ktest_run - run what @selection names, print KTAP, return the number of failed tests.
 * @selection: a comma list, as above   @seed: 0 chooses one
 */
int ktest_run(const char *selection, uint64_t seed);
