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

/* watched_store - @value into watched.target, by an instruction that a test may watch, or put
 * a probe on. Context: any.
 */
void watched_store(uint64_t value);

/* watch_of - Return: a watch of @len bytes at @at, as register_watch() wants it. */
struct watch watch_of(volatile void *at, enum watch_kind kind, size_t len,
                      watch_handler_t handler);

/* What note_hit() has seen. Tests set it back, and handlers of their own may count in it. */
struct noted {
    uintptr_t ip;   /* of the last hit */
    uint64_t calls; /* since a test has set it to 0 */
};
extern struct noted noted;

/* note_hit - a handler. Context: trap.
 * noted_in - was the last hit behind an instruction of @fn? Context: thread.
 */
void note_hit(struct watch *w, struct pt_regs *regs);
bool noted_in(void *fn);

/* cpus_without_watches - Return: how many CPUs have nothing in DR7.
 * expect_no_watches - report two facts: these are all CPUs, and no debug register is taken.
 * Context: thread, interrupts on.
 */
unsigned cpus_without_watches(void);
void expect_no_watches(void);
