# The core of the engine in the kernel, without the rooms above it: what `make core` boots.
ALONE := \
    tests/alone/extend_none.c \
    probes/port/port_kernel.c \
    probes/port/port_held.c \
    probes/port/port_text.c \
    probes/port/port_symbols.c \
    tests/alone/alone.c \
    tests/alone/test_alone.c \
    tests/kernel/ktest.c \
    tests/kernel/test_kprobe.c
