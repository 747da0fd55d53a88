/* test_encode.c - tests of the bytes of the instructions that the engine writes. */
#include "probes/insn/encode.h"
#include "tests/unit/insn_hex.h"
#include "tests/unit/unit.h"

UNIT_TEST(jmp_forwards_counts_from_its_end)
{
    uint8_t out[INSN_JMP32_LEN];

    CHECK_EQ(insn_encode_jmp32(out, 0x1000, 0x1005), 0);
    CHECK_BYTES(out, "e9 00 00 00 00");
    CHECK_EQ(insn_encode_call32(out, 0x1000, 0x2000), 0);
    CHECK_BYTES(out, "e8 fb 0f 00 00");
}

UNIT_TEST(jmp32_reaches_two_gigabytes_and_no_further)
{
    uint8_t out[INSN_JMP32_LEN] = { 0 };
    uintptr_t from = 0xffffffff80000000, next = from + INSN_JMP32_LEN;

    CHECK_EQ(insn_encode_jmp32(out, from, next + 0x7fffffff), 0);
    CHECK_BYTES(out, "e9 ff ff ff 7f");
    CHECK_EQ(insn_encode_jmp32(out, from, next - 0x80000000), 0);
    CHECK_BYTES(out, "e9 00 00 00 80");
    CHECK_EQ(insn_encode_jmp32(out, from, next + 0x80000000), -ERANGE);
    CHECK_EQ(insn_encode_jmp32(out, from, next - 0x80000001), -ERANGE);
    CHECK_BYTES(out, "e9 00 00 00 80");
}

UNIT_TEST(jmp8_reaches_127_bytes_and_no_further)
{
    uint8_t out[INSN_JMP8_LEN];

    CHECK_EQ(insn_encode_jmp8(out, 0x1000, 0x1002 + 127), 0);
    CHECK_BYTES(out, "eb 7f");
    CHECK_EQ(insn_encode_jmp8(out, 0x1000, 0x1002 - 128), 0);
    CHECK_BYTES(out, "eb 80");
    CHECK_EQ(insn_encode_jmp8(out, 0x1000, 0x1002 + 128), -ERANGE);
    CHECK_EQ(insn_encode_jmp8(out, 0x1000, 0x1002 - 129), -ERANGE);
}

/* padded_jump - write a jump with @pad prefixes. */
static int padded_jump(uint8_t *out, size_t pad, uintptr_t from, uintptr_t to)
{
    insn_encode_jmp32_head(out, pad, 0);
    return insn_encode_jmp32(out + pad, from + pad, to);
}

UNIT_TEST(a_padded_jump_has_its_displacement_further_on)
{
    uint8_t out[INSN_MAX_LEN];

    CHECK_EQ(padded_jump(out, 0, 0x1000, 0x2000), 0);
    CHECK_BYTES(out, "e9 fb 0f 00 00");
    CHECK_EQ(padded_jump(out, 1, 0x1000, 0x2000), 0);
    CHECK_BYTES(out, "40 e9 fa 0f 00 00");
    CHECK_EQ(padded_jump(out, 3, 0x1000, 0x2000), 0);
    CHECK_BYTES(out, "2e 2e 40 e9 f8 0f 00 00");
}

UNIT_TEST(a_padded_jump_is_one_jump_without_66)
{
    for (size_t pad = 0; pad <= INSN_JMP_PAD_MAX; pad++) {
        uint8_t out[INSN_MAX_LEN];
        struct insn insn;

        CHECK_EQ(padded_jump(out, pad, 0x1000, 0x2000), 0);
        CHECK_EQ(insn_decode(&insn, out, INSN_JMP32_LEN + pad, 0x1000), 0);
        CHECK_EQ(insn.len, INSN_JMP32_LEN + pad);
        CHECK_EQ(insn.kind, INSN_JMP_REL);
        CHECK_EQ(insn.target, 0x2000);
        CHECK_EQ(insn.imm_off, pad + 1);
        CHECK(!insn.opsize66);
    }
}

UNIT_TEST(any_prefixes_are_the_same_jump)
{
    struct insn insn;
    uint8_t out[INSN_MAX_LEN];

    for (unsigned variant = 0; variant < INSN_JMP_VARIANTS; variant++) {
        size_t len = insn_encode_jmp32_head(out, 4, variant);

        len += insn_encode_disp32(out + len, 0x123);
        CHECK_EQ(insn_decode(&insn, out, len, 0x1000), 0);
        CHECK(insn.kind == INSN_JMP_REL && insn.len == 9 && !insn.opsize66);
        CHECK_EQ(insn.target, 0x1000 + 9 + 0x123);
    }
}

UNIT_TEST(a_constant_takes_its_shortest_form)
{
    uint8_t out[INSN_MOV_IMM_MAX_LEN];

    CHECK_EQ(insn_encode_mov_imm(out, INSN_DI, 0x12345678), 5);
    CHECK_BYTES(out, "bf 78 56 34 12");
    CHECK_EQ(insn_encode_mov_imm(out, INSN_R8, 0xffffffff), 6);
    CHECK_BYTES(out, "41 b8 ff ff ff ff");
    CHECK_EQ(insn_encode_mov_imm(out, INSN_AX, 0xffffffff80000000), 7);
    CHECK_BYTES(out, "48 c7 c0 00 00 00 80");
    CHECK_EQ(insn_encode_mov_imm(out, INSN_R15, 0xffffffffffffffff), 7);
    CHECK_BYTES(out, "49 c7 c7 ff ff ff ff");
    CHECK_EQ(insn_encode_mov_imm(out, INSN_SI, 0x0123456789abcdef), 10);
    CHECK_BYTES(out, "48 be ef cd ab 89 67 45 23 01");
}

UNIT_TEST(registers_are_pushed_and_popped)
{
    uint8_t out[5];

    CHECK_EQ(insn_encode_push(out, INSN_BP), 1);
    CHECK_BYTES(out, "55");
    CHECK_EQ(insn_encode_push(out, INSN_R15), 2);
    CHECK_BYTES(out, "41 57");
    CHECK_EQ(insn_encode_pop(out, INSN_AX), 1);
    CHECK_BYTES(out, "58");
    CHECK_EQ(insn_encode_pop(out, INSN_R8), 2);
    CHECK_BYTES(out, "41 58");
    CHECK_EQ(insn_encode_push_imm(out, -2), 5);
    CHECK_BYTES(out, "68 fe ff ff ff");
}

UNIT_TEST(flags_go_to_ax_and_back)
{
    uint8_t out[INSN_FLAGS_SAVE_LEN];

    CHECK_EQ(insn_encode_flags_save(out), INSN_FLAGS_SAVE_LEN);
    CHECK_BYTES(out, "9f 0f 90 c0");
    CHECK_EQ(insn_encode_flags_restore(out), INSN_FLAGS_RESTORE_LEN);
    CHECK_BYTES(out, "04 7f 9e");
}

UNIT_TESTS()
