/* int3.h - breakpoints in a running process. You write int3.c. */
#pragma once

#include <stdint.h>
#include <ucontext.h>

struct breakpoint {
    uint8_t *at;  /* the first byte of an instruction; it can be written */
    unsigned len; /* bytes of that instruction, 1 to 15 */

    /* Your code calls this handler at each hit, before the instruction is executed.
     * @context has the registers of the program; REG_RIP is the address of the
     * instruction. The handler may change any register but REG_RIP. The handler uses no
     * vector registers, and executes no instruction with a breakpoint.
     */
    void (*handler)(struct breakpoint *bp, ucontext_t *context);

    /* These fields are for your code; the caller does not use them. They may have any
     * values before breakpoint_set().
     */
    uint8_t original;
    uint8_t *copy;
    struct breakpoint *next;
};

/* breakpoint_set - set a breakpoint: from now on each execution of the instruction at
 * @bp->at calls the handler once, and then has the same effect as without the breakpoint.
 *
 * @bp belongs to you until breakpoint_clear(). The instruction has no operand relative to
 * rip, and it is no jump, no call and no return. Hundreds of breakpoints may be set, each
 * at an instruction of its own, and thousands one after another. All threads of the process
 * may execute these instructions at the same time. But only one thread calls
 * breakpoint_set() and breakpoint_clear(), and no other thread is in a hit or near the
 * instruction then.
 */
void breakpoint_set(struct breakpoint *bp);

/* breakpoint_clear - restore the instruction, and call the handler no more.
 *
 * After that @bp belongs to the caller again, which may use its memory for other things.
 */
void breakpoint_clear(struct breakpoint *bp);
