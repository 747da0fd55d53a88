/* registers.h - the table of the general registers: for each its name, its field of struct
 * pt_regs, its number in instructions, and that of gdb and DWARF. Pure.
 */
#pragma once

#include "kernel/base/regs.h"

#include <stddef.h>

/* X(name, field, number in instructions, of gdb, in DWARF) */
#define REGISTERS(X)                                                                     \
    X("rax", ax, 0, 0, 0)                                                                \
    X("rcx", cx, 1, 2, 2)                                                                \
    X("rdx", dx, 2, 3, 1)                                                                \
    X("rbx", bx, 3, 1, 3)                                                                \
    X("rsp", sp, 4, 7, 7)                                                                \
    X("rbp", bp, 5, 6, 6)                                                                \
    X("rsi", si, 6, 4, 4)                                                                \
    X("rdi", di, 7, 5, 5)                                                                \
    X("r8", r8, 8, 8, 8)                                                                 \
    X("r9", r9, 9, 9, 9)                                                                 \
    X("r10", r10, 10, 10, 10)                                                            \
    X("r11", r11, 11, 11, 11)                                                            \
    X("r12", r12, 12, 12, 12)                                                            \
    X("r13", r13, 13, 13, 13)                                                            \
    X("r14", r14, 14, 14, 14)                                                            \
    X("r15", r15, 15, 15, 15)

#define REGISTERS_COUNT 16
