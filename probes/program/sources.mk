PROGRAM := \
    probes/program/program_verify.c \
    probes/program/program_run.c \
    probes/program/program_parts.c \
    probes/program/program_source.c \
    probes/program/op_value.c \
    probes/program/op_choice.c \
    probes/program/op_key.c \
    probes/program/op_by.c \
    probes/program/op_word.c \
    probes/program/op_call.c \
    probes/program/program_code.c \
    probes/program/program_text.c
