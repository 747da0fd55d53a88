/* vectors.h - x87 and vector registers, which the kernel itself never touches: switched on
 * for the fixtures that need them, on the calling CPU, and off again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* vectors_on, vectors_off - Context: thread on a CPU that it stays on.
 * Return: false where the CPU has no XSAVE.
 */
bool vectors_on(void);
void vectors_off(void);

/* vectors_load - every register gets a value of its own. vectors_sum - of all of them.
 * Context: between vectors_on() and vectors_off().
 */
void vectors_load(void);
uint64_t vectors_sum(void);
