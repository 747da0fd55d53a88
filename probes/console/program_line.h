/* program_line.h - the program of a probe as users write it: `probe add --if COND --every N`;
 * and, for each probe after `probe hide`, what tells the hits of hidden threads apart.
 *
 *     COND = OPERAND COMPARISON NUMBER [and COND]
 *     OPERAND = REGISTER | PARAMETER | cpu | thread | [REGISTER[+N]]
 *
 * REGISTER is rax ... r15. PARAMETER is one of the probed function, at its entry. [rdi+8] is
 * the word of 8 bytes there; if it cannot be read, the condition does not hold. COMPARISON is
 * <, <=, >, >=, ==, !=; `has` (one of the bits of the number is set) or `lacks` (none is). A
 * negative number makes the comparison signed, and so does a parameter with a sign; == and !=
 * compare the bits that a parameter has. A parameter may be called cpu or thread. The words
 * may stand in one word of the console, in quotes: < and > alone would be redirections.
 */
#pragma once

#include "probes/program/program.h"

#define PROGRAM_LINE_OPS 24

/* The words of its memory. */
enum program_line_word {
    LINE_OTHERS, /* hits that no hidden thread has made */
    LINE_TAKEN,  /* hits that conditions and `every` let through */
    LINE_EVERY,
    LINE_WORDS,
};

/* The program: conditions, then `every`, then the operation that counts in LINE_TAKEN. */
struct program_line {
    struct kprobe_op ops[PROGRAM_LINE_OPS];
    unsigned count;     /* without the operation that counts */
    uint64_t every;     /* 0: no `every` */
    uintptr_t function; /* whose entry is probed; 0: parameters are not known */
};

/* program_line_if - append a condition. @text: COND
 * program_line_every - read the N of `every`.
 * Context: thread.  Return: NULL; or what is wrong, as a part of a sentence.
 */
const char *program_line_if(struct program_line *line, const char *text);
const char *program_line_every(struct program_line *line, const char *text);

/* program_line_is_empty - has the user given neither? */
static inline bool program_line_is_empty(const struct program_line *line)
{
    return !line->count && !line->every;
}

/* program_line_make - make the program of @line. @ops: room for PROGRAM_LINE_OPS; they must
 * stay as long as the program. @hides: hits of hidden threads end it; others count in
 * LINE_OTHERS
 */
void program_line_make(const struct program_line *line, bool hides,
                       struct kprobe_program *out, struct kprobe_op *ops);
