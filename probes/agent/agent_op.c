/* agent_op.c - the table of the opcodes of agent expressions; texts of their problems. */
#include "probes/agent/agent_op.h"

#include <stdio.h>

/*           name, bytes of operands, words popped, words pushed, shape, use */
const struct agent_op agent_ops[AGENT_OPS] = {
    [OP_FLOAT] = { "float", 0, 0, 0, AGENT_FLOAT, 0 },
    [OP_ADD] = { "add", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_SUB] = { "sub", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_MUL] = { "mul", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_DIV_SIGNED] = { "div_signed", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_DIV_UNSIGNED] = { "div_unsigned", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_REM_SIGNED] = { "rem_signed", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_REM_UNSIGNED] = { "rem_unsigned", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_LSH] = { "lsh", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_RSH_SIGNED] = { "rsh_signed", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_RSH_UNSIGNED] = { "rsh_unsigned", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_TRACE] = { "trace", 0, 2, 0, AGENT_PLAIN, AGENT_COLLECT },
    [OP_TRACE_QUICK] = { "trace_quick", 1, 1, 1, AGENT_PLAIN, AGENT_COLLECT },
    [OP_LOG_NOT] = { "log_not", 0, 1, 1, AGENT_PLAIN, 0 },
    [OP_BIT_AND] = { "bit_and", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_BIT_OR] = { "bit_or", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_BIT_XOR] = { "bit_xor", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_BIT_NOT] = { "bit_not", 0, 1, 1, AGENT_PLAIN, 0 },
    [OP_EQUAL] = { "equal", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_LESS_SIGNED] = { "less_signed", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_LESS_UNSIGNED] = { "less_unsigned", 0, 2, 1, AGENT_PLAIN, 0 },
    [OP_EXT] = { "ext", 1, 1, 1, AGENT_WIDTH, 0 },
    [OP_REF8] = { "ref8", 0, 1, 1, AGENT_PLAIN, 0 },
    [OP_REF16] = { "ref16", 0, 1, 1, AGENT_PLAIN, 0 },
    [OP_REF32] = { "ref32", 0, 1, 1, AGENT_PLAIN, 0 },
    [OP_REF64] = { "ref64", 0, 1, 1, AGENT_PLAIN, 0 },
    [OP_REF_FLOAT] = { "ref_float", 0, 1, 1, AGENT_FLOAT, 0 },
    [OP_REF_DOUBLE] = { "ref_double", 0, 1, 1, AGENT_FLOAT, 0 },
    [OP_REF_LONG_DOUBLE] = { "ref_long_double", 0, 1, 1, AGENT_FLOAT, 0 },
    [OP_L_TO_D] = { "l_to_d", 0, 1, 1, AGENT_FLOAT, 0 },
    [OP_D_TO_L] = { "d_to_l", 0, 1, 1, AGENT_FLOAT, 0 },
    [OP_IF_GOTO] = { "if_goto", 2, 1, 0, AGENT_BRANCH, 0 },
    [OP_GOTO] = { "goto", 2, 0, 0, AGENT_JUMP, 0 },
    [OP_CONST8] = { "const8", 1, 0, 1, AGENT_PLAIN, 0 },
    [OP_CONST16] = { "const16", 2, 0, 1, AGENT_PLAIN, 0 },
    [OP_CONST32] = { "const32", 4, 0, 1, AGENT_PLAIN, 0 },
    [OP_CONST64] = { "const64", 8, 0, 1, AGENT_PLAIN, 0 },
    [OP_REG] = { "reg", 2, 0, 1, AGENT_REGISTER, 0 },
    [OP_END] = { "end", 0, 0, 0, AGENT_END, 0 },
    [OP_DUP] = { "dup", 0, 1, 2, AGENT_PLAIN, 0 },
    [OP_POP] = { "pop", 0, 1, 0, AGENT_PLAIN, 0 },
    [OP_ZERO_EXT] = { "zero_ext", 1, 1, 1, AGENT_WIDTH, 0 },
    [OP_SWAP] = { "swap", 0, 2, 2, AGENT_PLAIN, 0 },
    [OP_GETV] = { "getv", 2, 0, 1, AGENT_PLAIN, AGENT_VARS },
    [OP_SETV] = { "setv", 2, 1, 1, AGENT_PLAIN, AGENT_VARS },
    [OP_TRACEV] = { "tracev", 2, 0, 0, AGENT_PLAIN, AGENT_COLLECT },
    [OP_TRACENZ] = { "tracenz", 0, 2, 0, AGENT_PLAIN, AGENT_COLLECT },
    [OP_TRACE16] = { "trace16", 2, 1, 1, AGENT_PLAIN, AGENT_COLLECT },
    [OP_PICK] = { "pick", 1, 0, 1, AGENT_PICK, 0 },
    [OP_ROT] = { "rot", 0, 3, 3, AGENT_PLAIN, 0 },
    [OP_PRINTF] = { "printf", 3, 0, 0, AGENT_FORMAT, AGENT_PRINT },
};

/* The name of an opcode, such as "ref32"; "?": it is no opcode. */
static const char *agent_op_name(uint8_t op)
{
    const struct agent_op *row = agent_op_get(op);

    return row->name ? row->name : "?";
}

int agent_problem_text(const struct agent_problem *problem, char *buf, size_t size)
{
    if (!problem->op)
        return snprintf(buf, size, "at %u: %s", problem->at, problem->why);
    if (problem->addr)
        return snprintf(buf, size, "%s at %u: %s (0x%lx)", agent_op_name(problem->op),
                        problem->at, problem->why, problem->addr);
    return snprintf(buf, size, "%s at %u: %s", agent_op_name(problem->op), problem->at,
                    problem->why);
}
