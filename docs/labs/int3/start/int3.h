/* int3.h - breakpoints in a running process. You write int3.c. */
#pragma once

#include <stdint.h>
#include <ucontext.h>

struct breakpoint {
    uint8_t *at;  /* the first byte of an instruction; it can be written */
    unsigned len; /* bytes of that instruction, 1 to 15 */

    /* Is called at each hit, before the instruction is executed. @context has the registers
     * of the program; REG_RIP is the address of the instruction. It may change any register
     * but REG_RIP. It uses no vector registers, and hits no breakpoint itself.
     */
    void (*handler)(struct breakpoint *bp, ucontext_t *context);

    /* These are yours. */
    uint8_t original;
    uint8_t *copy;
    struct breakpoint *next;
};

/* breakpoint_set - from now on each execution of the instruction at @bp->at calls the handler
 * once and then has the same effect as without the breakpoint.
 *
 * @bp belongs to you until breakpoint_clear(). The instruction has no operand relative to
 * rip, and it is no jump, no call and no return. Many breakpoints may be set, each at an
 * instruction of its own. All threads of the process may execute them at the same time, but
 * set and clear are called by one thread, while no other thread is near the instruction.
 */
void breakpoint_set(struct breakpoint *bp);

/* breakpoint_clear - the instruction is as it was, and the handler is called no more.
 *
 * @bp belongs to the caller again, and its memory may be used for something else.
 */
void breakpoint_clear(struct breakpoint *bp);
