/* ktest.h - tests that run inside the kernel, chosen by the boot word `tests=`.
 *
 * A file tests/kernel/test_STEM.c holds tests of one subject, STEM:
 *
 *     KTEST(frame, freed_frames_are_handed_out_again)
 *     {
 *         ktest_report(a == b, "the frame came back");
 *     }
 *
 * Each test begins in a thread that may run on any CPU, and is one KTAP subtest with a line
 * per fact. `tests=all`, `tests=frame,heap` or
 * `tests=frame.freed_frames_are_handed_out_again` select tests, and a name with a minus
 * in front of it leaves tests out: `tests=all,-heap`. A name that names none is a failure.
 * After the last test the machine is switched off; QEMU's exit status says whether all
 * tests have passed.
 */
#pragma once

/* What most tests need. */
#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "probes/core/life.h"
#include "probes/kprobe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ktest {
    const char *subject, *name;
    void (*run)(void);
    bool is_alone; /* runs only if tests= has its full name, SUBJECT.NAME */
};

#define KTEST_ROW(subject, name, is_alone)                                               \
    static void ktest_##subject##_##name(void);                                          \
    static const struct ktest ktest_row_##subject##_##name USED SECTION(".ktests")       \
        ALIGNED(8) = { #subject, #name, ktest_##subject##_##name, is_alone };            \
    static void ktest_##subject##_##name(void)

#define KTEST(subject, name) KTEST_ROW(subject, name, false)

/* KTEST_FATAL - define a test that ends in a panic. It runs only if tests= has its full
 * name. It reports no fact: tests/session/test_fatal.py checks what the panic prints.
 */
#define KTEST_FATAL(subject, name) KTEST_ROW(subject, name, true)

/* KTEST_ALONE - define a test that has boot words of its own, which say how long it runs.
 * It runs only if tests= has its full name.
 */
#define KTEST_ALONE(subject, name) KTEST_ROW(subject, name, true)

/* KTEST_TARGET - define a function that tests probe: long @name(long @x) returns @value. The
 * compiler neither inlines it nor knows what a call returns.
 */
#define KTEST_TARGET(name, x, value)                                                     \
    static NOINLINE long name(long x)                                                    \
    {                                                                                    \
        __asm__ volatile("" : "+r"(x));                                                  \
        return value;                                                                    \
    }

/* KTEST_ASM - define the function @name in assembly. */
#define KTEST_ASM(name, code)                                                            \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n" #name   \
            ":\n" code "\n.size " #name ", . - " #name "\n.popsection\n");

/* ktest_report - print a fact of the running test, and whether it holds. If it does not,
 * the test has failed. @fmt: the fact, in words. Context: thread.
 */
void ktest_report(bool holds, const char *fmt, ...) PRINTF(2, 3);
/* ktest_skip - print a fact that cannot be checked on this machine, and why. */
void ktest_skip(const char *fmt, ...) PRINTF(1, 2);
/* ktest_lacks_cpus - has this machine fewer than @count CPUs? Then the facts of the test are
 * skipped. Context: thread.
 */
bool ktest_lacks_cpus(unsigned count);
/* ktest_note - print a comment line. */
void ktest_note(const char *fmt, ...) PRINTF(1, 2);
/* ktest_random - return the next random number. The numbers depend only on the seed,
 * which ktest_run() prints; the boot word seed=N sets it.
 */
uint64_t ktest_random(void);

/* ktest_count - return how often to repeat something: @when_long with the boot word
 * `long`, else @usual.
 */
uint64_t ktest_count(uint64_t usual, uint64_t when_long);
/* ktest_rounds - return how many rounds to do in which all CPUs take part: @when_long
 * with the boot word `long`, else @usual on one or two CPUs, and fewer on more CPUs,
 * because there each round takes longer.
 */
uint64_t ktest_rounds(uint64_t usual, uint64_t when_long);
/* ktest_thread - start a thread that calls @fn(@arg).
 * @cpus: bit n: it may run on CPU n; 0: it may run on any   Return: its tid.
 * Context: thread.
 */
int ktest_thread(int (*fn)(void *arg), void *arg, uint64_t cpus);
/* ktest_at_end - let @fn be called after the running test has returned. A test can have
 * four such functions; the last is called first. Context: thread.
 */
void ktest_at_end(void (*fn)(void));
/* ktest_word - look up the boot argument @key, as boot_option() does. Context: thread. */
bool ktest_word(const char *key, char *out, size_t len);

/* ktest_clock_jump - let the clock jump by @ms, as if the host had stopped the machine. */
static inline void ktest_clock_jump(uint64_t ms)
{
    clock_rate.base_cycles -= ms * clock_cycles_per_ms();
}
