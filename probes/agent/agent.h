/* agent.h - gdb's agent expressions: small programs that gdb compiles from C, for conditions
 * of breakpoints, for dprintf, and for what a tracepoint or a question collects.
 *
 * A program is bytes: an opcode, its operands, the next opcode. It works on a stack of words
 * of 64 bits. Jumps lead forward only, so a program of n instructions ends after n at most.
 * A program is verified once, when it comes; at a hit nothing is checked but what depends on
 * values: a divisor, an address.
 *
 *     26 00 04   22 64   15   27             reg 4; const8 100; less_unsigned; end
 *
 * The room is pure: it owns nothing, allocates nothing and takes no lock. What a program
 * reads, and where its output goes, its caller says in a struct agent_world.
 *
 * Source: GDB manual, "The GDB Agent Expression Mechanism".
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_CODE_MAX 1024   /* bytes of a program */
#define AGENT_STACK_MAX 32    /* words */
#define AGENT_FORMAT_MAX 256  /* bytes of a format of printf, its NUL included */
#define AGENT_TRACE_MAX 65535 /* bytes of memory that one instruction collects at most */
#define AGENT_TEXT_MAX 512    /* bytes that one printf prints at most, its NUL included */

/* Gdb's numbers: rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8 to r15, then these. */
#define AGENT_REG_IP 16
#define AGENT_REGS 20 /* eflags, cs and ss are the last ones that an image has */

/* What a program may do, and must. */
enum agent_use {
    AGENT_VALUE = 1,   /* it leaves a value: a condition, an argument */
    AGENT_COLLECT = 2, /* trace, trace_quick, trace16, tracenz, tracev */
    AGENT_PRINT = 4,   /* printf */
    AGENT_VARS = 8,    /* getv, setv: variables of the trace */
};

/* Why a program is refused, or did not come to its end. */
struct agent_problem {
    const char *why; /* a text, without the place */
    uint16_t at;     /* offset of the instruction */
    uint8_t op;      /* its opcode; 0: there is none at @at */
    uintptr_t addr;  /* memory that cannot be read; 0: it is not about memory */
};

/* agent_verify - may the program be run?
 * @code, @len: the program; not kept
 * @use:        enum agent_use, ORed
 * @problem:    filled where it is refused; may be NULL
 *
 * Verified is that each instruction is known and whole; that jumps lead forward, to the start
 * of an instruction; that the stack has the same depth on all ways to an instruction, is
 * never popped empty and never deeper than AGENT_STACK_MAX; that all ways come to an `end`,
 * with a value there if AGENT_VALUE is wanted; that registers exist, and widths and formats
 * are right; that every instruction can be reached.
 *
 * Context: any. It takes 2 KiB of stack.
 * Return:  0; -EINVAL; -E2BIG it is longer than AGENT_CODE_MAX; -EOPNOTSUPP an opcode that
 *          exists, but not here: floating point, or what @use leaves out.
 */
int agent_verify(const uint8_t *code, size_t len, unsigned use,
                 struct agent_problem *problem);

/* What a program sees of the hit. Each function is called in the context of agent_run(); a
 * function that the program's uses do not need may be NULL.
 */
struct agent_world {
    const struct pt_regs *regs;
    uintptr_t
        ip; /* the probed instruction, for register 16: that of @regs may be behind it */
    void *arg; /* handed to the functions */
    /* Copy @len bytes of memory at @addr. Return: 0; -EFAULT they cannot be read. */
    int (*read)(void *arg, void *dst, uintptr_t addr, size_t len);
    /* The variable @number of the trace: read into @value, or set from there.
     * Return: 0; -ENOENT there is none.
     */
    int (*var)(void *arg, unsigned number, bool set, int64_t *value);
    /* Put memory, at most AGENT_TRACE_MAX bytes, or a variable, into the frame of the
     * trace.  Return: 0; -EFAULT; -ENOSPC.
     */
    int (*collect)(void *arg, uintptr_t addr, size_t len);
    int (*collect_var)(void *arg, unsigned number);
    /* @len bytes of text; a NUL is behind them. Return: 0; an error ends the program. */
    int (*print)(void *arg, const char *text, size_t len);
};

/* agent_run - run a program that agent_verify() has let pass.
 * @value:   gets what it leaves on top of its stack, 0 where that is empty; may be NULL
 * @problem: filled where it fails; may be NULL
 *
 * Context: any.  Locks: none. It takes 1 KiB of stack, and with printf another.
 * Return:  0; -EFAULT memory cannot be read; -EDOM a division by zero, or one whose result is
 *          too large; -E2BIG more memory than AGENT_TRACE_MAX; what a function of @world has
 *          refused with. @value is untouched then.
 * Cost:    a few cycles for each instruction, at most as many as it has; no loop, and for
 *          tracenz one call for 16 bytes.
 */
int agent_run(const uint8_t *code, const struct agent_world *world, uint64_t *value,
              struct agent_problem *problem);

/* agent_op_name - "ref32"; "?" for a byte that is no opcode. Context: any. */
const char *agent_op_name(uint8_t op);

/* agent_problem_text - a sentence for people: "ref32 at 5: memory at 0x0 cannot be read".
 * Return: its length, without its NUL; @size or more means cut short. Context: any.
 */
int agent_problem_text(const struct agent_problem *problem, char *buf, size_t size);

/* agent_register - register @number, below AGENT_REGS, of @world. Context: any. */
uint64_t agent_register(const struct agent_world *world, unsigned number);
