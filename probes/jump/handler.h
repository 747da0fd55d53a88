/* handler.h - finds out what a handler may do to the registers of its caller, and with the
 * image.
 */
#pragma once

#include <stdint.h>

/* What the code of a handler shows. */
enum handler_fact {
    HANDLER_KEEPS = 1, /* none of its instructions changes rbx, r12 to r15, a flag of the
                           * CPU such as IF, or the preemption count, and it calls nothing:
                           * these have the caller's values at any point of the function.
                           * rbp is not looked at */
    HANDLER_NO_IMAGE = 2, /* the same, and wherever it returns, it returns 0 and has not
                           * read its second argument */
};

/* handler_read - what the code of the C function at @fn shows. Return: of enum handler_fact;
 * 0 also if the function cannot be decoded to its end.
 * Context: thread.  Locks: PLAT_PROBES held.
 */
unsigned handler_read(uintptr_t fn);
