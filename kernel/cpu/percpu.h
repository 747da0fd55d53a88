/* percpu.h - what each CPU has for itself. GS points at it, always: there is no user mode.
 *
 * Locks: c owning CPU only (any context on it)   I immutable once the CPU is online
 */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/base/regs.h"
#include "kernel/cpu/debug_reg.h"
#include "kernel/memmap.h"

#include <stdbool.h>
#include <stdint.h>

struct held_lock;
struct thread;

#define NMI_STACK_LEN (32 * KiB)
#define FATAL_STACK_LEN (16 * KiB) /* #DF and #MC */

/* 64-bit task state segment: only the stacks matter. */
struct tss {
    uint32_t reserved0;
    uint64_t rsp[3];
    uint64_t reserved1;
    uint64_t ist[7]; /* ist[0] is IST 1 */
    uint64_t reserved2;
    uint16_t reserved3;
    uint16_t iomap;
} PACKED;

_Static_assert(sizeof(struct tss) == 104, "the TSS is 104 bytes");

#define GDT_ENTRIES 6

struct percpu {
    struct percpu *self;     /* [I] gs:0 */
    void *probe;             /* [I] the probe engine's struct probe_cpu */
    struct thread *current;  /* [c] set by the context switch */
    struct held_lock *locks; /* [c] spinlocks that it holds */
    /* Two that are looked at as one word, wherever a hit or an interrupt ends. */
    bool need_resched;        /* [c, set by the reschedule IPI too] */
    bool need_hit_end;        /* [c] quiesce() waits for the current thread */
    bool idle;                /* [c] halted or about to, as the scheduler sees it */
    bool halted;              /* [c] until entry code has serialised; cpu_idle_wait() */
    bool online;              /* [I] */
    unsigned id;              /* [I] 0..MAX_CPUS-1 */
    uint32_t apic_id;         /* [I] */
    uint64_t sync_count;      /* [c] serialising instructions run on request */
    uint64_t sync_cycles;     /* [c] when it last did; 0: that met it halted */
    uint64_t woken_count;     /* [c] those run by the interrupts that ended a halt */
    uint64_t spared_count;    /* [a] requests that met it halted */
    uint64_t nmi_sync_count;  /* [c] those run by NMIs; see trap_serialise_nmis() */
    uintptr_t stack_base;     /* [c] lowest usable byte of the current thread's stack */
    void *thread_probe;       /* [c] thread.probe of the current thread */
    uintptr_t nmi_stack_base; /* [I] */
    uint64_t *irq_counts;     /* [c] 256 counters */
    uintptr_t debug_addr[DEBUG_REGS];      /* [c] what DR0 to DR3 watch, 0: nothing */
    uint8_t debug_setting[DEBUG_REGS];     /* [c] their bits in DR7 */
    uint8_t debug_rests;                   /* [c] which of them rest until the NMI ends */
    struct tss tss;                        /* [I] */
    uint64_t gdt[GDT_ENTRIES] ALIGNED(16); /* [I] */
    /* What the executing code may be, right in front of the room: the engine finds it from
     * there.
     */
    struct {
        uint8_t unused[48];
        int preempt_count;  /* [c] 0: may be preempted; see preempt_is_off() */
        unsigned irq_depth; /* [c] 1 inside an interrupt handler */
        unsigned nmi_depth; /* [c] 1 inside NMI, and in what that runs into */
        unsigned unused_too;
    } ALIGNED(64);
} ALIGNED(64);

/* Room in the same page for what the probe engine has for each CPU: at an offset from GS. Its
 * first word, an unsigned, keeps the thread on its CPU while it is not 0, as preempt_count
 * does: the engine counts its active hits there.
 */
#define PERCPU_ROOM_OFF sizeof(struct percpu)
#define PERCPU_ROOM_LEN (PERCPU_COUNTERS_OFF - PERCPU_ROOM_OFF)

static ALWAYS_INLINE struct percpu *this_cpu(void)
{
    struct percpu *p;

    __asm__ volatile("movq %%gs:0, %0" : "=r"(p));
    return p;
}

/* percpu_init_boot - give CPU 0 its area, GDT and TSS, all static.
 *
 * Context: boot, before anything that uses this_cpu().
 */
void percpu_init_boot(void);

/* percpu_init_boot_area - move CPU 0's area to its final address, and give it the stacks for
 * NMI, #DF and #MC, which need pages; until then these vectors must not happen.
 * Context: boot, interrupts off, after paging_init().
 */
void percpu_init_boot_area(void);

/* percpu_add - make the area of a further CPU, with its IST stacks. The code that starts
 * the CPU fills in its apic_id.
 * @id: 1..MAX_CPUS-1, the next free one
 *
 * Return: the area; NULL without memory.
 */
struct percpu *percpu_add(unsigned id);

/* percpu_load - make @cpu the area of the executing CPU: GDT, TSS, GS, IDT.
 *
 * Context: the CPU being brought up, interrupts off.
 */
void percpu_load(struct percpu *cpu);

/* gdt_reload_segments - CS = @code, SS, DS, ES = @data, FS and GS empty (bases are lost). */
void gdt_reload_segments(uint16_t code, uint16_t data);

/* percpu_set_online - count the executing CPU in; from here on it is called and polled. */
void percpu_set_online(void);

/* percpu_counters_map - let every CPU have the counters 0..@count-1; new ones are 0, and none
 * ever goes away.
 * @count: up to PERCPU_COUNTERS_MAX
 *
 * Context: thread, when all CPUs are online; one caller at a time.
 * Return:  0; -ENOMEM, and there may be some more than before.
 */
int percpu_counters_map(size_t count);
/* percpu_counters_bytes - memory of all counters of all CPUs. Context: any. */
size_t percpu_counters_bytes(void);

/* percpu_counter - counter @i of CPU @cpu. Context: any. */
static inline uint64_t *percpu_counter(unsigned cpu, size_t i)
{
    return (uint64_t *)(PERCPU_AREA_BASE + cpu * PERCPU_AREA_STRIDE +
                        PERCPU_COUNTERS_OFF) +
           i;
}

/* percpu_room - PERCPU_ROOM_LEN bytes, zeroed at boot. Context: any. */
static inline void *percpu_room(struct percpu *cpu)
{
    return (uint8_t *)cpu + PERCPU_ROOM_OFF;
}

/* percpu_of - the area of CPU @cpu, NULL when there is none. Context: any. */
struct percpu *percpu_of(unsigned cpu);

/* cpu_count - CPUs that are online; their ids are 0..cpu_count()-1. Context: any. */
unsigned cpu_count(void);

static ALWAYS_INLINE unsigned cpu_id(void)
{
    unsigned id;

    __asm__ volatile("movl %%gs:%c1, %0" : "=r"(id) : "i"(offsetof(struct percpu, id)));
    return id;
}

static ALWAYS_INLINE struct thread *percpu_current(void)
{
    struct thread *t;

    __asm__ volatile("movq %%gs:%c1, %0"
                     : "=r"(t)
                     : "i"(offsetof(struct percpu, current)));
    return t;
}

static ALWAYS_INLINE int preempt_count(void)
{
    int n;

    __asm__ volatile("movl %%gs:%c1, %0"
                     : "=r"(n)
                     : "i"(offsetof(struct percpu, preempt_count)));
    return n;
}

/* preempt_is_off - Context: any. */
static ALWAYS_INLINE bool preempt_is_off(void)
{
    unsigned hits;

    __asm__ volatile("movl %%gs:%c1, %0" : "=r"(hits) : "i"(PERCPU_ROOM_OFF));
    return preempt_count() || hits;
}

/* preempt_disable - stay on this CPU until the matching preempt_enable(). One instruction,
 * so that no interrupt can move the thread between reading and writing the count.
 * Context: any.
 */
static ALWAYS_INLINE void preempt_disable(void)
{
    __asm__ volatile("incl %%gs:%c0" ::"i"(offsetof(struct percpu, preempt_count))
                     : "memory", "cc");
}

/* preempt_enable_no_resched - as preempt_enable(), but a switch that is due waits for the
 * next interrupt. Context: any.
 */
static ALWAYS_INLINE void preempt_enable_no_resched(void)
{
    __asm__ volatile("decl %%gs:%c0" ::"i"(offsetof(struct percpu, preempt_count))
                     : "memory", "cc");
}

/* preempt_enable - undo one preempt_disable(); switches threads if that is due, the count
 * is 0 and interrupts are on. Context: any.
 */
void preempt_enable(void);

/* The kind of code that is executing, by what it has interrupted, and so what it may do.
 * The words of the contract blocks; see docs/architecture.md.
 */
enum cpu_context { CTX_THREAD, CTX_IRQ, CTX_NMI };

static inline enum cpu_context cpu_context(void)
{
    unsigned nmi, irq;

    /* Through GS each: a pointer to the area is stale once the thread is on another CPU. */
    __asm__ volatile("movl %%gs:%c1, %0"
                     : "=r"(nmi)
                     : "i"(offsetof(struct percpu, nmi_depth)));
    __asm__ volatile("movl %%gs:%c1, %0"
                     : "=r"(irq)
                     : "i"(offsetof(struct percpu, irq_depth)));
    if (nmi)
        return CTX_NMI;
    return irq ? CTX_IRQ : CTX_THREAD;
}

/* features_init_cpu - switch on NX, WP and global pages; SMEP, SMAP and UMIP where the
 * executing CPU has them. Context: once on each CPU, interrupts off.
 */
void features_init_cpu(void);

/* memory_types_init_cpu - give the executing CPU the page attribute table that page tables
 * rely on, and a further CPU the memory type range registers of CPU 0.
 * Context: once on each CPU, one after the other, interrupts off.
 */
void memory_types_init_cpu(void);

/* memory_types_sum - a sum over these registers of the executing CPU: the same on all CPUs.
 * Context: any, preemption off.
 */
uint64_t memory_types_sum(void);

/* cpu_idle_wait - enable interrupts and halt until one comes, with nothing between the
 * two: the shadow of STI keeps a wake-up from being lost. Returns with interrupts on.
 * The only `sti; hlt` of the kernel; never probed. Meanwhile percpu.halted is set.
 *
 * Context: the idle thread, interrupts off.
 */
void cpu_idle_wait(void);
extern const uintptr_t cpu_idle_halted; /* the ip that it is interrupted at */
