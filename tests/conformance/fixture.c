/* fixture.c - runs one fixture, and collects its outcome.
 *
 * While the fixture runs, preemption is off and the stack is fixture_stack.
 * Exceptions that it raises are recorded by handlers that are called after the
 * engine's. So they see what any other part of the kernel would see. Then the fix-up
 * of the instruction is used.
 */
#include "tests/conformance/fixture.h"

#include "kernel/cpu/instr.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "tests/conformance/processor.h"
#include "tests/conformance/vectors.h"

#include <string.h>

#define VECTOR_TEST 0xe8u
#define MSR_KERNEL_GS_BASE 0xc0000102u /* not used by a kernel without user mode */
#define PORT_LATCH 0xcf8 /* a port of the PCI bridge: reads return what was written */

/* enter.asm */
extern struct image fixture_left;
unsigned fixture_enter(const struct image *image, uintptr_t ip);

static const struct fixture *volatile running;
static struct outcome *record;
static volatile unsigned interrupts_taken;
static bool (*repair)(struct pt_regs *regs);

void fixture_set_repair(bool (*fn)(struct pt_regs *regs))
{
    repair = fn;
}

unsigned long fixture_sp(unsigned i)
{
    static const unsigned char below[] = { 0, 8, 2, 5 };

    return (unsigned long)fixture_stack + FIXTURE_STACK_LEN - FIXTURE_STACK_ABOVE -
           below[i % sizeof(below)];
}

/* ---- traps and interrupts during a fixture ---- */

static bool is_in_stack(uintptr_t addr)
{
    return addr - (uintptr_t)fixture_stack < FIXTURE_STACK_LEN;
}

/* fault_seen - record a fault of the fixture. A fault at another address is not recorded:
 * the engine itself may fault when it reads the operand of a branch. But after a branch
 * to the stack, which is not executable, the fault is at an address of the stack. There
 * is no fix-up for such an address, so the fixture is ended here.
 */
static bool fault_seen(struct pt_regs *regs)
{
    if (!running || (regs->ip != running->insn && !is_in_stack(regs->ip)))
        return false;
    record->fault.count++;
    record->fault.vector = regs->vector;
    record->fault.error = regs->error_code;
    record->fault.ip = regs->ip;
    record->fault.sp = regs->sp;
    record->fault.flags = regs->flags;
    record->fault.cr2 = regs->vector == TRAP_PF ? regs->cr2 : 0;
    if (repair && repair(regs))
        return true;
    if (!is_in_stack(regs->ip))
        return false;
    regs->ip = (uintptr_t)exit_fault;
    return true;
}

static bool is_exit(uintptr_t ip)
{
    return ip == (uintptr_t)exit_fall || ip == (uintptr_t)exit_taken ||
           ip == (uintptr_t)exit_fault;
}

/* step_seen - record a single step of the fixture, and clear TF when the
 * fixture has ended.
 */
static bool step_seen(struct pt_regs *regs)
{
    if (!running)
        return false;
    if (record->steps.count < OUTCOME_STEPS)
        record->steps.ip[record->steps.count] = regs->ip;
    record->steps.count++;
    if (is_exit(regs->ip))
        regs->flags &= ~FLAGS_TF;
    return true;
}

static void interrupt_seen(struct pt_regs *regs)
{
    lapic_eoi();
    interrupts_taken++;
    if (!running)
        return;
    record->irq.count++;
    record->irq.sp = regs->sp;
    record->irq.flags = regs->flags;
    record->irq.memory = *(const uint64_t *)fixture_memory;
}

static void watch(void)
{
    static const unsigned vectors[] = { TRAP_DE, TRAP_UD, TRAP_SS, TRAP_GP, TRAP_PF };
    static bool watching;

    if (watching)
        return;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
        trap_set_handler(vectors[i], fault_seen);
    trap_set_handler(TRAP_DB, step_seen);
    irq_set_handler(VECTOR_TEST, "conformance", interrupt_seen);
    watching = true;
}

/* ---- before and after ---- */

static void words_fill(void *start, size_t len, uint64_t word)
{
    uint64_t *words = start;

    for (size_t i = 0; i < len / 8; i++)
        words[i] = word ? word : (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t words_sum(const void *start, size_t len)
{
    const uint64_t *words = start;
    uint64_t sum = len;

    for (size_t i = 0; i < len / 8; i++)
        sum = (sum ^ words[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void prepare(const struct setup *setup)
{
    uint64_t *top = (uint64_t *)setup->image.sp;

    words_fill(fixture_memory, setup->memory_len, setup->word);
    words_fill(fixture_stack + FIXTURE_STACK_LEN - 2 * FIXTURE_STACK_ABOVE,
               2 * FIXTURE_STACK_ABOVE, setup->word);
    for (size_t i = 0; i < 2; i++)
        if (setup->top[i])
            memcpy(top + i, &setup->top[i], sizeof(*top));
    outl(PORT_LATCH, 0);
    wrmsr(MSR_KERNEL_GS_BASE, 0);
    if (setup->vectors)
        vectors_load();
    if (setup->processor)
        processor_prepare();
}

#define FLAGS_STATUS (FLAGS_CF | FLAGS_PF | FLAGS_AF | FLAGS_ZF | FLAGS_SF | FLAGS_OF)

/* scrambled - return @image with other values in all registers. The stack pointer is
 * lower than in @image, because traps write to the stack below it.
 */
static struct image scrambled(const struct image *image)
{
    struct image other = *image;
    unsigned long *reg = &other.r15;

    for (unsigned n = 0; n < IMAGE_REGS; n++)
        reg[n] ^= UINT64_C(0x5a5a5a5a5a5a5a5a);
    other.flags ^= FLAGS_STATUS;
    other.sp -= 1024;
    return other;
}

/* stack_sum - return a hash of the stack from the stack pointer up. Below the stack
 * pointer interrupts and traps have left other bytes.
 */
static uint64_t stack_sum(const struct setup *setup, unsigned long sp)
{
    const uint8_t *from = (const uint8_t *)setup->image.sp;

    if (is_in_stack(sp) && !setup->reserves)
        from = (const uint8_t *)sp;
    return words_sum(from, (size_t)(fixture_stack + FIXTURE_STACK_LEN - from));
}

static void collect(const struct setup *setup, struct outcome *out)
{
    out->image = fixture_left;
    out->memory = words_sum(fixture_memory, setup->memory_len);
    out->stack = stack_sum(setup, out->image.sp);
    out->port = inl(PORT_LATCH);
    out->msr = rdmsr(MSR_KERNEL_GS_BASE);
    if (setup->vectors)
        out->vectors = vectors_sum();
    if (!setup->processor)
        return;
    out->processor = processor_sum();
    processor_restore();
}

void fixture_run(const struct fixture *f, const struct setup *setup, struct outcome *out)
{
    struct image image = setup->image;
    struct percpu *cpu = this_cpu();
    uintptr_t stack_base = cpu->stack_base;
    unsigned taken = interrupts_taken;
    unsigned long flags;

    watch();
    if (setup->scrambled)
        image = scrambled(&image);
    memset(out, 0, sizeof(*out));
    prepare(setup);
    preempt_disable();
    flags = irq_save();
    record = out;
    running = f;
    cpu->stack_base = (uintptr_t)fixture_stack;
    if (setup->interrupt)
        lapic_send(lapic_id(), LAPIC_IPI | VECTOR_TEST);
    out->exit = fixture_enter(&image, f->insn);
    collect(setup, out);
    cpu->stack_base = stack_base;
    running = NULL;
    irq_restore(flags);
    while (setup->interrupt && interrupts_taken == taken)
        pause(); /* the fixture has ended before the interrupt came */
    preempt_enable();
}
