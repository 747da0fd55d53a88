/* decode.h - finds out how long an instruction is. You write decode.c. */
#pragma once

#include <stdint.h>

/* insn_length - return the length in bytes of the instruction at @code, 1 to 15.
 * @code:  at least 15 bytes. They begin with a valid integer instruction of 64-bit mode.
 *         Its opcode is one byte, or 0f and one byte. It is no x87, SSE, AVX or XOP
 *         instruction, and no near branch with the prefix 66.
 */
unsigned insn_length(const uint8_t *code);
