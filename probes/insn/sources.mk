INSN := \
    probes/insn/insn.c \
    probes/insn/insn_opcode.c \
    probes/insn/insn_kinds.c \
    probes/insn/mnemonic.c \
    probes/insn/opcode_map.c \
    probes/insn/opcode_set.c \
    probes/insn/opcode_group.c \
    probes/insn/opcode_ops.c \
    probes/insn/operand.c \
    probes/insn/effects.c \
    probes/insn/relocate.c \
    probes/insn/encode.c \
    probes/insn/builder.c
