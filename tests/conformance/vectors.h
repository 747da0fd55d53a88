/* vectors.h - x87 and vector registers, which the kernel itself does not use. They are
 * switched on, on the calling CPU, for the fixtures that need them, and off after these.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* vectors_on - switch the registers on. Return: false when the CPU has no XSAVE.
 * vectors_off - switch them off.
 * Context: thread on a CPU that it stays on.
 */
bool vectors_on(void);
void vectors_off(void);

/* vectors_load - load a value into each register.
 * vectors_sum - return a hash of all of them.
 * Context: between vectors_on() and vectors_off().
 */
void vectors_load(void);
uint64_t vectors_sum(void);
