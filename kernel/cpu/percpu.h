/* percpu.h - defines the area of each CPU. GS always points at the area of the executing
 * CPU: there is no user mode.
 *
 * Locks: c owning CPU only (any context on it)   I immutable once the CPU is online
 *        a atomic, any CPU
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
    struct percpu *self;              /* [I] gs:0 */
    void *probe;                      /* [I] the probe engine's struct probe_cpu */
    struct thread *current;           /* [c] set by the context switch */
    struct held_lock *locks;          /* [c] spinlocks that it holds */
    const struct spinlock *waits_for; /* [c] NULL: for none */
    /* The end of a hit or of an interrupt looks at the next two as one word. */
    bool need_resched;        /* [c, also set by a CPU that sends the reschedule IPI] */
    bool need_hit_end;        /* [c] quiesce() waits for the current thread */
    bool idle;                /* [c] its idle thread runs */
    bool halted;              /* [c] until entry code has serialised; cpu_idle_wait() */
    bool online;              /* [I] */
    unsigned id;              /* [I] 0..MAX_CPUS-1 */
    int tid;                  /* [c] of the current thread */
    uint32_t apic_id;         /* [I] */
    uint64_t sync_count;      /* [c] serialising instructions that it ran on request */
    uint64_t sync_cycles;     /* [a] when the last one ran; 0: the CPU was halted */
    uint64_t woken_count;     /* [c] serialising instructions that ended a halt */
    uint64_t spared_count;    /* [a] requests for which none ran: the CPU was halted */
    uint64_t nmi_sync_count;  /* [c] serialising instructions in NMIs */
    uintptr_t stack_base;     /* [c] lowest usable byte of the current thread's stack */
    void *thread_probe;       /* [c] thread.probe of the current thread */
    uintptr_t nmi_stack_base; /* [I] */
    uint64_t *irq_counts;     /* [c] 256 counters */
    uintptr_t debug_addr[DEBUG_REGS];      /* [c] what DR0 to DR3 watch, 0: nothing */
    uint8_t debug_setting[DEBUG_REGS];     /* [c] their bits in DR7 */
    uint8_t debug_rests;                   /* [c] bits of those that rest in an NMI */
    uint8_t debug_changes[DEBUG_REGS];     /* [c] how often each has changed; wraps */
    struct tss tss;                        /* [I] */
    uint64_t gdt[GDT_ENTRIES] ALIGNED(16); /* [I] */
    /* Counts that tell what kind of code executes. They lie right in front of the room:
     * the engine finds them from there.
     */
    struct {
        uint8_t unused[44];
        unsigned held;      /* [c] 1 while the CPU holds the machine: smp_hold() */
        int preempt_count;  /* [c] 0: may be preempted; see preempt_is_off() */
        unsigned nmi_depth; /* [c] 1 inside an NMI, and in traps inside the NMI */
        unsigned irq_depth; /* [c] 1 inside an interrupt handler */
        unsigned own_work;  /* [c] in OWN_WORK: the tracer works; see own_work_begin() */
    } ALIGNED(64);
} ALIGNED(64);

/* The room is the rest of the page behind struct percpu, for the probe engine's data of
 * each CPU; code finds it at an offset from GS. Its first word, an unsigned, is the
 * number of active hits. While that is not 0, the thread stays on its CPU, as with
 * preempt_count.
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
 * Context: boot, before this_cpu().
 */
void percpu_init_boot(void);

/* percpu_init_boot_area - move CPU 0's area to its final address, and give it the stacks for
 * NMI, #DF and #MC, which need pages; until then these traps must not happen.
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
 * Context: boot, interrupts off. It runs on the CPU that is being started.
 */
void percpu_load(struct percpu *cpu);

/* gdt_reload_segments - set CS to @code, and SS, DS, ES to @data; keep FS and GS. */
void gdt_reload_segments(uint16_t code, uint16_t data);

/* percpu_set_online - count the executing CPU as online: now other CPUs may call it. */
void percpu_set_online(void);

/* percpu_counters_map - give every CPU the counters 0..@count-1. New counters are 0, and
 * no counter ever goes away.
 * @count: up to PERCPU_COUNTERS_MAX
 *
 * Context: thread or held, all CPUs online, one caller at a time.
 * Return:  0; -ENOMEM, but there may be more counters than before.
 */
int percpu_counters_map(size_t count);
/* percpu_counters_bytes - get the bytes of all counters of all CPUs. Context: any. */
size_t percpu_counters_bytes(void);

/* percpu_counter - get counter @i of CPU @cpu. Context: any. */
static inline uint64_t *percpu_counter(unsigned cpu, size_t i)
{
    return (uint64_t *)(PERCPU_AREA_BASE + cpu * PERCPU_AREA_STRIDE +
                        PERCPU_COUNTERS_OFF) +
           i;
}

/* percpu_room - get the room: PERCPU_ROOM_LEN bytes, zeroed at boot. Context: any. */
static inline void *percpu_room(struct percpu *cpu)
{
    return (uint8_t *)cpu + PERCPU_ROOM_OFF;
}

/* percpu_of - get the area of CPU @cpu; NULL when there is none. Context: any. */
struct percpu *percpu_of(unsigned cpu);

/* cpu_count - count the CPUs that are online; their ids are 0..cpu_count()-1.
 * Context: any.
 */
extern unsigned cpus_online;
static inline unsigned cpu_count(void)
{
    return __atomic_load_n(&cpus_online, __ATOMIC_ACQUIRE);
}

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

/* hit_is_active - does the executing CPU handle a hit of a probe? Context: any. */
static ALWAYS_INLINE bool hit_is_active(void)
{
    unsigned hits;

    __asm__ volatile("movl %%gs:%c1, %0" : "=r"(hits) : "i"(PERCPU_ROOM_OFF));
    return hits;
}

/* preempt_is_off - is preemption off, by the count or by an active hit? Context: any. */
static ALWAYS_INLINE bool preempt_is_off(void)
{
    return preempt_count() || hit_is_active();
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

/* preempt_enable_no_resched - do as preempt_enable(), but never switch: if a switch is
 * due, the next interrupt does it. Context: any.
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

/* The kind of code that executes, which decides what the code may do. The names are words
 * of the contract blocks; see docs/architecture.md.
 */
enum cpu_context { CTX_THREAD, CTX_IRQ, CTX_NMI, CTX_HELD };

/* The bits of own_work. The end of a hit takes its own one only. */
#define OWN_WORK_HIT 1  /* a hit is recorded */
#define OWN_WORK_TASK 2 /* a thread, or another CPU for it, works for the tracer */
#define OWN_WORK (OWN_WORK_HIT | OWN_WORK_TASK)
#define OWN_WORK_SHIFT 2

/* own_work_begin - what this context executes from now on, to record a hit, is the tracer's
 * own work, and no part of an answer. An interrupt or NMI moves the bits of own_work up when
 * it begins, and down at its end: so what it does on top is no work of the tracer.
 * own_work_end - no longer.
 * own_work_set_task - the same, of a thread; see thread_set_own_work().
 * own_work - is it any of the two?
 * Context: any, preemption off.
 */
static ALWAYS_INLINE void own_work_begin(void)
{
    __asm__ volatile("orl %1, %%gs:%c0"
                     :
                     : "i"(offsetof(struct percpu, own_work)), "i"(OWN_WORK_HIT)
                     : "memory", "cc");
}

static ALWAYS_INLINE void own_work_end(void)
{
    __asm__ volatile("andl %1, %%gs:%c0"
                     :
                     : "i"(offsetof(struct percpu, own_work)), "i"(~OWN_WORK_HIT)
                     : "memory", "cc");
}

static ALWAYS_INLINE void own_work_set_task(bool is_own)
{
    if (is_own)
        __asm__ volatile("orl %1, %%gs:%c0"
                         :
                         : "i"(offsetof(struct percpu, own_work)), "i"(OWN_WORK_TASK)
                         : "memory", "cc");
    else
        __asm__ volatile("andl %1, %%gs:%c0"
                         :
                         : "i"(offsetof(struct percpu, own_work)), "i"(~OWN_WORK_TASK)
                         : "memory", "cc");
}

static ALWAYS_INLINE bool own_work(void)
{
    unsigned bits;

    __asm__ volatile("movl %%gs:%c1, %0"
                     : "=r"(bits)
                     : "i"(offsetof(struct percpu, own_work)));
    return bits & OWN_WORK;
}

/* A debugger may stop a CPU anywhere, so CTX_HELD comes before the context in which the
 * CPU has stopped.
 */
static inline enum cpu_context cpu_context(void)
{
    unsigned nmi, irq, held;

    /* Each read goes through GS: a pointer to the area would be wrong as soon as the
     * thread is on another CPU.
     */
    __asm__ volatile("movl %%gs:%c1, %0"
                     : "=r"(nmi)
                     : "i"(offsetof(struct percpu, nmi_depth)));
    __asm__ volatile("movl %%gs:%c1, %0"
                     : "=r"(irq)
                     : "i"(offsetof(struct percpu, irq_depth)));
    __asm__ volatile("movl %%gs:%c1, %0"
                     : "=r"(held)
                     : "i"(offsetof(struct percpu, held)));
    if (held)
        return CTX_HELD;
    if (nmi)
        return CTX_NMI;
    return irq ? CTX_IRQ : CTX_THREAD;
}

/* features_init_cpu - switch on NX, WP and global pages; SMEP, SMAP and UMIP where the
 * executing CPU has them; #MC where its stack is made, on CPU 0 by the second call.
 * Context: boot, interrupts off.
 */
void features_init_cpu(void);

/* memory_types_init_cpu - give the executing CPU the page attribute table that page tables
 * rely on, and a further CPU the memory type range registers of CPU 0.
 * Context: boot, once on each CPU, one caller at a time, interrupts off.
 */
void memory_types_init_cpu(void);

/* memory_types_sum - add up these registers of the executing CPU: the sum is the same on
 * all CPUs. Context: any, preemption off.
 */
uint64_t memory_types_sum(void);

/* cpu_idle_wait - enable interrupts, and halt until an interrupt comes. STI enables
 * interrupts only after the next instruction, HLT, so no interrupt can come between the
 * two and be lost. Returns with interrupts on. This is the only `sti; hlt` of the kernel,
 * and cannot be probed. percpu.halted is set until entry code has serialised.
 * Context: thread, interrupts off. It is the idle thread.
 */
void cpu_idle_wait(void);
extern const uintptr_t cpu_idle_halted; /* the ip at which the halt is interrupted */
