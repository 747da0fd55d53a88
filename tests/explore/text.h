/* text.h - a program of functions whose first instruction is a push, in the text of
 * tests/unit/port_fake.h. CPUs execute it as a processor does: between two synchronisations
 * an instruction fetch may still see what a byte was before.
 */
#pragma once

#include "tests/explore/machine.h"

/* text_once - make the text, for scenario.once. */
void text_once(void);
/* text_start - start the machine and the engine. */
void text_start(void);

/* text_function - return the address of a new function. */
uintptr_t text_function(const char *name);

/* text_run - execute the function at @fn on the CPU of this actor, and check that each of
 * its instructions is executed once.
 */
void text_run(uintptr_t fn);
