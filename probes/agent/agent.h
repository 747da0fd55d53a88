/* agent.h - verify and run gdb's agent expressions. These are small programs in bytecode,
 * which gdb compiles from C expressions: conditions of breakpoints, arguments of dprintf,
 * the values that a tracepoint collects, and arguments of events (docs/trace.md).
 *
 * A program computes on a stack of its own. Jumps lead forward only, so a program of n
 * instructions ends after at most n of them. It is verified once, when the kernel receives
 * it; agent_run() checks only what depends on values.
 *
 *     26 00 04   22 64   15   27             reg 4; const8 100; less_unsigned; end
 *
 * The room is pure: a struct agent_world gives a program the registers and memory of a hit.
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

/* Gdb's numbers of registers: 0 to 15 are rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8 to
 * r15. Then come rip, eflags, cs and ss.
 */
#define AGENT_REG_IP 16
#define AGENT_REGS 20 /* the image has gdb's registers 0 to 19, and no others */

/* What the caller of agent_verify() demands (AGENT_VALUE) or allows (the other bits). */
enum agent_use {
    AGENT_VALUE = 1,   /* the program must leave a value: a condition, an argument */
    AGENT_COLLECT = 2, /* allow trace, trace_quick, trace16, tracenz, tracev */
    AGENT_PRINT = 4,   /* allow printf */
    AGENT_VARS = 8,    /* allow getv and setv, which access gdb's trace state variables */
};

/* Why a program was refused, or failed before its end. */
struct agent_problem {
    const char *why; /* a text, which does not name the place */
    uint16_t at;     /* offset of the instruction in the program, in bytes */
    uint8_t op;      /* the instruction's opcode; 0: there is no opcode at @at */
    uintptr_t addr;  /* the memory that cannot be read; 0: no such address is known */
};

/* agent_verify - check once that agent_run() may run a program.
 * @code, @len: the program; no pointer to it is kept
 * @use:        enum agent_use, ORed
 * @problem:    filled if the program is refused; may be NULL
 *
 * Opcodes, operands and formats are valid. Every instruction can be reached, by jumps that
 * lead forward, and finds the same depth of the stack on all ways, within AGENT_STACK_MAX.
 * Every way comes to an `end`, with AGENT_VALUE with a value on the stack.
 *
 * Context: any. It takes 2 KiB of the kernel stack.
 * Return:  0; -EINVAL a rule is broken; -E2BIG the program is longer than AGENT_CODE_MAX;
 *          -EOPNOTSUPP an opcode for floating point, or that @use does not allow.
 */
int agent_verify(const uint8_t *code, size_t len, unsigned use,
                 struct agent_problem *problem);

/* How a program accesses the hit for which it runs: the registers, memory, variables, and
 * the output. agent_run() calls the functions in its own context. A function that no
 * instruction of the program needs may be NULL.
 */
struct agent_world {
    const struct pt_regs *regs;
    /* The address of the probed instruction, as register 16. regs->ip may already be the
     * address behind that instruction.
     */
    uintptr_t ip;
    void *arg; /* passed to the functions */
    /* Copy @len bytes of memory at @addr to @dst.
     * Return: 0; -EFAULT they cannot be read.
     */
    int (*read)(void *arg, void *dst, uintptr_t addr, size_t len);
    /* Read the trace state variable @number into *@value, or, if @set, write *@value to
     * the variable.
     * Return: 0; -ENOENT there is no such variable.
     */
    int (*var)(void *arg, unsigned number, bool set, int64_t *value);
    /* Append to the trace frame: @len bytes of memory, at most AGENT_TRACE_MAX, or the
     * value of a variable.  Return: 0; -EFAULT; -ENOSPC.
     */
    int (*collect)(void *arg, uintptr_t addr, size_t len);
    int (*collect_var)(void *arg, unsigned number);
    /* Print @len bytes of text; a NUL follows them.
     * Return: 0; an error ends the program.
     */
    int (*print)(void *arg, const char *text, size_t len);
};

/* agent_run - run a program.
 * @code:    the program, which agent_verify() has accepted
 * @value:   receives the word on top of the stack at `end`, else 0; may be NULL
 * @problem: filled if the program fails; may be NULL
 *
 * Context: any.  Locks: none. It takes 1 KiB of the kernel stack; with printf 2 KiB.
 * Return:  0; -EFAULT memory cannot be read; -EDOM a division by zero, or of INT64_MIN by
 *          -1; -E2BIG more than AGENT_TRACE_MAX bytes to collect; or the error of a function
 *          of @world. On error *@value does not change.
 * Cost:    a few cycles for each instruction.
 */
int agent_run(const uint8_t *code, const struct agent_world *world, uint64_t *value,
              struct agent_problem *problem);

/* agent_problem_text - write @problem to @buf as a sentence for the user.
 * Return: as snprintf(). Context: any.
 */
int agent_problem_text(const struct agent_problem *problem, char *buf, size_t size);

/* agent_register - the value of register @number in @world.
 * @number: gdb's number, below AGENT_REGS
 * Context: any.
 */
uint64_t agent_register(const struct agent_world *world, unsigned number);
