/* return.h - follows functions to their return. You write return.c and trampoline.asm. */
#pragma once

#include <stdint.h>

#define RETURN_MAX                                                                       \
    1024 /* calls of one thread that are followed at the same time, at most */

/* return_enter - begin to follow a call of a function.
 * @slot:      the place of the function's return address; rsp pointed there at its first
 *             instruction
 * @argument:  the first argument of the function
 *
 * The followed function calls return_enter() at its first instruction, in any thread, and
 * saves all registers around that. When the function returns, your code has to call
 * lab_returned() once. After that the program must go on as it would have gone. If
 * RETURN_MAX calls are followed in this thread already, do not follow this call.
 */
void return_enter(uint64_t *slot, uint64_t argument);

/* lab_returned - tell the grader that a followed function returns. The grader
 * has this function.
 * @argument:  the argument of return_enter()
 * @value:     the return value of the function, its rax
 *
 * It is an ordinary function: rsp must be a multiple of 16 before the call, it may change
 * each register that a function may change, also xmm0, and it may call followed functions.
 * While it runs, the call that it tells of is not followed any more.
 */
void lab_returned(uint64_t argument, uint64_t value);
