STRESS := \
    tests/stress/stress.c \
    tests/stress/targets.asm \
    tests/stress/targets.c \
    tests/stress/misbehave.c \
    tests/stress/slots.c \
    tests/stress/crowd.c
