/* own_steps.h - where a program comes to that steps itself; it may carry probes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pt_regs;

#define OWN_STEPS_MAX 200

struct own_steps {
    uintptr_t at[OWN_STEPS_MAX];
    size_t count;
};

/* own_steps_begin - from here on, traps that end a step go into @steps, which is emptied.
 * own_steps_end - they are no longer taken.
 * Context: thread; one at a time.
 */
void own_steps_begin(struct own_steps *steps);
void own_steps_end(void);

/* own_steps_watch - from here on @see is called behind each instruction of a program that
 * steps itself, in place of the engine: behind those of detours and of the way back, too,
 * which own_steps_begin() hides. @see may change the image.
 * own_steps_unwatch - the traps are the engine's again.
 * Context: any; one at a time.
 */
void own_steps_watch(void (*see)(struct pt_regs *regs));
void own_steps_unwatch(void);

/* own_steps_same - the same places, and @more of them than that? */
bool own_steps_same(const struct own_steps *a, const struct own_steps *b, size_t more);
