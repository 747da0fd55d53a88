/* handler.h - finds out what a handler may do to the registers of its caller, and with the
 * image.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* handler_keeps_callee_saved - can the C function at @fn be left in the middle? True if
 * none of its instructions changes rbx, r12 to r15, a flag of the CPU such as IF, or the
 * preemption count: then these have the caller's values at any point of the function. rbp
 * is not looked at. False if the function calls another one, or cannot be decoded to its
 * end. Context: thread.  Locks: PLAT_PROBES held.
 */
bool handler_keeps_callee_saved(uintptr_t fn);
/* handler_needs_no_image - the same, and: does the pre-handler at @fn, wherever it returns,
 * return 0 without a look at its second argument? Context, locks: as above.
 */
bool handler_needs_no_image(uintptr_t fn);
