/* test_relocate.c - tests of insn_relocate(): the bytes of the same instruction at
 * another address.
 */
#include "probes/insn/relocate.h"
#include "tests/unit/insn_hex.h"
#include "tests/unit/unit.h"

#define TO (HEX_ADDR + 0x1000)

/* check_moved - check that the instruction @from at HEX_ADDR becomes @want at @to. */
static void check_moved(const char *from, uintptr_t to, const char *want, int line)
{
    struct insn insn = hex_insn(from);
    uint8_t out[INSN_RELOCATED_MAX_LEN], wanted[32];
    size_t len = 0, wanted_len = hex_bytes(wanted, want);

    unit_check_eq(insn_relocate(out, sizeof(out), &insn, to, &len), 0, __FILE__, line,
                  from);
    unit_check_eq((long long)len, (long long)wanted_len, __FILE__, line, from);
    unit_check_eq((long long)insn_relocated_len(&insn), (long long)len, __FILE__, line,
                  from);
    if (len == wanted_len)
        unit_check_bytes(out, want, __FILE__, line);
}

static int move(const char *from, uintptr_t to)
{
    struct insn insn = hex_insn(from);
    uint8_t out[INSN_RELOCATED_MAX_LEN];
    size_t len;

    return insn_relocate(out, sizeof(out), &insn, to, &len);
}

#define CHECK_MOVED(from, to, want) check_moved(from, to, want, __LINE__)

UNIT_TEST(what_does_not_look_at_rip_is_copied)
{
    CHECK_MOVED("48 89 c3", TO, "48 89 c3");
    CHECK_MOVED("f3 48 a5", TO, "f3 48 a5");
    CHECK_MOVED("c3", TO, "c3");
    CHECK_MOVED("ff e0", TO, "ff e0");
    CHECK_MOVED("66 2e 0f 1f 84 00 00 00 00 00", TO, "66 2e 0f 1f 84 00 00 00 00 00");
}

UNIT_TEST(rip_relative_is_counted_anew)
{
    CHECK_MOVED("48 8b 05 00 20 00 00", TO, "48 8b 05 00 10 00 00");
    CHECK_MOVED("48 8d 0d fa ff ff ff", TO, "48 8d 0d fa ef ff ff");
    CHECK_MOVED("ff 25 00 00 00 00", TO, "ff 25 00 f0 ff ff");
}

UNIT_TEST(rip_relative_reaches_exactly_two_gigabytes)
{
    CHECK_EQ(move("48 8b 05 00 00 00 00", HEX_ADDR - 0x7fffffff), 0);
    CHECK_EQ(move("48 8b 05 00 00 00 00", HEX_ADDR - 0x80000000), -ERANGE);
    CHECK_EQ(move("48 8b 05 00 00 00 00", HEX_ADDR + 0x80000000), 0);
    CHECK_EQ(move("48 8b 05 00 00 00 00", HEX_ADDR + 0x80000001), -ERANGE);
}

UNIT_TEST(eip_relative_wraps_and_reaches_everything)
{
    CHECK_MOVED("67 8b 05 00 00 00 00", HEX_ADDR + 0x7ffffffff000,
                "67 8b 05 00 10 00 00");
}

UNIT_TEST(a_jump_becomes_near)
{
    CHECK_MOVED("eb 10", TO, "e9 0d f0 ff ff");
    CHECK_MOVED("e9 00 20 00 00", TO, "e9 00 10 00 00");
    CHECK_MOVED("f2 e9 00 20 00 00", TO, "e9 01 10 00 00");
}

UNIT_TEST(a_jump_to_itself_goes_to_the_original)
{
    CHECK_MOVED("eb fe", TO, "e9 fb ef ff ff");
}

UNIT_TEST(jcc_short_becomes_near)
{
    CHECK_MOVED("74 10", TO, "0f 84 0c f0 ff ff");
    CHECK_MOVED("7f 80", TO, "0f 8f 7c ef ff ff");
    CHECK_MOVED("0f 88 00 20 00 00", TO, "0f 88 00 10 00 00");
    CHECK_MOVED("2e 75 10", TO, "0f 85 0d f0 ff ff");
}

UNIT_TEST(loop_hops_over_a_jump)
{
    CHECK_MOVED("e2 fe", TO, "e2 02 eb 05 e9 f7 ef ff ff");
    CHECK_MOVED("e1 00", TO, "e1 02 eb 05 e9 f9 ef ff ff");
    CHECK_MOVED("e3 10", TO, "e3 02 eb 05 e9 09 f0 ff ff");
}

UNIT_TEST(a_32_bit_counter_stays_32_bits)
{
    CHECK_MOVED("67 e3 10", TO, "67 e3 02 eb 05 e9 09 f0 ff ff");
    CHECK_MOVED("67 e0 fd", TO, "67 e0 02 eb 05 e9 f6 ef ff ff");
}

UNIT_TEST(a_branch_out_of_reach_is_refused)
{
    CHECK_EQ(move("eb 00", HEX_ADDR + 0x90000000), -ERANGE);
    CHECK_EQ(move("74 00", HEX_ADDR + 0x90000000), -ERANGE);
    CHECK_EQ(move("e2 00", HEX_ADDR + 0x90000000), -ERANGE);
}

UNIT_TEST(what_depends_on_its_place_is_refused)
{
    static const char *const refused[] = {
        "e8 00 00 00 00",
        "ff d0",
        "ff 15 00 00 00 00",
        "cc",
        "f1",
        "0f 05",
        "8e d0",
        "c7 f8 00 00 00 00",
        "48 cf",
        "cb",
        "66 e9 00 00 00 00",
        "66 c3",
        "0f 01 c1",
    };

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct insn insn = hex_insn(refused[i]);

        CHECK(insn.len != 0);
        CHECK_EQ(move(refused[i], TO), -EOPNOTSUPP);
        CHECK_EQ(insn_relocated_len(&insn), 0);
    }
}

UNIT_TEST(a_refusal_writes_nothing)
{
    struct insn insn = hex_insn("74 10");
    uint8_t out[6] = { 1, 2, 3, 4, 5, 6 };
    size_t len = 77;

    CHECK_EQ(insn_relocate(out, 5, &insn, TO, &len), -E2BIG);
    CHECK_EQ(insn_relocate(out, 6, &insn, HEX_ADDR + 0x90000000, &len), -ERANGE);
    CHECK_BYTES(out, "01 02 03 04 05 06");
    CHECK_EQ(len, 77);
    CHECK_EQ(insn_relocate(out, 6, &insn, TO, &len), 0);
}

UNIT_TESTS()
