/* operand.c - compute registers, addresses and conditions from an image. Pure; any
 * context.
 *
 * A hit calls these functions to emulate an instruction, so they carry no probes.
 */
#include "probes/insn/operand.h"

#include "kernel/base/compiler.h"
#include "kernel/base/registers.h"

#define OFFSET(name, field, number, gdb, dwarf)                                          \
    [number] = offsetof(struct pt_regs, field),
static const uint8_t reg_offsets[REGISTERS_COUNT] = { REGISTERS(OFFSET) };

unsigned long *insn_reg(struct pt_regs *regs, unsigned n)
{
    return (unsigned long *)((uint8_t *)regs + reg_offsets[n & 15]);
}
NOKPROBE(insn_reg);

NOKPROBE_INLINE unsigned long reg_value(const struct pt_regs *regs, unsigned n)
{
    return *(const unsigned long *)((const uint8_t *)regs + reg_offsets[n & 15]);
}

uintptr_t insn_effective_address(const struct insn *insn, const struct pt_regs *regs)
{
    uintptr_t address = (uintptr_t)(intptr_t)insn->disp;

    if (insn->rip_relative)
        return insn->mem;
    if (insn->base != INSN_REG_NONE)
        address += reg_value(regs, insn->base);
    if (insn->index != INSN_REG_NONE)
        address += reg_value(regs, insn->index) * insn->scale;
    if (insn->addrsize == 4)
        return (uint32_t)address;
    return address;
}
NOKPROBE(insn_effective_address);

/* Conditions come in pairs: an odd number is the negation of the even one before it. */
bool insn_cond_holds(unsigned cond, unsigned long flags)
{
    bool sign_differs = !(flags & FLAGS_SF) != !(flags & FLAGS_OF);
    bool holds = false;

    switch (cond >> 1 & 7) {
    case 0: /* o */
        holds = flags & FLAGS_OF;
        break;
    case 1: /* b */
        holds = flags & FLAGS_CF;
        break;
    case 2: /* z */
        holds = flags & FLAGS_ZF;
        break;
    case 3: /* be */
        holds = flags & (FLAGS_CF | FLAGS_ZF);
        break;
    case 4: /* s */
        holds = flags & FLAGS_SF;
        break;
    case 5: /* p */
        holds = flags & FLAGS_PF;
        break;
    case 6: /* l */
        holds = sign_differs;
        break;
    default: /* le */
        holds = sign_differs || (flags & FLAGS_ZF);
        break;
    }
    return holds != (cond & 1);
}
NOKPROBE(insn_cond_holds);

unsigned long insn_cond_flags(unsigned cond)
{
    static const uint16_t flags[8] = {
        FLAGS_OF,
        FLAGS_CF,
        FLAGS_ZF,
        FLAGS_CF | FLAGS_ZF,
        FLAGS_SF,
        FLAGS_PF,
        FLAGS_SF | FLAGS_OF,
        FLAGS_SF | FLAGS_OF | FLAGS_ZF,
    };

    return flags[cond >> 1 & 7];
}
