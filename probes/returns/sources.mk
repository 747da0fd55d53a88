RETURNS := \
    probes/returns/entry.c \
    probes/returns/jprobe.c \
    probes/returns/shadow.c \
    probes/returns/holder.c \
    probes/returns/return_point.c \
    probes/returns/kretprobe.c \
    probes/returns/kretprobe_register.c \
    probes/returns/kretprobe_trampoline.asm \
    probes/returns/jprobe_call.asm
