/* compare_effects.c - compares the registers and flags that an instruction reads, writes
 * and kills, and its accesses to memory.
 */
#include "probes/insn/effects.h"

#include "tests/insn/compare_parts.h"

#include <string.h>

#define M(name) ZYDIS_MNEMONIC_##name

struct access {
    uint32_t read, written, whole;
};

static void register_note(struct access *a, ZydisRegister reg,
                          ZydisOperandActions actions)
{
    ZydisRegister whole =
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    uint32_t bit;

    if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
        return;
    bit = 1u << (whole - ZYDIS_REGISTER_RAX);
    if (actions & ZYDIS_OPERAND_ACTION_MASK_READ)
        a->read |= bit;
    if (actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
        a->written |= bit;
    if (actions & ZYDIS_OPERAND_ACTION_WRITE &&
        ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) >= 32)
        a->whole |= bit;
}

static void accesses_collect(struct access *a, const struct theirs *t)
{
    memset(a, 0, sizeof(*a));
    for (unsigned i = 0; i < t->insn.operand_count; i++) {
        const ZydisDecodedOperand *o = &t->operands[i];

        if (o->type == ZYDIS_OPERAND_TYPE_REGISTER)
            register_note(a, o->reg.value, o->actions);
        if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
            continue;
        register_note(a, o->mem.base, ZYDIS_OPERAND_ACTION_READ);
        register_note(a, o->mem.index, ZYDIS_OPERAND_ACTION_READ);
    }
}

/* reads_in_vain - does Zydis list a read of a register whose value does not matter? That
 * is so for x ^ x, x - x, and the operand of a nop.
 */
static bool reads_in_vain(const struct theirs *t)
{
    switch (t->insn.mnemonic) {
    case M(XOR):
    case M(SUB):
        return t->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
               t->operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
               t->operands[0].reg.value == t->operands[1].reg.value;
    case M(NOP):
        return true;
    default:
        return false;
    }
}

static void compare_sets(const struct insn *ours, const struct theirs *t)
{
    const ZydisAccessedFlags *flags = t->insn.cpu_flags;
    uint32_t flags_read = flags->tested & INSN_FLAGS_ALL;
    uint32_t flags_written =
        (flags->modified | flags->set_0 | flags->set_1 | flags->undefined) &
        INSN_FLAGS_ALL;
    struct insn_effects e;
    struct access a;

    insn_effects(ours, &e);
    accesses_collect(&a, t);
    if (ours->kind == INSN_STRING)
        flags_read &=
            (uint32_t)~FLAGS_ZF; /* a repeat reads only the ZF that itself has written */
    if (!reads_in_vain(t))
        ask(FACT_READ, ours, !(a.read & ~e.regs_read));
    ask(FACT_READ, ours, !(flags_read & ~e.flags_read));
    ask(FACT_WRITTEN, ours, !(a.written & ~e.regs_written));
    ask(FACT_WRITTEN, ours, !(flags_written & ~e.flags_written));
    ask(FACT_WRITTEN, ours, !(e.regs_killed & ~e.regs_written));
    ask(FACT_KILLED, ours, !(e.regs_killed & ~a.whole));
    ask(FACT_KILLED, ours, !(e.flags_killed & ~flags_written));
}

static bool is_memory_access(const ZydisDecodedOperand *o)
{
    return o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.type == ZYDIS_MEMOP_TYPE_MEM;
}

/* is_hint - does Zydis list an access to memory that cannot fault, such as a prefetch? */
static bool is_hint(const struct theirs *t)
{
    switch (t->insn.meta.category) {
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1:
    case ZYDIS_CATEGORY_CLDEMOTE:
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
        return true;
    default:
        return t->insn.mnemonic == M(INVLPG);
    }
}

static void compare_memory(const struct insn *ours, const struct theirs *t)
{
    for (unsigned i = 0; i < t->insn.operand_count; i++) {
        if (is_memory_access(&t->operands[i]) && !is_hint(t))
            ask(FACT_MEMORY, ours, insn_may_fault(ours));
    }
}

void compare_effects(const struct insn *ours, const struct theirs *t)
{
    compare_sets(ours, t);
    compare_memory(ours, t);
}
