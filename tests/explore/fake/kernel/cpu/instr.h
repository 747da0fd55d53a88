/* instr.h - for the explorer: instructions that only a kernel may execute. */
#pragma once

#include "tests/explore/machine.h"

#define read_cr0 real_read_cr0
#define read_cr2 real_read_cr2
#define read_cr3 real_read_cr3
#define read_cr4 real_read_cr4
#define write_cr2 real_write_cr2
#define write_cr8 real_write_cr8
#define rdmsr real_rdmsr
#define cpuid real_cpuid
#define read_dr6 real_read_dr6
#define read_dr7 real_read_dr7
#define write_dr0 real_write_dr0
#define write_dr1 real_write_dr1
#define write_dr2 real_write_dr2
#define write_dr3 real_write_dr3
#define write_dr6 real_write_dr6
#define write_dr7 real_write_dr7
#define irqs_enabled real_irqs_enabled
#define irq_save real_irq_save
#define irq_restore real_irq_restore
#define pause real_pause
#define spin_without_pause real_spin_without_pause
#include_next "kernel/cpu/instr.h"
#undef read_cr0
#undef read_cr2
#undef read_cr3
#undef read_cr4
#undef write_cr2
#undef write_cr8
#undef rdmsr
#undef cpuid
#undef read_dr6
#undef read_dr7
#undef write_dr0
#undef write_dr1
#undef write_dr2
#undef write_dr3
#undef write_dr6
#undef write_dr7
#undef irqs_enabled
#undef irq_save
#undef irq_restore
#undef pause
#undef spin_without_pause

#define MACHINE_NOTHING(name)                                                            \
    static inline uint64_t name(void)                                                    \
    {                                                                                    \
        return 0;                                                                        \
    }

MACHINE_NOTHING(read_cr0)
MACHINE_NOTHING(read_cr2)
MACHINE_NOTHING(read_cr3)
MACHINE_NOTHING(read_cr4)

static inline void write_cr2(uint64_t v)
{
    (void)v;
}

static inline void write_cr8(uint64_t v)
{
    (void)v;
}

static inline uint64_t rdmsr(uint32_t msr)
{
    (void)msr;
    return 0;
}

static inline void cpuid(uint32_t leaf, uint32_t sub, uint32_t out[4])
{
    (void)leaf;
    (void)sub;
    (void)out;
}

#define MACHINE_DR(i)                                                                    \
    static inline uint64_t read_dr##i(void)                                              \
    {                                                                                    \
        return machine_self()->dr[i];                                                    \
    }                                                                                    \
    static inline void write_dr##i(uint64_t v)                                           \
    {                                                                                    \
        machine_self()->dr[i] = v;                                                       \
    }

MACHINE_DR(0)
MACHINE_DR(1)
MACHINE_DR(2)
MACHINE_DR(3)
MACHINE_DR(6)
MACHINE_DR(7)

static inline bool irqs_enabled(void)
{
    return explore_level() == EXPLORE_THREAD && !machine_self()->irqs_off;
}

static inline unsigned long irq_save(void)
{
    unsigned long flags = irqs_enabled() ? FLAGS_IF : 0;

    if (flags)
        machine_irqs(false);
    return flags;
}

static inline void irq_restore(unsigned long flags)
{
    if (flags & FLAGS_IF)
        machine_irqs(true);
}

static inline void pause(void)
{
    explore_pause();
}

static inline void spin_without_pause(unsigned count)
{
    (void)count;
    explore_pause();
}
