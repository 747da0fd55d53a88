DEBUG := \
    kernel/debug/log.c \
    kernel/debug/panic.c \
    kernel/debug/backtrace.c \
    kernel/debug/ksyms.c \
    kernel/debug/marker.c \
    kernel/debug/inlines.c kernel/debug/params.c
