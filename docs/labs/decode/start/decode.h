/* decode.h - how long is an instruction? You write decode.c. */
#pragma once

#include <stdint.h>

/* insn_length - the bytes of the instruction at @code, 1 to 15.
 * @code:  at least 15 bytes, the beginning of a valid integer instruction in 64-bit mode:
 *         one of the one-byte opcodes or of those behind 0f; no x87, SSE, AVX or XOP, and no
 *         near branch with the prefix 66
 */
unsigned insn_length(const uint8_t *code);
