DEBUG := \
    kernel/debug/log.c \
    kernel/debug/panic.c \
    kernel/debug/backtrace.c \
    kernel/debug/ksyms.c \
    kernel/debug/ksyms_text.c \
    kernel/debug/marker.c kernel/debug/marker_enter.asm \
    kernel/debug/inlines.c kernel/debug/params.c kernel/debug/lines.c
