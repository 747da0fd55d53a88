/* boost.h - instructions that run somewhere else. You write boost.c. */
#pragma once

#include <stdint.h>

enum kind {
    PLAIN,        /* means the same everywhere */
    RIP_RELATIVE, /* has a memory operand relative to rip */
    JMP,          /* eb or e9: jumps to target */
    JCC,          /* 70 to 7f, or 0f 80 to 0f 8f: jumps to target, or goes on */
    CALL,         /* e8: calls target */
    LOOP,         /* e0 to e3, without prefix: loop, jrcxz; jumps to target, or goes on */
};

struct insn {
    const uint8_t *bytes;
    unsigned len;
    uint64_t addr; /* where the instruction lies */
    enum kind kind;
    unsigned
        disp_offset; /* RIP_RELATIVE: where in bytes the four of its displacement are */
    uint64_t target; /* of a branch */
};

#define CELL_SIZE 64

/* boost - write code that does at @cell what @insn does in its place, and then continues
 * where the program would.
 * @out:   CELL_SIZE bytes to write to
 * @cell:  the address at which they will be executed
 *
 * All registers and flags are then as behind the instruction itself. A call leaves the
 * return address that the program expects: the one behind @insn.
 *
 * Return: the bytes written; 0 where a displacement of 32 bits does not reach, and then what
 *         is in @out does not matter.
 */
unsigned boost(uint8_t *out, uint64_t cell, const struct insn *insn);
