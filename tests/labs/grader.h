/* grader.h - what a lab's grader.c is made of. Hosted.
 *
 * The same grader is linked twice, with the student's files and with those that are known to
 * be right, and both programs run the same case of the same seed. A case states facts; the
 * student's facts must be the same. So a program that carries the student's code never has
 * the right answers in its memory, and text that it prints is worth nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One line of the rubric. */
struct lab_line {
    const char *name;
    void (*run)(void); /* states the facts of one case */
};

/* Ends with a row without a name. */
extern const struct lab_line lab_lines[];

/* lab_fact - state what was seen, as printf() does. A line of its own. */
void lab_fact(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* LAB_WRONG - begins a fact that the right answers never have: a grader that states it with
 * them is broken, and says so.
 */
#define LAB_WRONG "wrong: "

/* lab_random - a number that depends on the seed, the line and the case only.
 * lab_below - one that is less than @limit, which is not 0.
 */
uint64_t lab_random(void);
unsigned lab_below(unsigned limit);

/* lab_case - the number of this case in its line, from 0. */
extern unsigned lab_case;

/* lab_digest - a number that stands for @len bytes, to state long facts in short. */
uint64_t lab_digest(uint64_t before, const void *bytes, unsigned long len);

/* lab_text_new - memory that can be written and executed, below 2 GiB, full of int3.
 * Never freed. The process ends when it cannot be had.
 */
uint8_t *lab_text_new(unsigned long size);

/* lab_program - the code of a program of this machine: at *@code, never unmapped.
 * @nth:  another number is another program, as far as there are some
 * Return: how many bytes.
 */
size_t lab_program(unsigned nth, const uint8_t **code);

/* Registers of a piece of code: before it runs, then behind it. */
struct lab_regs {
    uint64_t ax, cx, dx, bx, bp, si, di, r8, r9, r10, r11, r12, r13, r14, r15, flags;
};

#define LAB_FLAGS 0x8d5u /* CF PF AF ZF SF OF */

/* lab_call - call @function with @regs in the registers, and put there what they are then.
 * lab_regs_random - random numbers in all of them; of the flags LAB_FLAGS only.
 * lab_regs_fact - state them.
 */
void lab_call(struct lab_regs *regs, const void *function);
void lab_regs_random(struct lab_regs *regs);
void lab_regs_fact(const struct lab_regs *regs);

#define LAB_INSN_MAX 8

/* lab_insn_random - one random instruction that only computes in registers, never in rsp.
 * @out:  LAB_INSN_MAX bytes
 * Return: its length.
 */
unsigned lab_insn_random(uint8_t *out);
