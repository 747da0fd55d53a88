/* handler.h - what a handler may do to the registers of its caller. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* handler_is_plain - does the C function at @fn, wherever in it one looks, leave alone what
 * its caller is to find unchanged, rbp but, and interrupts as they are? Then no more is lost
 * when it is left in the middle. No function that calls another one, or cannot be read to its
 * end, is.
 *
 * Context: thread.  Locks: PLAT_PROBES held.
 */
bool handler_is_plain(uintptr_t fn);
