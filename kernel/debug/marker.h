/* marker.h - markers: places in the kernel that call functions which are connected.
 *
 *     MARK(vfs_read, "count %zu", count);
 *
 * A marker that is off is three instructions, and none of them reads memory: the switch is
 * the immediate of the first one.
 *
 *     mov  $0, %al        the immediate is 1 while the marker is on
 *     test %al, %al
 *     jne  cold           there the arguments are evaluated and handed over
 *
 * The compiler sees no call in a marker, only code that changes rax and the flags, and in
 * the cold part memory. So loops keep their variables in registers.
 *
 * The kernel only executes markers; probes/marker switches them.
 */
#pragma once

#include "kernel/base/compiler.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* One passing of a marker that is on. */
struct marker_call {
    const char *name, *format;
    uintptr_t ip; /* its `mov`; of several copies that the compiler has made, the first */
    va_list args; /* for @format */
    uintptr_t cold_ip, sp, bp; /* of the program, in the cold part, for a backtrace */
};

/* marker_fn - a function that is called when a marker that is on is passed.
 * @private: the value that was given when the function was connected
 * @call:    for this function alone: it may use up @call->args
 *
 * The function must not sleep, and must not take a lock that is held where the marker is
 * passed. If the function, or an interrupt meanwhile, passes the same marker, no function
 * is called, and the miss is counted. When the function has returned, interrupts are on
 * or off as before the call. Context: any, preemption off. It is that of the marker.
 */
typedef void (*marker_fn)(void *private, struct marker_call *call);

struct marker_hook {
    marker_fn fn;
    void *private;
};

/* All functions that are connected to a name. The list is never changed, but replaced as
 * a whole: so a CPU that reads it sees the functions and arguments of one moment.
 */
struct marker_hooks {
    size_t count;
    struct marker_hook hook[];
};

/* Locks: I immutable   p written under the lock of probes/marker, read by any CPU */
struct marker_site {
    const char *name, *format; /* [I] */
    const struct marker_hooks
        *hooks;      /* [p] NULL: no function is called, even if the immediate is 1 */
    uintptr_t ip;    /* [p] see struct marker_call */
    uint64_t missed; /* [any] misses: the marker was running on that CPU already */
};

/* One for each copy that the compiler has made of a marker's code. */
struct marker_insn {
    uintptr_t insn; /* the `mov` */
    struct marker_site *site;
};

/* marker_run - call the functions of a marker that is on. marker_enter.asm calls this.
 * @words: the struct marker_site * of the marker, then its arguments, each as a word
 * @frame: the saved rbp and the return address of marker_enter()
 * Context: any.
 */
void marker_run(const uint64_t *words, const uintptr_t *frame);

/* marker_is_running - is a marker's function active on this CPU? Context: any. */
bool marker_is_running(void);

/* marker_check - never runs; lets the compiler compare arguments with their format. */
PRINTF(1, 2) static inline void marker_check(const char *format UNUSED, ...)
{
}

/* marker_given_up - end the running markers that code with a stack pointer in [@low,
 * @high) has passed. The code is a handler of a probe that is given up, so the functions
 * of these markers do not return. Context: trap.
 */
void marker_given_up(uintptr_t low, uintptr_t high);

#if __STDC_HOSTED__ && !defined(MARKER_CODE) /* kernel files on the host */
#define MARK(name_, format_, ...)                                                        \
    do {                                                                                 \
        if (0)                                                                           \
            marker_check(format_, ##__VA_ARGS__);                                        \
    } while (0)
#else
#define MARKER_1(a) (uint64_t)(a)
#define MARKER_2(a, ...) (uint64_t)(a), MARKER_1(__VA_ARGS__)
#define MARKER_3(a, ...) (uint64_t)(a), MARKER_2(__VA_ARGS__)
#define MARKER_4(a, ...) (uint64_t)(a), MARKER_3(__VA_ARGS__)
#define MARKER_5(a, ...) (uint64_t)(a), MARKER_4(__VA_ARGS__)
#define MARKER_6(a, ...) (uint64_t)(a), MARKER_5(__VA_ARGS__)
#define MARKER_7(a, ...) (uint64_t)(a), MARKER_6(__VA_ARGS__)
#define MARKER_8(a, ...) (uint64_t)(a), MARKER_7(__VA_ARGS__)
#define MARKER_9(a, ...) (uint64_t)(a), MARKER_8(__VA_ARGS__)
#define MARKER_10TH(a, b, c, d, e, f, g, h, i, j, ...) j
/* The site and up to eight arguments, as words. */
#define MARKER_WORDS(...)                                                                \
    MARKER_10TH(__VA_ARGS__, MARKER_9, MARKER_8, MARKER_7, MARKER_6, MARKER_5, MARKER_4, \
                MARKER_3, MARKER_2, MARKER_1)                                            \
    (__VA_ARGS__)

#define MARK(name_, format_, ...)                                                        \
    do {                                                                                 \
        __label__ cold;                                                                  \
        static struct marker_site site_ USED SECTION(".markers")                         \
            ALIGNED(8) = { #name_, format_, NULL, 0, 0 };                                \
                                                                                         \
        if (0)                                                                           \
            marker_check(format_, ##__VA_ARGS__);                                        \
        __asm__ goto("1: movb $0, %%al\n\t"                                              \
                     "testb %%al, %%al\n\t"                                              \
                     "jne %l[cold]\n\t"                                                  \
                     ".pushsection .marker_insns, \"a\"\n\t"                             \
                     ".balign 8\n\t"                                                     \
                     ".quad 1b, %c0\n\t"                                                 \
                     ".popsection"                                                       \
                     :                                                                   \
                     : "i"(&site_)                                                       \
                     : "rax", "cc"                                                       \
                     : cold);                                                            \
        break;                                                                           \
    cold:                                                                                \
        COLD_LABEL;                                                                      \
        {                                                                                \
            uint64_t words_[] = { MARKER_WORDS(&site_, ##__VA_ARGS__) };                 \
                                                                                         \
            __asm__ volatile("call marker_enter" : : "a"(words_) : "memory", "cc");      \
        }                                                                                \
    } while (0)
#endif
