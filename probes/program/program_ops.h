/* program_ops.h - the table of operations. A further one is a row here, and a struct
 * program_op in a file of its own, or in that of its family.
 */
#pragma once

/* X(name in capitals, name) */
#define KPROBE_OPS(X)                                                                    \
    X(END, end)                                                                          \
    X(GET, get)                                                                          \
    X(LOAD, load)                                                                        \
    X(ADD, add)                                                                          \
    X(SUB, sub)                                                                          \
    X(AND, and)                                                                          \
    X(OR, or)                                                                            \
    X(XOR, xor)                                                                          \
    X(SHL, shl)                                                                          \
    X(SHR, shr)                                                                          \
    X(SAR, sar)                                                                          \
    X(EXTEND, extend)                                                                    \
    X(IF, if)                                                                            \
    X(EVERY, every)                                                                      \
    X(UNLESS, unless)                                                                    \
    X(LOG2, log2)                                                                        \
    X(LINEAR, linear)                                                                    \
    X(SMALL, small)                                                                      \
    X(BY, by)                                                                            \
    X(COUNT, count)                                                                      \
    X(SUM, sum)                                                                          \
    X(MIN, min)                                                                          \
    X(MAX, max)                                                                          \
    X(CALL, call)                                                                        \
    X(RESERVE, reserve)                                                                  \
    X(STORE, store)                                                                      \
    X(COMMIT, commit)

#define KPROBE_OP_ID(NAME, name) KPROBE_OP_##NAME,
enum kprobe_opcode { KPROBE_OPS(KPROBE_OP_ID) KPROBE_OPCODES };
