/* return.h - follow functions until they return. You write return.c and trampoline.asm. */
#pragma once

#include <stdint.h>

#define RETURN_MAX                                                                       \
    1024 /* calls of one thread that are followed at the same time, at most */

/* return_enter - a function that is followed has been called.
 * @slot:      where its return address lies; rsp pointed there at its first instruction
 * @argument:  its first argument
 *
 * Is called at the first instruction of the function, by any thread, with all registers saved
 * around it. From then on, when the function returns, lab_returned() has to be called once,
 * and then the program goes on as it would have gone. With RETURN_MAX calls on their way in
 * this thread a further one is not followed.
 */
void return_enter(uint64_t *slot, uint64_t argument);

/* lab_returned - the grader's: a followed function returns.
 * @argument:  the one of return_enter()
 * @value:     what the function returns, its rax
 *
 * Is an ordinary function: it wants rsp to be a multiple of 16 before it is called, and may
 * change each register that a function may change, xmm0 too.
 */
void lab_returned(uint64_t argument, uint64_t value);
