/* own_steps.h - records the addresses of the single steps of a program that steps itself,
 * which means that it has set TF. The program may carry probes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pt_regs;

#define OWN_STEPS_MAX 200

struct own_steps {
    uintptr_t at[OWN_STEPS_MAX];
    size_t count;
    size_t with_irqs; /* how many traps had interrupts on in their handler */
};

/* own_steps_begin - empty @steps, and add the address of each single-step trap to
 * it from now on. Traps that the engine hides from the program, inside of its own
 * code, are not added.
 * own_steps_end - stop adding.
 * Context: thread; only one @steps at a time.
 */
void own_steps_begin(struct own_steps *steps);
void own_steps_end(void);

/* own_steps_of - call @fn(@x) with TF set, and record its steps. Return: what it returns. */
uint64_t own_steps_of(struct own_steps *steps, uint64_t (*fn)(uint64_t x), uint64_t x);

/* own_steps_watch - let @see be called for each single-step trap from now on, and the
 * engine for none. So @see is also called after each instruction of a detour and of the
 * way back to the program. @see may change the image.
 * own_steps_unwatch - give the traps back to the engine.
 * Context: any; only one @see at a time.
 */
void own_steps_watch(void (*see)(struct pt_regs *regs));
void own_steps_unwatch(void);

/* own_steps_same - are the addresses in @a and @b the same, and more than @more? */
bool own_steps_same(const struct own_steps *a, const struct own_steps *b, size_t more);
