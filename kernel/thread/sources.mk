THREAD := \
    kernel/thread/thread.c \
    kernel/thread/sched.c \
    kernel/thread/switch.asm
