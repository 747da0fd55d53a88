/* opcode_ops.c - the ops and forms of opcode_ops.h as tables. Pure. */
#include "probes/insn/opcode_ops.h"

#include "probes/insn/opcode_map.h"

#define OP_ROW(name, kind, class, use, fr, fw, rr, rw)                                   \
    [OP_##name] = { INSN_##kind, INSN_CLASS_##class, use, fr, fw, rr, rw },
#define FORM_ROW(name, p1, w1, p2, w2, imm, modrm)                                       \
    [FM_##name] = { p1, w1, p2, w2, imm, modrm },

const struct opcode_op_facts opcode_op_table[OP_COUNT] = { OPCODE_OPS(OP_ROW) };
const struct opcode_form_facts opcode_form_table[FM_COUNT] = { OPCODE_FORMS(FORM_ROW) };
