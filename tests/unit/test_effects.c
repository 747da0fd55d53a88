/* test_effects.c - tests of insn_effects(): the registers and flags that an instruction
 * reads, writes, and kills (writes in any case).
 */
#include "probes/insn/effects.h"
#include "tests/unit/insn_hex.h"
#include "tests/unit/unit.h"

#define R(n) (1u << (n))
#define AX R(INSN_AX)
#define CX R(INSN_CX)
#define DX R(INSN_DX)
#define BX R(INSN_BX)
#define SP R(INSN_SP)
#define SI R(INSN_SI)
#define DI R(INSN_DI)
#define STATUS INSN_FLAGS_STATUS

static struct insn_effects effects(const char *hex)
{
    struct insn insn = hex_insn(hex);
    struct insn_effects e = { 0 };

    CHECK(insn.len != 0);
    insn_effects(&insn, &e);
    return e;
}

#define CHECK_REGS(hex, read, written, killed)                                           \
    do {                                                                                 \
        struct insn_effects e_ = effects(hex);                                           \
                                                                                         \
        CHECK_EQ(e_.regs_read, (read));                                                  \
        CHECK_EQ(e_.regs_written, (written));                                            \
        CHECK_EQ(e_.regs_killed, (killed));                                              \
    } while (0)

#define CHECK_FLAGS(hex, read, written, killed)                                          \
    do {                                                                                 \
        struct insn_effects e_ = effects(hex);                                           \
                                                                                         \
        CHECK_EQ(e_.flags_read, (read));                                                 \
        CHECK_EQ(e_.flags_written, (written));                                           \
        CHECK_EQ(e_.flags_killed, (killed));                                             \
    } while (0)

UNIT_TEST(a_move_kills_its_destination)
{
    CHECK_REGS("48 89 c3", AX, BX, BX);
    CHECK_REGS("8b 03", BX, AX, AX);
    CHECK_REGS("49 bf 00 00 00 00 00 00 00 00", 0, R(15), R(15));
    CHECK_FLAGS("48 89 c3", 0, 0, 0);
}

UNIT_TEST(high_bytes_are_parts_of_the_first_four)
{
    CHECK_REGS("88 e3", AX | BX, BX, 0);    /* mov %ah,%bl */
    CHECK_REGS("40 88 e3", SP | BX, BX, 0); /* mov %spl,%bl */
    CHECK_REGS("b7 01", BX, BX, 0);         /* mov $1,%bh */
}

UNIT_TEST(an_address_is_read)
{
    CHECK_REGS("48 8d 04 8a", DX | CX, AX, AX);
    CHECK_REGS("43 89 44 e7 10", R(15) | R(12) | AX, 0, 0);
    CHECK_REGS("8b 05 00 00 00 00", 0, AX, AX);
}

UNIT_TEST(a_zeroing_idiom_reads_nothing)
{
    CHECK_REGS("31 c0", 0, AX, AX);
    CHECK_REGS("48 29 db", 0, BX, BX);
    CHECK_REGS("31 c3", AX | BX, BX, 0);
    CHECK_REGS("19 c0", AX, AX, 0); /* the result of sbb depends on the carry */
    CHECK_REGS("66 31 c0", AX, AX, 0);
    CHECK_REGS("09 c0", AX, AX, 0);
    CHECK_REGS("30 e0", AX, AX, 0);
}

UNIT_TEST(a_shift_kills_flags_only_when_it_surely_shifts)
{
    CHECK_FLAGS("c1 e0 03", 0, STATUS, STATUS);
    CHECK_FLAGS("d1 e0", 0, STATUS, STATUS);
    CHECK_FLAGS("c1 e0 20", 0, STATUS, 0);
    CHECK_FLAGS("48 c1 e0 20", 0, STATUS, STATUS);
    CHECK_FLAGS("d3 e0", 0, STATUS, 0);
    CHECK_REGS("d3 e0", AX | CX, AX, 0);
    CHECK_FLAGS("0f a5 c3", 0, STATUS, 0);
}

UNIT_TEST(a_rotation_writes_two_flags)
{
    uint32_t co = FLAGS_CF | FLAGS_OF;

    CHECK_FLAGS("c1 c0 03", 0, co, co);
    CHECK_FLAGS("d1 d0", FLAGS_CF, co, FLAGS_OF);
    CHECK_FLAGS("c0 d0 09", FLAGS_CF, co, 0); /* rcl by 9 of 9 bits changes nothing */
}

UNIT_TEST(conditions_are_read)
{
    CHECK_FLAGS("74 00", FLAGS_ZF, 0, 0);
    CHECK_FLAGS("0f 9e c0", FLAGS_ZF | FLAGS_SF | FLAGS_OF, 0, 0);
    CHECK_FLAGS("0f 42 c1", FLAGS_CF, 0, 0);
    CHECK_REGS("0f 42 c1", AX | CX, AX, 0);
    CHECK_FLAGS("e1 00", FLAGS_ZF, 0, 0);
    CHECK_FLAGS("e2 00", 0, 0, 0);
    CHECK_REGS("e2 00", CX, CX, 0);
}

UNIT_TEST(multiplication_and_division_imply_registers)
{
    CHECK_REGS("48 f7 e3", AX | BX, AX | DX, DX);
    CHECK_REGS("f6 e3", AX | BX, AX, 0);
    CHECK_REGS("66 f7 e3", AX | BX, AX | DX, 0);
    CHECK_REGS("48 f7 f3", AX | BX | DX, AX | DX, 0);
    CHECK_REGS("48 0f af c3", AX | BX, AX, 0);
    CHECK_REGS("48 6b c3 05", BX, AX, AX);
    CHECK_REGS("48 99", AX, DX, DX);
    CHECK_REGS("66 99", AX, DX, 0);
}

UNIT_TEST(strings_read_the_direction_and_repeats_count)
{
    CHECK_REGS("a4", SI | DI, SI | DI, 0);
    CHECK_REGS("f3 a4", SI | DI | CX, SI | DI | CX, 0);
    CHECK_FLAGS("a4", FLAGS_DF, 0, 0);
    CHECK_FLAGS("a6", FLAGS_DF, STATUS, STATUS);
    CHECK_FLAGS("f3 a6", FLAGS_DF, STATUS, 0); /* rcx may be 0 */
    CHECK_FLAGS("fc", 0, FLAGS_DF, FLAGS_DF);
}

UNIT_TEST(system_instructions_with_known_registers_say_so)
{
    CHECK_REGS("0f a2", AX | CX, AX | BX | CX | DX, BX | DX);
    CHECK_REGS("0f 31", 0, AX | DX, AX | DX);
    CHECK_REGS("0f 30", AX | CX | DX, 0, 0);
    CHECK_REGS("0f 32", CX, AX | DX, AX | DX);
    CHECK_REGS("0f 20 d8", 0, AX, AX);
    CHECK_REGS("ec", AX | DX, AX, 0);
}

UNIT_TEST(nops_do_nothing_at_all)
{
    CHECK_REGS("0f 1f 44 00 00", 0, 0, 0);
    CHECK_FLAGS("0f 1f 44 00 00", 0, 0, 0);
    CHECK_REGS("f3 90", 0, 0, 0);
}

UNIT_TEST(calls_and_the_unknown_may_do_anything)
{
    static const char *const all[] = {
        "e8 00 00 00 00", "c3", "0f 05", "cc", "0f 01 c1", "f2 0f 01 c6", "f3 0f 01 c6"
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        CHECK_REGS(all[i], INSN_REGS_ALL, INSN_REGS_ALL, 0);
        CHECK_FLAGS(all[i], INSN_FLAGS_ALL, INSN_FLAGS_ALL, 0);
    }
}

UNIT_TEST(vector_instructions_kill_nothing)
{
    struct insn_effects e = effects("66 48 0f 7e c3"); /* movq %xmm0,%rbx */

    CHECK(e.regs_written & BX);
    CHECK_EQ(e.regs_killed, 0);
    CHECK_EQ(e.flags_killed, 0);
}

UNIT_TESTS()
