/* handler.h - what a handler may do to the registers of its caller. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* handler_keeps_callee_saved - does the C function at @fn, wherever in it one looks, leave
 * alone the registers that its caller is to find unchanged, except rbp, and interrupts as
 * they are? Then nothing is lost when the function is left in the middle. A function that
 * calls another one, or that cannot be read to its end, does not count as such.
 *
 * Context: thread.  Locks: PLAT_PROBES held.
 */
bool handler_keeps_callee_saved(uintptr_t fn);
