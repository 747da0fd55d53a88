/* grader_code.c - makes random registers and random instructions. */
#include "docs/labs/host/grader.h"

#include <string.h>

#define REX_W 0x48
#define REX_R 4u
#define REX_B 1u
#define SP 4u

void lab_regs_random(struct lab_regs *regs)
{
    uint64_t *word = &regs->ax;

    for (unsigned i = 0; &word[i] <= &regs->flags; i++)
        word[i] = lab_random();
    regs->flags &= LAB_FLAGS;
    regs->below = 0;
    for (unsigned i = 0; i < sizeof(regs->vectors) / sizeof(*word); i++)
        regs->vectors[i] = regs->ax * (2 * i + 1);
}

void lab_regs_fact(const struct lab_regs *regs)
{
    static const char *const names[] = { "ax",  "cx",  "dx",  "bx",  "bp",
                                         "si",  "di",  "r8",  "r9",  "r10",
                                         "r11", "r12", "r13", "r14", "r15" };
    const uint64_t *word = &regs->ax;

    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
        lab_fact("%s: %#lx", names[i], word[i]);
    lab_fact("flags: %#lx", regs->flags & LAB_FLAGS);
    lab_fact("xmm0 to xmm15, a checksum: %#lx",
             lab_digest(0, regs->vectors, sizeof(regs->vectors)));
    lab_fact("the words below rsp, a checksum: %#lx", regs->below);
}

/* Choose a random register, but not rsp. */
static unsigned reg_random(void)
{
    unsigned reg = lab_below(15);

    return reg + (reg >= SP);
}

static unsigned two_registers(uint8_t *out, unsigned opcode)
{
    unsigned reg = reg_random(), rm = reg_random();

    out[0] = (uint8_t)(REX_W | (reg >= 8 ? REX_R : 0) | (rm >= 8 ? REX_B : 0));
    out[1] = (uint8_t)opcode;
    out[2] = (uint8_t)(0xc0 | (reg & 7) << 3 | (rm & 7));
    return 3;
}

static unsigned with_immediate(uint8_t *out, unsigned opcode, unsigned group,
                               unsigned len)
{
    unsigned rm = reg_random();
    uint32_t imm = (uint32_t)lab_random();

    out[0] = (uint8_t)(REX_W | (rm >= 8 ? REX_B : 0));
    out[1] = (uint8_t)opcode;
    out[2] = (uint8_t)(0xc0 | group << 3 | (rm & 7));
    memcpy(out + 3, &imm, len);
    return 3 + len;
}

unsigned lab_insn_random(uint8_t *out)
{
    static const uint8_t two[] = { 0x01, 0x29, 0x31, 0x21, 0x09, 0x89, 0x39, 0x85 };
    uint32_t imm = (uint32_t)lab_random();

    switch (lab_below(6)) {
    case 0: /* add, or, adc, ... with four bytes */
        return with_immediate(out, 0x81, lab_below(8), 4);
    case 1: /* the same with one */
        return with_immediate(out, 0x83, lab_below(8), 1);
    case 2: /* mov to ecx */
        out[0] = 0xb9;
        memcpy(out + 1, &imm, 4);
        return 5;
    case 3: /* inc, dec */
        return with_immediate(out, 0xff, lab_below(2), 0);
    case 4: /* lea */
        two_registers(out, 0x8d);
        out[2] = (uint8_t)((out[2] & 0x3f) | 0x40);
        if ((out[2] & 7) == SP) /* this value would mean that a SIB byte follows */
            out[2] ^= 1;
        out[3] = (uint8_t)imm;
        return 4;
    default:
        return two_registers(out, two[lab_below(sizeof(two))]);
    }
}

unsigned lab_insn_longest(uint8_t *out)
{
    static const uint8_t mov[] = { 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x48, 0xb8 }; /* rax */
    uint64_t imm = lab_random();

    memcpy(out, mov, sizeof(mov));
    memcpy(out + sizeof(mov), &imm, sizeof(imm));
    return LAB_INSN_LONGEST;
}
