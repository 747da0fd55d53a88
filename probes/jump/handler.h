/* handler.h - finds out what a handler may do to the registers of its caller, and with the
 * image.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* handler_read - as handler_keeps_callee_saved(); with @image, as handler_needs_no_image() */
bool handler_read(uintptr_t fn, bool image);

/* handler_keeps_callee_saved - can the C function at @fn be left in the middle? True if
 * none of its instructions changes rbx, r12 to r15, a flag of the CPU such as IF, or the
 * preemption count: then these have the caller's values at any point of the function. rbp
 * is not looked at. False if the function calls another one, or cannot be decoded to its
 * end. Context: thread.  Locks: PLAT_PROBES held.
 */
static inline bool handler_keeps_callee_saved(uintptr_t fn)
{
    return handler_read(fn, false);
}

/* handler_needs_no_image - the same, and: does the pre-handler at @fn, wherever it returns,
 * return 0 without a look at its second argument? Context, locks: as above.
 */
static inline bool handler_needs_no_image(uintptr_t fn)
{
    return handler_read(fn, true);
}
