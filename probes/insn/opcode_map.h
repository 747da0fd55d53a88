/* opcode_map.h - find out what an opcode means. Private to probes/insn. */
#pragma once

#include "probes/insn/insn.h"
#include "probes/insn/opcode_ops.h"

struct opcode_op_facts {
    uint8_t kind;  /* enum insn_kind */
    uint8_t class; /* enum insn_class */
    uint32_t use;  /* U_* */
    uint32_t flags_read, flags_written;
    uint32_t regs_read, regs_written; /* the implied ones, not the operands */
};

struct opcode_form_facts {
    uint8_t place1, width1; /* enum operand_place, enum operand_width */
    uint8_t place2, width2;
    uint8_t imm;   /* enum opcode_imm */
    uint8_t modrm; /* enum opcode_modrm */
};

extern const struct opcode_op_facts opcode_op_table[OP_COUNT];
extern const struct opcode_form_facts opcode_form_table[FM_COUNT];

/* opcode_op_facts - the table row of @op, which is insn->op of a decoded instruction.
 * opcode_form_facts - the table row of @form, which is insn->form.
 * @op:    0..OP_COUNT - 1; a group has no row
 * @form:  0..FM_COUNT - 1
 *
 * Inline, because the decoder reads these rows several times for each instruction.
 *
 * Context: any.
 */
static inline const struct opcode_op_facts *opcode_op_facts(unsigned op)
{
    return &opcode_op_table[op];
}

static inline const struct opcode_form_facts *opcode_form_facts(unsigned form)
{
    return &opcode_form_table[form];
}

/* opcode_map_find - fill insn->op and insn->form. They follow from the encoding, map,
 * opcode and prefix, which @insn has already.
 *
 * The op may still be an opcode group, and opcode_group_choose() then decides by the
 * modrm byte.
 *
 * Context: any.
 * Return:  0; -EILSEQ the map defines no such instruction.
 */
int opcode_map_find(struct insn *insn);

/* opcode_set_has - is the opcode of @insn defined together with its prefix?
 * @insn: its map is not the one-byte map, where the prefix is no part of the opcode
 *
 * Context: any.
 */
bool opcode_set_has(const struct insn *insn);

/* opcode_group_choose - if the op of @insn is an opcode group, replace op and form by
 * those that @modrm selects.
 * @insn: has op and form from opcode_map_find()
 *
 * Context: any.
 * Return:  0, also if the op is no group; -EILSEQ no instruction has this @modrm.
 */
int opcode_group_choose(struct insn *insn, uint8_t modrm);
