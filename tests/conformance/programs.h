/* programs.h - programs of passes: between them, all operations. Each runs in front of each
 * instruction, in every way of a hit; the words that it leaves are those that it leaves in C,
 * run with the registers of the setup.
 */
#pragma once

#include "tests/conformance/pass.h"

#define PROGRAM_PASS_WORDS 256

/* Without a call, and with calls and a record. */
extern const struct kprobe_program program_of_words, program_of_calls;

/* programs_before - note the words as they are in front of a run.
 * programs_check - what is wrong with the words, the calls and the record of @a.
 * Return: NULL: nothing.
 */
void programs_before(const struct attempt *a);
const char *programs_check(const struct attempt *a);
