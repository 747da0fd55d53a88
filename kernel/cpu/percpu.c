/* percpu.c - makes the area of each CPU: descriptor table, task state, emergency stacks.
 *
 * An area is a page at an address that follows from the CPU's number. CPU 0 needs an area
 * before pages can be mapped, so it begins with a static area, and moves later.
 *
 * Segments are flat, and there is no user mode. So the GDT only serves CS, SS and the
 * TSS, and the TSS only gives NMI, #DF and #MC stacks of their own: they must not use the
 * stack that they interrupt.
 */
#include "kernel/cpu/percpu.h"
#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/msr.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/paging.h"
#include "kernel/mm/stack.h"
#include "kernel/thread/thread.h"

#include <string.h>

/* Marked as accessed, so that a CPU that loads CS and SS does not write to the table.
 * Source: SDM vol. 3A, "Code- and Data-Segment Descriptor Types". */
#define GDT_CODE UINT64_C(0x00209b0000000000)
#define GDT_DATA UINT64_C(0x0000930000000000)
#define SEL_CODE 0x08
#define SEL_DATA 0x10
#define SEL_TSS 0x18

static struct percpu boot_cpu; /* until percpu_init_boot_area() */
static uint64_t boot_irq_counts[256];
static struct percpu *cpus[MAX_CPUS];
unsigned cpus_online;

static void gdt_fill(struct percpu *cpu)
{
    uint64_t base = (uintptr_t)&cpu->tss;
    uint64_t limit = sizeof(cpu->tss) - 1;

    cpu->gdt[0] = 0;
    cpu->gdt[SEL_CODE / 8] = GDT_CODE;
    cpu->gdt[SEL_DATA / 8] = GDT_DATA;
    cpu->gdt[SEL_TSS / 8] = limit | (base & 0xffffff) << 16 | UINT64_C(0x89) << 40 |
                            ((base >> 24) & 0xff) << 56;
    cpu->gdt[SEL_TSS / 8 + 1] = base >> 32;
}

/* stacks_fill - make the stacks. They come from the stack area, so that each has a guard
 * page below it. Return: false without memory.
 */
static INIT bool stacks_fill(struct percpu *cpu)
{
    uint8_t *nmi = stack_alloc(NMI_STACK_LEN);
    uint8_t *df = stack_alloc(FATAL_STACK_LEN);
    uint8_t *mc = stack_alloc(FATAL_STACK_LEN);

    if (!nmi || !df || !mc)
        return false;
    cpu->nmi_stack_base = (uintptr_t)nmi - NMI_STACK_LEN;
    cpu->tss.ist[0] = (uintptr_t)nmi;
    cpu->tss.ist[1] = (uintptr_t)df;
    cpu->tss.ist[2] = (uintptr_t)mc;
    return true;
}

static void percpu_area_init(struct percpu *cpu, unsigned id)
{
    cpu->self = cpu;
    cpu->id = id;
    cpu->preempt_count = 1; /* until it has a thread to switch to */
    cpu->tss.iomap = sizeof(cpu->tss);
    gdt_fill(cpu);
    cpus[id] = cpu;
}

static void load_tables(struct percpu *cpu)
{
    struct {
        uint16_t limit;
        uint64_t base;
    } PACKED gdtr = { sizeof(cpu->gdt) - 1, (uintptr_t)cpu->gdt };

    __asm__ volatile("lgdt %0" ::"m"(gdtr));
    gdt_reload_segments(SEL_CODE, SEL_DATA);
    cpu->gdt[SEL_TSS / 8] &= ~(UINT64_C(2) << 40); /* not busy: else ltr faults */
    __asm__ volatile("ltr %w0" ::"r"(SEL_TSS));
}

void percpu_load(struct percpu *cpu)
{
    load_tables(cpu);
    wrmsr(MSR_FS_BASE, 0);
    wrmsr(MSR_GS_BASE, (uintptr_t)cpu);
    trap_load_idt();
}

INIT void percpu_init_boot(void)
{
    boot_cpu.irq_counts = boot_irq_counts;
    percpu_area_init(&boot_cpu, 0);
    boot_cpu.online = true;
    cpus_online = 1;
    percpu_load(&boot_cpu);
}

/* area_map - map the page of CPU @id. Return: the page, zeroed; NULL without memory. */
static struct percpu *area_map(unsigned id)
{
    uintptr_t area = PERCPU_AREA_BASE + id * PERCPU_AREA_STRIDE;
    uint64_t frame = frame_alloc();

    if (frame == FRAME_NONE)
        return NULL;
    if (!page_map(area, frame, PROT_W))
        return (struct percpu *)area;
    frame_free(frame);
    return NULL;
}

INIT void percpu_init_boot_area(void)
{
    struct percpu *cpu = area_map(0);

    if (!cpu || !stacks_fill(&boot_cpu))
        panic("no memory for the area and the emergency stacks of CPU 0");
    *cpu = boot_cpu;
    percpu_area_init(cpu, 0);
    percpu_load(cpu);
    features_init_cpu();
}

INIT struct percpu *percpu_add(unsigned id)
{
    uint64_t *counts = kzalloc(256 * sizeof(*counts));
    struct percpu *cpu;

    if (!counts)
        return NULL;
    cpu = area_map(id); /* never freed */
    if (!cpu) {
        kfree(counts);
        return NULL;
    }
    cpu->irq_counts = counts;
    if (!stacks_fill(cpu))
        return NULL;
    percpu_area_init(cpu, id);
    return cpu;
}

void percpu_set_online(void)
{
    struct percpu *cpu = this_cpu();

    cpu->online = true;
    __atomic_add_fetch(&cpus_online, 1, __ATOMIC_SEQ_CST);
}

struct percpu *percpu_of(unsigned cpu)
{
    return cpu < MAX_CPUS ? cpus[cpu] : NULL;
}

void preempt_enable(void)
{
    const struct percpu *cpu;

    preempt_enable_no_resched();
    if (preempt_is_off() || !irqs_enabled())
        return;
    cpu = this_cpu(); /* if the thread moves now, it may look at the run queue in vain */
    if (cpu->need_resched && cpu_context() == CTX_THREAD)
        schedule_preempt();
}
