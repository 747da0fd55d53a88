/* outcome.c - compares two outcomes, and describes their first difference. */
#include "tests/conformance/outcome.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "probes/insn/insn.h"

#include <stdio.h>

static char text[128];
static const char *whose = ""; /* the first words of a difference */

const char *outcome_difference(void)
{
    return text;
}

static bool same(const char *what, unsigned long should_be, unsigned long is)
{
    if (should_be == is)
        return true;
    snprintf(text, sizeof(text), "%s%s is 0x%lx instead of 0x%lx", whose, what, is,
             should_be);
    return false;
}

/* The general registers, indexed by number: their names, and their offsets in an image.
 */
static const struct {
    const char *name;
    size_t image, regs;
} registers[16] = {
#define REGISTER(number, name)                                                           \
    [INSN_##number] = { #name, offsetof(struct image, name),                             \
                        offsetof(struct pt_regs, name) }
    REGISTER(AX, ax),   REGISTER(CX, cx),   REGISTER(DX, dx),   REGISTER(BX, bx),
    REGISTER(SP, sp),   REGISTER(BP, bp),   REGISTER(SI, si),   REGISTER(DI, di),
    REGISTER(R8, r8),   REGISTER(R9, r9),   REGISTER(R10, r10), REGISTER(R11, r11),
    REGISTER(R12, r12), REGISTER(R13, r13), REGISTER(R14, r14), REGISTER(R15, r15),
};

static unsigned long word_at(const void *start, size_t off)
{
    return *(const unsigned long *)((const uint8_t *)start + off);
}

static bool same_images(const struct image *should_be, const struct image *is,
                        unsigned ignored)
{
    for (unsigned n = 0; n < ARRAY_LEN(registers); n++) {
        size_t off = registers[n].image;

        if (ignored & BIT(n))
            continue;
        if (!same(registers[n].name, word_at(should_be, off), word_at(is, off)))
            return false;
    }
    return same("flags", should_be->flags, is->flags);
}

static bool same_faults(const struct outcome *a, const struct outcome *b)
{
    return same("number of faults", a->fault.count, b->fault.count) &&
           same("fault: vector", a->fault.vector, b->fault.vector) &&
           same("fault: error code", a->fault.error, b->fault.error) &&
           same("fault: ip", a->fault.ip, b->fault.ip) &&
           same("fault: sp", a->fault.sp, b->fault.sp) &&
           same("fault: flags", a->fault.flags, b->fault.flags) &&
           same("fault: cr2", a->fault.cr2, b->fault.cr2);
}

static bool same_steps(const struct outcome *a, const struct outcome *b)
{
    for (unsigned i = 0; i < OUTCOME_STEPS; i++)
        if (!same("ip of a single-step trap", a->steps.ip[i], b->steps.ip[i]))
            return false;
    return same("number of single-step traps", a->steps.count, b->steps.count);
}

static bool same_interrupts(const struct outcome *a, const struct outcome *b)
{
    return same("number of interrupts", a->irq.count, b->irq.count) &&
           same("interrupt: sp", a->irq.sp, b->irq.sp) &&
           same("interrupt: flags", a->irq.flags, b->irq.flags) &&
           same("interrupt: memory", a->irq.memory, b->irq.memory);
}

bool outcome_same(const struct outcome *should_be, const struct outcome *is,
                  unsigned ignored)
{
    return same("exit", should_be->exit, is->exit) && same_faults(should_be, is) &&
           same_steps(should_be, is) && same_interrupts(should_be, is) &&
           same_images(&should_be->image, &is->image, ignored) &&
           same("sum of the memory", should_be->memory, is->memory) &&
           same("sum of the stack", should_be->stack, is->stack) &&
           same("the port", should_be->port, is->port) &&
           same("the MSR", should_be->msr, is->msr) &&
           same("sum of the vector registers", should_be->vectors, is->vectors) &&
           same("sum of the processor's registers", should_be->processor, is->processor);
}

/* The kernel has only one selector in CS and one in SS, so each image must have these. */
static unsigned long read_cs(void)
{
    unsigned long cs;

    __asm__("mov %%cs, %0" : "=r"(cs));
    return cs;
}

static unsigned long read_ss(void)
{
    unsigned long ss;

    __asm__("mov %%ss, %0" : "=r"(ss));
    return ss;
}

static bool same_regs(const struct image *should_be, const struct pt_regs *regs,
                      unsigned ignored)
{
    for (unsigned n = 0; n < ARRAY_LEN(registers); n++) {
        if (ignored & BIT(n))
            continue;
        if (!same(registers[n].name, word_at(should_be, registers[n].image),
                  word_at(regs, registers[n].regs)))
            return false;
    }
    return same("flags", should_be->flags, regs->flags) &&
           same("cs", read_cs(), regs->cs) && same("ss", read_ss(), regs->ss);
}

bool outcome_same_regs(const struct image *should_be, const struct pt_regs *regs,
                       unsigned ignored, const char *who)
{
    bool are_same;

    whose = who;
    are_same = same_regs(should_be, regs, ignored);
    whose = "";
    return are_same;
}
