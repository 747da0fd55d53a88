/* agent_op.h - the table of the opcodes of agent expressions, and other declarations that
 * the files of this room share.
 */
#pragma once

#include "probes/agent/agent.h"

/* Which operands follow an opcode, and which rules agent_verify() applies to them. */
enum agent_shape {
    AGENT_NONE,     /* there is no such opcode */
    AGENT_PLAIN,    /* no rules beyond the columns of the table */
    AGENT_FLOAT,    /* floating point: always refused */
    AGENT_JUMP,     /* 2 bytes: the target; the program never goes on behind the jump */
    AGENT_BRANCH,   /* 2 bytes: the target; it jumps if the word that it pops is not 0 */
    AGENT_WIDTH,    /* 1 byte: a number of bits, 1 to 64 */
    AGENT_PICK,     /* 1 byte: which word of the stack; 0 is the top */
    AGENT_REGISTER, /* 2 bytes: gdb's number of a register */
    AGENT_END,
    /* 1 byte: how many words to print. 2 bytes: the length of the format, its NUL
     * included. Then the format itself.
     */
    AGENT_FORMAT,
};

struct agent_op {
    const char *name;
    uint8_t operands;     /* bytes, without the format of printf */
    uint8_t pops, pushes; /* words; of printf see words_popped() */
    uint8_t shape;        /* enum agent_shape */
    uint8_t use;          /* the enum agent_use that allows it; 0: it is always allowed */
};

/* Gdb's numbers of the opcodes. */
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

extern const struct agent_op agent_ops[AGENT_OPS]; /* row 0: no opcode */

/* agent_op_get - the table row of @op; a row of shape AGENT_NONE: @op is no opcode.
 * Context: any.
 */
static inline const struct agent_op *agent_op_get(uint8_t op)
{
    return &agent_ops[op < AGENT_OPS ? op : 0];
}

/* agent_number - read the number of @bytes bytes at @at, the most significant byte first.
 * Context: any.
 */
static inline uint64_t agent_number(const uint8_t *at, unsigned bytes)
{
    uint64_t number = 0;

#pragma GCC unroll 8
    for (unsigned i = 0; i < bytes; i++)
        number = number << 8 | at[i];
    return number;
}

/* agent_format_check - check that @format can be printed with @count words.
 * @len: the length of @format in bytes, its NUL included
 *
 * Context: any.
 * Return:  NULL: it can; otherwise a text that says why not.
 */
const char *agent_format_check(const char *format, size_t len, unsigned count);

/* agent_format - print words to @buf, as @format says.
 * @format: a format that agent_format_check() has accepted
 * @word:   one word for each conversion of the format, in their order
 * @world:  to read the strings that %s prints; a string that cannot be read is printed as
 *          "(fault)"
 * @buf:    @size bytes; a longer result is cut
 *
 * Context: any.  Return: the length of the text in @buf, without its NUL.
 */
size_t agent_format(const char *format, const uint64_t *word,
                    const struct agent_world *world, char *buf, size_t size);
