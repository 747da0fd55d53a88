CPU := \
    kernel/cpu/entry.asm \
    kernel/cpu/trap.c \
    kernel/cpu/debug_reg.c \
    kernel/cpu/gdt.asm \
    kernel/cpu/features.c \
    kernel/cpu/fetch.c \
    kernel/cpu/memory_types.c \
    kernel/cpu/percpu.c \
    kernel/cpu/percpu_counters.c \
    kernel/cpu/lapic.c \
    kernel/cpu/ioapic.c \
    kernel/cpu/smp.c \
    kernel/cpu/smp_start.c
