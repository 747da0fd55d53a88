/* grader.h - functions for a lab's grader.c. Hosted.
 *
 * The same grader is linked twice: with the student's files, and with files that are
 * known to be right. Both programs run the same case of the same seed. A case states
 * facts, and the facts of both programs must be the same. So the program with the
 * student's code never has the right answers in its memory, and text that the student's
 * code prints has no effect.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One line of the rubric. */
struct lab_line {
    const char *name;
    void (*run)(void); /* states the facts of one case */
};

/* The array ends with a row without a name. */
extern const struct lab_line lab_lines[];

/* lab_fact - state a fact as one line. The arguments are those of printf(). */
void lab_fact(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* LAB_WRONG - begins a fact that never occurs with right answers. If the program with the
 * right answers states such a fact, grade.py reports that the grader is broken.
 */
#define LAB_WRONG "wrong: "

/* lab_random - return the next random number. The sequence depends only on the seed, the
 * line and the case.
 * lab_below - return a random number that is less than @limit. @limit must not be 0.
 */
uint64_t lab_random(void);
unsigned lab_below(unsigned limit);

/* lab_case - the number of this case in its line, from 0. */
extern unsigned lab_case;

/* lab_digest - compute a checksum of @len bytes, to state a long fact in a short form.
 * @before: the checksum of the bytes before these
 */
uint64_t lab_digest(uint64_t before, const void *bytes, unsigned long len);

/* lab_text_new - allocate memory that can be written and executed, below 2 GiB, full of
 * int3. It is never freed. The process ends if there is no such memory.
 */
uint8_t *lab_text_new(unsigned long size);

/* lab_program - map the code of a program of this machine at *@code. It
 * is never unmapped.
 * @nth:  which of several programs; programs that this machine lacks are skipped
 * Return: the number of bytes.
 */
size_t lab_program(unsigned nth, const uint8_t **code);

/* The registers before or after a piece of code, and behind it a checksum of the words below
 * rsp, where the code may keep data.
 */
struct lab_regs {
    uint64_t ax, cx, dx, bx, bp, si, di, r8, r9, r10, r11, r12, r13, r14, r15, flags;
    uint64_t below;
    uint64_t vectors[32]; /* xmm0 to xmm15 */
};

#define LAB_FLAGS 0x8d5u /* CF PF AF ZF SF OF */

/* lab_call - call @function with @regs in the registers, and store the registers in @regs
 * after the call.
 * lab_regs_random - put random numbers into all registers, and into the flags LAB_FLAGS.
 * lab_regs_fact - state the registers as facts.
 */
void lab_call(struct lab_regs *regs, const void *function);
void lab_regs_random(struct lab_regs *regs);
void lab_regs_fact(const struct lab_regs *regs);

#define LAB_INSN_MAX 8
#define LAB_INSN_LONGEST 15

/* lab_insn_random - write a random instruction that only computes in registers,
 * not in rsp.
 * lab_insn_longest - the same, as long as an instruction can be.
 * @out:  LAB_INSN_MAX bytes; LAB_INSN_LONGEST bytes
 * Return: the length of the instruction.
 */
unsigned lab_insn_random(uint8_t *out);
unsigned lab_insn_longest(uint8_t *out);
