/* watched.h - words to watch, a function that stores to the first, and a handler that notes
 * each hit, for kernel tests.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "probes/watch/watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern struct watched {
    volatile uint64_t target ALIGNED(8), neighbour;
} watched;

/* watched_store - store @value to watched.target, by an instruction that a test may watch
 * or probe. Context: any.
 */
void watched_store(uint64_t value);

/* watch_of - return a watch of @len bytes at @at, ready for register_watch(). */
struct watch watch_of(volatile void *at, enum watch_kind kind, size_t len,
                      watch_handler_t handler);

/* What note_hit() has seen. Tests reset it; handlers of a test may use it as well. */
struct noted {
    uintptr_t ip;   /* of the last hit */
    uint64_t calls; /* hits since a test has set this to 0 */
};
extern struct noted noted;

/* note_hit - a handler: note the hit in noted. Context: trap.
 * noted_in - is noted.ip behind the first instruction of @fn, within 48 bytes of @fn?
 * Context: thread.
 */
void note_hit(struct watch *w, struct pt_regs *regs);
bool noted_in(void *fn);

/* cpus_without_watches - return how many CPUs have no watch enabled in DR7.
 * expect_no_watches - report two facts: no CPU has a watch enabled in DR7, and no debug
 * register is taken.
 * Context: thread, interrupts on.
 */
unsigned cpus_without_watches(void);
void expect_no_watches(void);
