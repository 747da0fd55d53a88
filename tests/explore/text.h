/* text.h - a program in the text of tests/unit/port_fake.h. CPUs execute it as a processor
 * does: between two synchronisations an instruction fetch may still see what a byte was
 * before.
 */
#pragma once

#include "tests/explore/machine.h"

/* text_once - make the text, for scenario.once. */
void text_once(void);
/* text_start - start the machine and the engine. Functions that there are already, from
 * scenario.once, get their bytes back.
 */
void text_start(void);

/* text_function - return the address of a new function. @hex: its bytes, at most 16 */
uintptr_t text_function(const char *name, const char *hex);
#define TEXT_PUSHES "55 48 89 e5 5d c3" /* a function that begins with a push */

/* text_fetch - let the CPU of this actor fetch @len bytes at @fn, the start of a function. */
void text_fetch(uintptr_t fn, uint8_t *bytes, size_t len);
/* text_trap - take the trap of an int3 at @fn. Return: where the CPU goes on. Until
 * text_leave() it is in what the engine has made.
 */
uintptr_t text_trap(uintptr_t fn);
void text_leave(void);

/* text_run - execute the push at @fn on the CPU of this actor. */
void text_run(uintptr_t fn);
