/* test_builder.c - each instruction that the builder makes has the bytes of the manual, and
 * the decoder reads the same out of them.
 */
#include "probes/insn/builder.h"
#include "probes/insn/effects.h"
#include "tests/unit/unit.h"

static uint8_t bytes[64];
static struct insn_builder b;

static void start(void)
{
    b = (struct insn_builder){ .out = bytes, .max = sizeof(bytes) };
    memset(bytes, 0, sizeof(bytes));
}

/* is - the code so far is @hex, one instruction; start anew. */
static void is(const char *hex)
{
    struct insn insn;

    CHECK_BYTES(bytes, hex);
    CHECK_EQ(insn_decode(&insn, bytes, sizeof(bytes), 0), 0);
    CHECK_EQ(insn.len, b.len);
    start();
}

UNIT_TEST(moves)
{
    insn_build_get(&b, INSN_CX, insn_reg_place(INSN_R12));
    is("49 8b cc");
    insn_build_get(&b, INSN_R9, insn_sp_place(16));
    is("4c 8b 4c 24 10");
    insn_build_get(&b, INSN_AX, insn_gs_place(0x1000));
    is("65 48 8b 04 25 00 10 00 00");
    insn_build_get(&b, INSN_AX, insn_key_place(0x1000, INSN_DX));
    is("65 48 8b 04 d5 00 10 00 00");
    insn_build_address(&b, INSN_CX, 24);
    is("48 8d 4c 24 18");
    insn_build_imm(&b, INSN_CX, 5);
    is("b9 05 00 00 00");
}

UNIT_TEST(loads_and_stores_of_each_size)
{
    struct insn_place at = insn_at_place(INSN_CX, -8), high = insn_at_place(INSN_R12, 4);

    insn_build_load(&b, INSN_CX, at, 1, false);
    is("48 0f b6 49 f8");
    insn_build_load(&b, INSN_CX, at, 1, true);
    is("48 0f be 49 f8");
    insn_build_load(&b, INSN_CX, at, 2, false);
    is("48 0f b7 49 f8");
    insn_build_load(&b, INSN_CX, at, 2, true);
    is("48 0f bf 49 f8");
    insn_build_load(&b, INSN_CX, at, 4, false);
    is("8b 49 f8");
    insn_build_load(&b, INSN_CX, at, 4, true);
    is("48 63 49 f8");
    insn_build_load(&b, INSN_CX, high, 8, false);
    is("49 8b 4c 24 04");
    insn_build_put(&b, at, INSN_SI, 1);
    is("40 88 71 f8");
    insn_build_put(&b, at, INSN_DX, 2);
    is("66 89 51 f8");
    insn_build_put(&b, at, INSN_R8, 4);
    is("44 89 41 f8");
    insn_build_put(&b, at, INSN_AX, 8);
    is("48 89 41 f8");
}

UNIT_TEST(arithmetic)
{
    insn_build_alu_imm(&b, INSN_ALU_CMP, insn_reg_place(INSN_DI), 100);
    is("48 83 ff 64");
    insn_build_alu_imm(&b, INSN_ALU_CMP, insn_reg_place(INSN_R15), 1000);
    is("49 81 ff e8 03 00 00");
    insn_build_alu_imm(&b, INSN_ALU_AND, insn_reg_place(INSN_CX), -1);
    is("48 83 e1 ff");
    insn_build_alu(&b, INSN_ALU_ADD, insn_gs_place(8), INSN_R8);
    is("65 4c 01 04 25 08 00 00 00");
    insn_build_alu_to(&b, INSN_ALU_XOR, INSN_CX, insn_sp_place(8));
    is("48 33 4c 24 08");
    insn_build_test_imm(&b, insn_reg_place(INSN_SI), 3);
    is("48 f7 c6 03 00 00 00");
    insn_build_test(&b, insn_reg_place(INSN_SI), INSN_AX);
    is("48 85 c6");
    insn_build_shift(&b, INSN_SHIFT_ARITHMETIC, INSN_CX, 63);
    is("48 c1 f9 3f");
    insn_build_bsr(&b, INSN_DX, insn_reg_place(INSN_R10));
    is("49 0f bd d2");
    insn_build_mul(&b, INSN_DX);
    is("48 f7 e2");
}

UNIT_TEST(words_behind_gs)
{
    insn_build_inc(&b, insn_gs_place(0x20));
    is("65 48 ff 04 25 20 00 00 00");
    insn_build_inc(&b, insn_key_place(0x20, INSN_DX));
    is("65 48 ff 04 d5 20 00 00 00");
    insn_build_inc(&b, insn_key_place(0x20, INSN_R9));
    is("65 4a ff 04 cd 20 00 00 00");
    insn_build_dec(&b, insn_gs_place(0x20));
    is("65 48 ff 0c 25 20 00 00 00");
    insn_build_exchange(&b, insn_gs_place(0x20), INSN_CX);
    is("65 48 0f b1 0c 25 20 00 00 00");
}

UNIT_TEST(a_jump_leads_where_it_lands)
{
    size_t over = insn_build_jcc(&b, INSN_CC_BE), back;

    insn_build_push(&b, INSN_R9);
    insn_build_land(&b, over);
    back = insn_build_jmp(&b);
    insn_build_land_at(&b, back, 0);
    CHECK_BYTES(bytes, "0f 86 02 00 00 00 41 51 e9 f3 ff ff ff");
}

UNIT_TEST(nothing_is_written_behind_the_end)
{
    b.max = 3;
    insn_build_inc(&b, insn_gs_place(0));
    CHECK(b.full);
    CHECK_EQ(b.len, 3);
    CHECK_EQ(bytes[3], 0);
}

/* free_at - the registers, and in @flags the flags, that the straight code at @code kills
 * before it reads them: code in front of it may change them, and need not save them.
 */
static uint32_t free_at(const uint8_t *code, size_t len, uint32_t *flags)
{
    uint32_t regs = 0, read = 0, flags_read = 0;
    struct insn insn;

    *flags = 0;
    for (size_t at = 0; at < len && !insn_decode(&insn, code + at, len - at, at);
         at += insn.len) {
        struct insn_effects effects;

        insn_effects(&insn, &effects);
        read |= effects.regs_read;
        flags_read |= effects.flags_read;
        regs |= effects.regs_killed & ~read;
        *flags |= effects.flags_killed & ~flags_read;
    }
    return regs;
}

UNIT_TEST(code_may_use_what_the_program_kills)
{
    /* mov rcx, [rdi]; add rcx, rdx; sbb rax, rax; ret */
    static const uint8_t ahead[] = { 0x48, 0x8b, 0x0f, 0x48, 0x01,
                                     0xd1, 0x48, 0x19, 0xc0, 0xc3 };
    uint32_t flags;

    CHECK_EQ(free_at(ahead, sizeof(ahead), &flags), 1u << INSN_CX);
    CHECK_EQ(flags, INSN_FLAGS_STATUS);
    CHECK_EQ(free_at(ahead + 6, 4, &flags), 0);
    CHECK_EQ(flags, INSN_FLAGS_STATUS & ~(uint32_t)FLAGS_CF); /* which sbb reads */
    start(); /* so this code in front of it saves nothing */
    insn_build_get(&b, INSN_CX, insn_reg_place(INSN_DI));
    insn_build_alu_to(&b, INSN_ALU_ADD, INSN_CX, insn_gs_place(0x20));
    insn_build_put(&b, insn_gs_place(0x20), INSN_CX, 8);
    CHECK(!b.full);
}

UNIT_TESTS_BETWEEN(start, NULL)
