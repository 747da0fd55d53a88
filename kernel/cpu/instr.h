/* instr.h - has a function, named by its mnemonic, for each instruction C cannot express.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define READ_REG(name, insn)                                                             \
    static ALWAYS_INLINE uint64_t name(void)                                             \
    {                                                                                    \
        uint64_t v;                                                                      \
                                                                                         \
        __asm__ volatile(insn : "=r"(v)::"memory");                                      \
        return v;                                                                        \
    }
#define WRITE_REG(name, insn)                                                            \
    static ALWAYS_INLINE void name(uint64_t v)                                           \
    {                                                                                    \
        __asm__ volatile(insn ::"r"(v) : "memory");                                      \
    }

READ_REG(read_cr0, "mov %%cr0, %0")
READ_REG(read_cr2, "mov %%cr2, %0")
READ_REG(read_cr3, "mov %%cr3, %0")
READ_REG(read_cr4, "mov %%cr4, %0")
READ_REG(read_cr8, "mov %%cr8, %0")
READ_REG(read_dr6, "mov %%dr6, %0")
READ_REG(read_dr7, "mov %%dr7, %0")
READ_REG(read_flags, "pushfq; popq %0")
WRITE_REG(write_cr0, "mov %0, %%cr0")
WRITE_REG(write_cr2, "mov %0, %%cr2")
WRITE_REG(write_cr3, "mov %0, %%cr3")
WRITE_REG(write_cr4, "mov %0, %%cr4")
WRITE_REG(write_cr8, "mov %0, %%cr8")
WRITE_REG(write_dr0, "mov %0, %%dr0")
WRITE_REG(write_dr1, "mov %0, %%dr1")
WRITE_REG(write_dr2, "mov %0, %%dr2")
WRITE_REG(write_dr3, "mov %0, %%dr3")
WRITE_REG(write_dr6, "mov %0, %%dr6")
WRITE_REG(write_dr7, "mov %0, %%dr7")

static ALWAYS_INLINE uint64_t rdmsr(uint32_t msr)
{
    uint32_t lo, hi;

    __asm__ volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr));
    return ((uint64_t)hi << 32) | lo;
}

static ALWAYS_INLINE void wrmsr(uint32_t msr, uint64_t v)
{
    __asm__ volatile("wrmsr" ::"c"(msr), "a"((uint32_t)v), "d"((uint32_t)(v >> 32))
                     : "memory");
}

static ALWAYS_INLINE uint64_t rdtsc(void)
{
    uint32_t lo, hi;

    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return ((uint64_t)hi << 32) | lo;
}

/* cpuid - execute CPUID. @out: eax, ebx, ecx, edx. Also serialises the CPU. */
static ALWAYS_INLINE void cpuid(uint32_t leaf, uint32_t sub, uint32_t out[4])
{
    __asm__ volatile("cpuid"
                     : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
                     : "a"(leaf), "c"(sub)
                     : "memory");
}

static ALWAYS_INLINE uint8_t inb(uint16_t port)
{
    uint8_t v;

    __asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}

static ALWAYS_INLINE void outb(uint16_t port, uint8_t v)
{
    __asm__ volatile("outb %0, %1" ::"a"(v), "Nd"(port));
}

/* outsb - rep outsb: write @len bytes to the same port. */
static ALWAYS_INLINE void outsb(uint16_t port, const void *bytes, size_t len)
{
    __asm__ volatile("rep outsb" : "+S"(bytes), "+c"(len) : "d"(port) : "memory");
}

static ALWAYS_INLINE uint16_t inw(uint16_t port)
{
    uint16_t v;

    __asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}

static ALWAYS_INLINE void outw(uint16_t port, uint16_t v)
{
    __asm__ volatile("outw %0, %1" ::"a"(v), "Nd"(port));
}

static ALWAYS_INLINE uint32_t inl(uint16_t port)
{
    uint32_t v;

    __asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}

static ALWAYS_INLINE void outl(uint16_t port, uint32_t v)
{
    __asm__ volatile("outl %0, %1" ::"a"(v), "Nd"(port));
}

/* mfence - make all earlier stores visible to all CPUs before any later store. */
static ALWAYS_INLINE void mfence(void)
{
    __asm__ volatile("mfence" ::: "memory");
}

/* lfence - complete all earlier instructions before any later one begins. */
static ALWAYS_INLINE void lfence(void)
{
    __asm__ volatile("lfence" ::: "memory");
}

static ALWAYS_INLINE void wbinvd(void)
{
    __asm__ volatile("wbinvd" ::: "memory");
}

static ALWAYS_INLINE void invlpg(uintptr_t addr)
{
    __asm__ volatile("invlpg (%0)" ::"r"(addr) : "memory");
}

static ALWAYS_INLINE void cli(void)
{
    __asm__ volatile("cli" ::: "memory");
}

static ALWAYS_INLINE void sti(void)
{
    __asm__ volatile("sti" ::: "memory");
}

static ALWAYS_INLINE void hlt(void)
{
    __asm__ volatile("hlt" ::: "memory");
}

static ALWAYS_INLINE void int3(void)
{
    __asm__ volatile("int3" ::: "memory");
}

static ALWAYS_INLINE void ud2(void)
{
    __asm__ volatile("ud2" ::: "memory");
}

static ALWAYS_INLINE void pause(void)
{
    __asm__ volatile("pause" ::: "memory");
}

/* spin_without_pause - wait for a moment. Under QEMU each `pause` takes a lock that its main
 * loop needs to hand over bytes: a CPU that waits for bytes makes none. Context: any.
 */
static ALWAYS_INLINE void spin_without_pause(unsigned count)
{
    while (count--)
        __asm__ volatile("" ::: "memory");
}

static ALWAYS_INLINE bool irqs_enabled(void)
{
    return read_flags() & FLAGS_IF;
}

static ALWAYS_INLINE unsigned long irq_save(void)
{
    unsigned long flags = read_flags();

    cli();
    return flags;
}

/* irq_restore - switch interrupts on if @flags, from irq_save(), says they were on. */
static ALWAYS_INLINE void irq_restore(unsigned long flags)
{
    if (flags & FLAGS_IF)
        sti();
}

#undef READ_REG
#undef WRITE_REG
