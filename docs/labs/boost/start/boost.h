/* boost.h - instructions that run somewhere else. You write boost.c. */
#pragma once

#include <stdint.h>

enum kind {
    PLAIN,        /* does the same at any address */
    RIP_RELATIVE, /* has a memory operand relative to rip */
    JMP,          /* eb or e9: jumps to target */
    JCC,          /* 70 to 7f, or 0f 80 to 0f 8f: jumps to target, or goes on */
    CALL,         /* e8: calls target */
    LOOP,         /* e0 to e3, without prefix: loop, jrcxz; jumps to target, or goes on */
};

struct insn {
    const uint8_t *bytes;
    unsigned len;
    uint64_t addr; /* the address of the instruction */
    enum kind kind;
    unsigned disp_offset; /* RIP_RELATIVE: offset in bytes[] of the 4-byte displacement */
    uint64_t target;      /* of a branch: where it leads to */
};

#define CELL_SIZE 64

/* boost - write code that does at @cell what @insn does at its own address, and that then
 * continues where the program would continue.
 * @out:   write the code here: up to CELL_SIZE bytes
 * @cell:  the address at which these bytes will be executed
 *
 * The program may keep data in the 128 bytes below rsp, its red zone: only the copy of a
 * call writes there, where the call itself would write.
 *
 * After your code, all registers and flags must be as after the instruction itself. The
 * return address of a call must be the address behind @insn, as the program expects. Any
 * number of threads may execute the code at the same time; it cannot write to its cell.
 *
 * Return: the number of bytes written; 0: a displacement of 32 bits does not reach far
 *         enough. Then the bytes in @out do not matter.
 */
unsigned boost(uint8_t *out, uint64_t cell, const struct insn *insn);
