/* agent_op.h - the table of opcodes of agent expressions, between the files of the room. */
#pragma once

#include "probes/agent/agent.h"

/* What stands behind an opcode, and how its instruction is to be looked at. */
enum agent_shape {
    AGENT_NONE,     /* no opcode */
    AGENT_PLAIN,    /* nothing more than the columns say */
    AGENT_FLOAT,    /* floating point, which no kernel has */
    AGENT_JUMP,     /* 2 bytes: where to; nothing goes on behind it */
    AGENT_BRANCH,   /* the same, if what it pops is not 0 */
    AGENT_WIDTH,    /* 1 byte: 1 to 64 bits */
    AGENT_PICK,     /* 1 byte: which word, from the top */
    AGENT_REGISTER, /* 2 bytes: gdb's number */
    AGENT_END,
    AGENT_FORMAT, /* 1 byte: words; 2 bytes: bytes of the format behind them, with its NUL */
};

struct agent_op {
    const char *name;
    uint8_t operands; /* bytes */
    uint8_t pops, pushes;
    uint8_t shape; /* enum agent_shape */
    uint8_t use;   /* the enum agent_use that allows it; 0: it is always allowed */
};

/* Gdb's numbers. */
enum agent_opcode {
    OP_FLOAT = 0x01,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV_SIGNED,
    OP_DIV_UNSIGNED,
    OP_REM_SIGNED,
    OP_REM_UNSIGNED,
    OP_LSH,
    OP_RSH_SIGNED,
    OP_RSH_UNSIGNED,
    OP_TRACE,
    OP_TRACE_QUICK,
    OP_LOG_NOT,
    OP_BIT_AND,
    OP_BIT_OR,
    OP_BIT_XOR,
    OP_BIT_NOT,
    OP_EQUAL,
    OP_LESS_SIGNED,
    OP_LESS_UNSIGNED,
    OP_EXT,
    OP_REF8,
    OP_REF16,
    OP_REF32,
    OP_REF64,
    OP_REF_FLOAT,
    OP_REF_DOUBLE,
    OP_REF_LONG_DOUBLE,
    OP_L_TO_D,
    OP_D_TO_L,
    OP_IF_GOTO,
    OP_GOTO,
    OP_CONST8,
    OP_CONST16,
    OP_CONST32,
    OP_CONST64,
    OP_REG,
    OP_END,
    OP_DUP,
    OP_POP,
    OP_ZERO_EXT,
    OP_SWAP,
    OP_GETV,
    OP_SETV,
    OP_TRACEV,
    OP_TRACENZ,
    OP_TRACE16,
    OP_PICK = 0x32,
    OP_ROT,
    OP_PRINTF,
    AGENT_OPS,
};

_Static_assert(OP_END == 0x27 && OP_TRACE16 == 0x30 && OP_PRINTF == 0x34,
               "the numbers are gdb's");

extern const struct agent_op agent_ops[AGENT_OPS]; /* 0 is no opcode */

/* agent_op_get - its row; one of AGENT_NONE for a byte that is no opcode. Context: any. */
static inline const struct agent_op *agent_op_get(uint8_t op)
{
    return &agent_ops[op < AGENT_OPS ? op : 0];
}

/* agent_number - @bytes bytes as a number, the highest byte first. Context: any. */
static inline uint64_t agent_number(const uint8_t *at, unsigned bytes)
{
    uint64_t number = 0;

#pragma GCC unroll 8
    for (unsigned i = 0; i < bytes; i++)
        number = number << 8 | at[i];
    return number;
}

/* agent_format_check - may @format be printed with @count words?
 * @len: bytes of it, its NUL included
 *
 * Context: any.
 * Return:  NULL; else why not, as a text.
 */
const char *agent_format_check(const char *format, size_t len, unsigned count);

/* agent_format - print words by a format that agent_format_check() has let pass.
 * @word: as many as the format has conversions
 * @buf:  @size bytes; a text that is longer is cut. A text that cannot be read is shown as
 *        (fault).
 *
 * Context: any.  Return: the length of the text in @buf, without its NUL.
 */
size_t agent_format(const char *format, const uint64_t *word,
                    const struct agent_world *world, char *buf, size_t size);
