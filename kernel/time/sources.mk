TIME := \
    kernel/time/clock.c \
    kernel/time/sample.c
