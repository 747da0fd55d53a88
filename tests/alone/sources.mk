# Sources of the kernel that `make core` boots: only the core of the engine is in it,
# without the rooms that use the core.
ALONE := \
    tests/alone/extend_none.c \
    probes/port/port_kernel.c \
    probes/port/port_held.c \
    probes/port/port_text.c \
    probes/port/port_symbols.c \
    tests/alone/alone.c

ALONE_TESTS := \
    tests/kernel/ktest.c \
    tests/alone/test_alone.c \
    tests/kernel/test_kprobe.c
