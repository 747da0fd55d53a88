/* test_operand.c - tests of the operands of instructions: registers, addresses and
 * conditions, by a register image.
 */
#include "probes/insn/operand.h"
#include "tests/unit/insn_hex.h"
#include "tests/unit/unit.h"

static struct pt_regs numbered_regs(void)
{
    struct pt_regs regs = { 0 };

    for (unsigned n = 0; n < 16; n++)
        *insn_reg(&regs, n) = UINT64_C(0x100000000) * (n + 1) + UINT64_C(0x1000) * n;
    regs.ip = 0xdead;
    return regs;
}

static uintptr_t address(const char *hex)
{
    struct pt_regs regs = numbered_regs();
    struct insn insn = hex_insn(hex);

    CHECK(insn.has_mem);
    return insn_effective_address(&insn, &regs);
}

UNIT_TEST(an_address_is_base_index_and_displacement)
{
    struct pt_regs regs = numbered_regs();

    CHECK_EQ(address("ff 10"), regs.ax);
    CHECK_EQ(address("ff 50 f8"), regs.ax - 8);
    CHECK_EQ(address("ff 14 c8"), regs.ax + 8 * regs.cx);
    CHECK_EQ(address("43 ff 54 e7 10"), regs.r15 + 8 * regs.r12 + 16);
    CHECK_EQ(address("ff 94 24 00 01 00 00"), regs.sp + 0x100);
}

UNIT_TEST(no_index_and_no_base_count_as_nothing)
{
    struct pt_regs regs = numbered_regs();

    CHECK_EQ(address("ff 14 24"), regs.sp);
    CHECK_EQ(address("ff 24 c5 00 00 00 80"), 8 * regs.ax + UINT64_C(0xffffffff80000000));
    CHECK_EQ(address("ff 14 25 10 00 00 00"), 0x10);
}

UNIT_TEST(rip_relative_counts_from_the_original)
{
    CHECK_EQ(address("ff 15 00 01 00 00"), HEX_ADDR + 6 + 0x100);
}

UNIT_TEST(an_address_size_of_4_cuts_off)
{
    struct pt_regs regs = numbered_regs();

    CHECK_EQ(address("67 ff 50 f0"), (uint32_t)(regs.ax - 16));
    CHECK_EQ(address("67 ff 15 00 00 00 00"), (uint32_t)(HEX_ADDR + 7));
}

/* Each condition is computed as the manual defines it, for all values of the flags. */
UNIT_TEST(conditions_hold_when_they_should)
{
    for (unsigned i = 0; i < 32; i++) {
        bool c = i & 1, z = i & 2, s = i & 4, o = i & 8, p = i & 16;
        unsigned long flags = c * FLAGS_CF | z * FLAGS_ZF | s * FLAGS_SF | o * FLAGS_OF |
                              p * FLAGS_PF | FLAGS_FIXED | FLAGS_IF;
        bool want[16] = { o, !o, c, !c, z,      !z,     c || z,      !c && !z,
                          s, !s, p, !p, s != o, s == o, z || s != o, !z && s == o };

        for (unsigned cond = 0; cond < 16; cond++)
            CHECK_EQ(insn_cond_holds(cond, flags), want[cond]);
    }
}

UNIT_TEST(conditions_depend_on_their_flags_alone)
{
    for (unsigned cond = 0; cond < 16; cond++) {
        for (unsigned bit = 0; bit < 12; bit++) {
            unsigned long flag = 1ul << bit;
            bool matters = false;

            for (unsigned long flags = 0; flags < 4096; flags++)
                matters |=
                    insn_cond_holds(cond, flags) != insn_cond_holds(cond, flags ^ flag);
            CHECK_EQ(matters, (insn_cond_flags(cond) & flag) != 0);
        }
    }
}

UNIT_TESTS()
