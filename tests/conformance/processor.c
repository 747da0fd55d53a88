/* processor.c - prepares, hashes and restores the state of processor.h.
 *
 * Fixtures change only bits that no code depends on meanwhile: no code uses the
 * FPU, no breakpoint is enabled, and no interrupt has a priority so low that CR8
 * would hold it back.
 */
#include "tests/conformance/processor.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"

#define CR0_TS BIT(3)
#define DR6_NOTHING 0xffff0ff0u
#define DR7_NOTHING 0x400u
#define TSS_BUSY (UINT64_C(2) << 40) /* a bit of the descriptor */

#define READ(name, insn, type)                                                           \
    static type read_##name(void)                                                        \
    {                                                                                    \
        type v;                                                                          \
                                                                                         \
        __asm__ volatile(insn : "=r"(v));                                                \
        return v;                                                                        \
    }
#define WRITE(name, insn, type)                                                          \
    static void write_##name(type v)                                                     \
    {                                                                                    \
        __asm__ volatile(insn ::"r"(v) : "memory");                                      \
    }

READ(dr0, "mov %%dr0, %0", uint64_t)
READ(dr1, "mov %%dr1, %0", uint64_t)
READ(dr2, "mov %%dr2, %0", uint64_t)
READ(dr3, "mov %%dr3, %0", uint64_t)
READ(ds, "mov %%ds, %0", uint32_t)
WRITE(ds, "mov %0, %%ds", uint32_t)
READ(es, "mov %%es, %0", uint32_t)
WRITE(es, "mov %0, %%es", uint32_t)
READ(ldt, "sldt %0", uint32_t)
WRITE(ldt, "lldt %w0", uint32_t)
READ(task, "str %0", uint32_t)

struct processor_table processor_gdt, processor_idt;

static struct {
    uint64_t cr0, cr3, cr4, cr8;
    uint32_t ds, es, ldt;
    struct processor_table gdt, idt;
} before;

static void tables_read(struct processor_table *gdt, struct processor_table *idt)
{
    __asm__ volatile("sgdt %0" : "=m"(*gdt));
    __asm__ volatile("sidt %0" : "=m"(*idt));
}

/* task - return the descriptor of the task state segment that is loaded. */
static uint64_t *task(void)
{
    struct processor_table gdt, idt;

    tables_read(&gdt, &idt);
    return (uint64_t *)(gdt.base + processor_selector());
}

void processor_tables(unsigned more)
{
    tables_read(&processor_gdt, &processor_idt);
    processor_gdt.limit = (uint16_t)(processor_gdt.limit + more);
    processor_idt.limit = (uint16_t)(processor_idt.limit + more);
}

unsigned processor_selector(void)
{
    return read_task();
}

/* The busy bit of the task state is cleared: only one that is not busy
 * can be loaded by ltr.
 */
void processor_prepare(void)
{
    before.cr0 = read_cr0();
    before.cr3 = read_cr3();
    before.cr4 = read_cr4();
    before.cr8 = read_cr8();
    before.ds = read_ds();
    before.es = read_es();
    before.ldt = read_ldt();
    tables_read(&before.gdt, &before.idt);
    write_cr0(before.cr0 | CR0_TS);
    write_cr2(0);
    write_dr0(0);
    write_dr1(0);
    write_dr2(0);
    write_dr3(0);
    write_dr6(DR6_NOTHING);
    *task() &= ~TSS_BUSY;
}

static uint64_t mixed(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * UINT64_C(0x100000001b3);
}

uint64_t processor_sum(void)
{
    struct processor_table gdt, idt;

    tables_read(&gdt, &idt);
    const uint64_t values[] = {
        read_cr0(), read_cr2(), read_cr3(), read_cr4(), read_cr8(),
        read_dr0(), read_dr1(), read_dr2(), read_dr3(), read_dr6(),
        read_dr7(), read_ds(),  read_es(),  read_ldt(), gdt.base,
        gdt.limit,  idt.base,   idt.limit,  *task(),
    };
    uint64_t sum = 0;

    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        sum = mixed(sum, values[i]);
    return sum;
}

void processor_restore(void)
{
    *task() |= TSS_BUSY;
    __asm__ volatile("lgdt %0" ::"m"(before.gdt));
    __asm__ volatile("lidt %0" ::"m"(before.idt));
    write_ldt(before.ldt);
    write_ds(before.ds);
    write_es(before.es);
    write_dr0(0);
    write_dr1(0);
    write_dr2(0);
    write_dr3(0);
    write_dr6(DR6_NOTHING);
    write_dr7(DR7_NOTHING);
    write_cr0(before.cr0);
    write_cr3(before.cr3);
    write_cr4(before.cr4);
    write_cr8(before.cr8);
}
