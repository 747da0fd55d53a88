TIME := \
    kernel/time/clock.c
