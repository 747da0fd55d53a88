/* test_insn.c - tests of the decoder, one fact at a time. tests/insn compares it with
 * other decoders.
 */
#include "probes/insn/insn.h"
#include "probes/insn/mnemonic.h"
#include "tests/unit/insn_hex.h"
#include "tests/unit/unit.h"

/* CHECK_KIND - check that the bytes @hex are one instruction of the kind @want. */
#define CHECK_KIND(hex, want)                                                            \
    do {                                                                                 \
        struct insn insn_ = hex_insn(hex);                                               \
        uint8_t bytes_[32];                                                              \
                                                                                         \
        CHECK_EQ(insn_.len, hex_bytes(bytes_, hex));                                     \
        CHECK_STR(insn_kind_name(insn_.kind), want);                                     \
    } while (0)

#define CHECK_LEN(hex) CHECK_EQ(hex_insn(hex).len, (hex_bytes((uint8_t[32]){ 0 }, hex)))
#define CHECK_BAD(hex) CHECK_EQ(hex_decode_at(&(struct insn){ 0 }, hex, 0), -EILSEQ)
/* CHECK_ALL - check that @predicate returns @want for each instruction of the array
 * @hexes.
 */
#define CHECK_ALL(hexes, predicate, want)                                                \
    do {                                                                                 \
        for (size_t i_ = 0; i_ < sizeof(hexes) / sizeof(hexes[0]); i_++) {               \
            struct insn insn_ = hex_insn(hexes[i_]);                                     \
                                                                                         \
            unit_check(insn_.len &&predicate(&insn_) == want, __FILE__, __LINE__,        \
                       hexes[i_]);                                                       \
        }                                                                                \
    } while (0)

#define CHECK_SHORT(hex) CHECK_EQ(hex_decode_at(&(struct insn){ 0 }, hex, 0), -EFAULT)

UNIT_TEST(a_window_that_ends_early_asks_for_more)
{
    CHECK_SHORT("48");
    CHECK_SHORT("0f");
    CHECK_SHORT("0f 38");
    CHECK_SHORT("8b");
    CHECK_SHORT("8b 04");
    CHECK_SHORT("8b 05 00 00 00");
    CHECK_SHORT("e8 00 00 00");
    CHECK_SHORT("62 f1 7c 48");
}

UNIT_TEST(the_last_of_fs_and_gs_counts_and_others_do_not)
{
    CHECK_EQ(hex_insn("64 65 8b 03").seg, INSN_SEG_GS);
    CHECK_EQ(hex_insn("65 64 8b 03").seg, INSN_SEG_FS);
    CHECK_EQ(hex_insn("64 2e 8b 03").seg, INSN_SEG_FS);
    CHECK_EQ(hex_insn("3e 8b 03").seg, INSN_SEG_NONE);
}

UNIT_TEST(a_rex_counts_only_right_before_the_opcode)
{
    struct insn insn = hex_insn("48 66 89 c3");

    CHECK(insn_is_ambiguous(&insn) && !insn_can_move(&insn)); /* QEMU's TCG takes it */
    insn = hex_insn("48 40 89 c3");
    CHECK(!insn_is_ambiguous(&insn));
    CHECK_EQ(hex_insn("48 89 c3").opsize, 8);
    CHECK_EQ(hex_insn("48 66 89 c3").opsize, 2);
    CHECK_EQ(hex_insn("48 40 89 c3").opsize, 4);
    CHECK_EQ(hex_insn("48 66 89 c3").rex, 0);
}

UNIT_TEST(moffs_follows_the_address_size)
{
    CHECK_LEN("a0 01 02 03 04 05 06 07 08");
    CHECK_LEN("67 a1 01 02 03 04");
    CHECK_LEN("48 a3 01 02 03 04 05 06 07 08");
}

UNIT_TEST(enter_has_two_immediates)
{
    CHECK_LEN("c8 10 00 01");
    CHECK_EQ(hex_insn("c8 10 00 01").imm, 16);
}

UNIT_TEST(only_test_of_group_3_has_an_immediate)
{
    CHECK_LEN("f6 c0 01");
    CHECK_LEN("f6 c8 01");
    CHECK_LEN("f7 c0 01 02 03 04");
    CHECK_LEN("66 f7 c0 01 02");
    CHECK_LEN("f6 d0");
    CHECK_LEN("f7 d8");
    CHECK_LEN("f7 e0");
}

UNIT_TEST(mandatory_prefixes_can_change_the_length)
{
    CHECK_LEN("66 0f 78 c0 01 02"); /* extrq */
    CHECK_LEN("f2 0f 78 c1 01 02"); /* insertq */
    CHECK_LEN("0f 78 c1");          /* vmread */
    CHECK_BAD("f3 0f 78 c1");
    CHECK_BAD("0f b8 c0");
    CHECK_LEN("f3 0f b8 c0"); /* popcnt */
}

UNIT_TEST(vex_and_evex_decode)
{
    CHECK_LEN("c5 f8 77");                /* vzeroupper */
    CHECK_LEN("c5 f9 6f 05 00 00 00 00"); /* vmovdqa rip */
    CHECK_LEN("c4 e3 7d 39 c1 01");       /* vextracti128 */
    CHECK_LEN("c4 e2 7d 18 00");
    CHECK_LEN("62 f1 7c 48 10 00");
    CHECK_LEN("62 f3 fd 48 1b c1 01");
    CHECK_LEN("62 f5 7c 48 58 c1"); /* vaddph: map 5 */
    CHECK_EQ(hex_insn("c5 f8 77").class, INSN_CLASS_AVX);
    CHECK_EQ(hex_insn("62 f1 7c 48 10 00").class, INSN_CLASS_AVX512);
    CHECK_BAD("c4 e4 7d 18 00"); /* no map 4 */
}

UNIT_TEST(vex_and_evex_extend_the_register_numbers)
{
    CHECK_EQ(hex_insn("c5 f9 7e c1").reg, 0); /* vmovd %xmm0,%ecx */
    CHECK_EQ(hex_insn("c5 79 7e c1").reg, 8);
    CHECK_EQ(hex_insn("c4 c1 79 7e c1").rm, 9);
    CHECK_EQ(hex_insn("c4 a2 79 18 04 08").index, 9);
    CHECK_EQ(hex_insn("c4 e2 20 f2 c1").vvvv, INSN_R11); /* andn %ecx,%r11d,%eax */
    CHECK_EQ(hex_insn("62 51 7c 48 10 02").reg, 8);
    CHECK_EQ(hex_insn("62 51 7c 48 10 02").base, INSN_R10);
}

UNIT_TEST(no_legacy_prefix_may_stand_before_vex)
{
    CHECK_BAD("66 c5 f8 77");
    CHECK_BAD("f3 c5 f8 77");
    CHECK_BAD("48 c5 f8 77");
    CHECK_BAD("f0 62 f1 7c 48 10 00");
    CHECK_LEN("65 c5 f9 6f 00");
    CHECK_LEN("67 c5 f9 6f 00");
}

UNIT_TEST(xop_and_3dnow_decode)
{
    CHECK_LEN("8f e8 78 c0 c1 01");
    CHECK_LEN("8f e9 78 80 c1");
    CHECK_LEN("8f ea 78 10 c1 01 02 03 04");
    CHECK_LEN("8f c0"); /* pop */
    CHECK_BAD("8f e0");
    CHECK_LEN("0f 0f c1 9e");
    CHECK_BAD("0f 0f c1 00");
}

UNIT_TEST(x87_decodes_and_its_holes_do_not)
{
    CHECK_LEN("d9 c0");
    CHECK_LEN("dd 44 24 08");
    CHECK_LEN("9b");
    CHECK_BAD("d9 d1");
    CHECK_BAD("d9 08");
}

UNIT_TEST(lock_needs_a_read_modify_write_of_memory)
{
    CHECK_LEN("f0 48 0f c1 03");
    CHECK_LEN("f0 ff 00");
    CHECK_LEN("f0 0f c7 0e");
    CHECK_BAD("f0 90");
    CHECK_BAD("f0 01 c0");
    CHECK_BAD("f0 03 03"); /* add (%rbx),%eax only reads memory */
    CHECK_BAD("f0 89 03");
    CHECK_EQ(hex_insn("f0 ff 00").class, INSN_CLASS_ATOMIC);
}

UNIT_TEST(memory_only_instructions_have_no_register_form)
{
    CHECK_BAD("8d c0");
    CHECK_BAD("ff d8");
    CHECK_BAD("ff e8");
    CHECK_BAD("0f b2 c0");
    CHECK_BAD("0f c3 c0");
}

UNIT_TEST(returns_say_how_much_they_pop)
{
    CHECK_KIND("c3", "RET");
    CHECK_KIND("f3 c3", "RET");
    CHECK_KIND("c2 f0 ff", "RET");
    CHECK_KIND("cb", "RET_FAR");
    CHECK_KIND("48 cf", "IRET");
    CHECK_KIND("f2 0f 01 ca", "IRET"); /* erets, eretu */
    CHECK_KIND("f3 0f 01 ca", "IRET");
    CHECK_EQ(hex_insn("c2 f0 ff").pop, 0xfff0);
    CHECK_EQ(hex_insn("c3").pop, 0);
}

/* With a 66 prefix the displacement has 32 bits, as on Intel's processors. */
UNIT_TEST(a_near_branch_with_66_decodes_but_does_not_move)
{
    static const char *const branches[] = {
        "66 e8 00 00 00 00", "66 e9 00 00 00 00",    "66 eb 00", "66 74 00",
        "66 ff e0",          "66 0f 84 00 00 00 00", "66 c3",    "66 e2 00",
        "66 48 ff d0",       "41 3e ff d0",          "48 f3 c3",
    };

    for (size_t i = 0; i < sizeof(branches) / sizeof(branches[0]); i++) {
        struct insn insn = hex_insn(branches[i]);

        CHECK_LEN(branches[i]);
        CHECK(insn_is_near_branch(&insn));
        CHECK(!insn_can_move(&insn));
    }
}

UNIT_TEST(nops_are_nops)
{
    CHECK_KIND("90", "NOP");
    CHECK_KIND("66 90", "NOP");
    CHECK_KIND("48 90", "NOP");
    CHECK_KIND("0f 1f 44 00 00", "NOP");
    CHECK_KIND("66 2e 0f 1f 84 00 00 00 00 00", "NOP");
    CHECK_KIND("f3 0f 1e fa", "ENDBR");
    CHECK_KIND("f3 0f 1e fb", "ENDBR");
    CHECK_KIND("0f 1e fa", "NOP");
    CHECK_KIND("f3 0f 1e c8", "SHADOW_STACK"); /* rdssp */
}

UNIT_TEST(what_only_looks_like_a_nop_is_none)
{
    CHECK_KIND("41 90", "OTHER"); /* xchg %eax,%r8d */
    CHECK_KIND("f3 90", "OTHER"); /* pause */
    CHECK_KIND("87 c0", "OTHER"); /* clears the upper half */
    CHECK_KIND("0f 18 08", "OTHER");
}

UNIT_TEST(pushes_and_pops_name_their_register)
{
    CHECK_KIND("55", "PUSH_REG");
    CHECK_KIND("41 5c", "POP_REG");
    CHECK_KIND("ff f3", "PUSH_REG");
    CHECK_KIND("8f c3", "POP_REG");
    CHECK_KIND("6a 01", "PUSH_IMM");
    CHECK_KIND("68 00 00 00 80", "PUSH_IMM");
    CHECK_KIND("66 55", "OTHER");
    CHECK_KIND("ff 33", "OTHER");
    CHECK_EQ(hex_insn("55").rm, INSN_BP);
    CHECK_EQ(hex_insn("ff f3").rm, INSN_BX);
    CHECK_EQ(hex_insn("68 00 00 00 80").imm, INT32_MIN);
}

UNIT_TEST(system_instructions_have_kinds)
{
    CHECK_KIND("9c", "PUSHF");
    CHECK_KIND("9d", "POPF");
    CHECK_KIND("fa", "CLI");
    CHECK_KIND("fb", "STI");
    CHECK_KIND("f4", "HLT");
    CHECK_KIND("0f 01 c9", "MWAIT");
    CHECK_KIND("8e d0", "MOV_SS");
    CHECK_KIND("8e d8", "MOV_DS");
    CHECK_KIND("8e 03", "MOV_DS");
    CHECK_KIND("8e e0", "LOAD_SEG");
    CHECK_KIND("8e e8", "LOAD_SEG");
    CHECK_KIND("0f a9", "LOAD_SEG");
    CHECK_KIND("0f b5 03", "LOAD_SEG");
    CHECK_KIND("0f 01 f8", "SWAPGS");
    CHECK_KIND("f3 48 0f ae d8", "WRITE_BASE");
    CHECK_KIND("0f 30", "WRITE_MSR");
    CHECK_KIND("0f 06", "MOV_TO_CR");
    CHECK_KIND("0f 01 f0", "MOV_TO_CR");
    CHECK_KIND("0f 01 10", "LGDT");
    CHECK_KIND("0f 01 18", "LIDT");
    CHECK_KIND("0f 00 d0", "LLDT");
    CHECK_KIND("0f 00 d8", "LTR");
    CHECK_KIND("0f 05", "SYSCALL");
    CHECK_KIND("48 0f 07", "SYSRET");
    CHECK_KIND("0f 34", "SYSENTER");
    CHECK_KIND("48 0f 35", "SYSEXIT");
    CHECK_KIND("e4 60", "IN");
    CHECK_KIND("6c", "IN");
    CHECK_KIND("ee", "OUT");
    CHECK_KIND("f3 48 a5", "STRING");
}

UNIT_TEST(transactions_and_guests_have_kinds)
{
    CHECK_KIND("c7 f8 10 00 00 00", "XBEGIN");
    CHECK_KIND("66 c7 f8 10 00", "XBEGIN");
    CHECK_KIND("c6 f8 01", "XABORT");
    CHECK_KIND("0f 01 d5", "XEND");
    CHECK_KIND("0f 01 c1", "VMX");
    CHECK_KIND("0f c7 30", "VMX");
    CHECK_KIND("0f 01 d8", "SVM");
    CHECK_KIND("0f 01 d7", "SGX");
    CHECK_KIND("0f aa", "MODE");
    CHECK_EQ(hex_insn("c7 f8 10 00 00 00").target, HEX_ADDR + 6 + 16);
    CHECK_BAD("c7 f9 10 00 00 00");
}

UNIT_TEST(what_may_go_on_where)
{
    struct insn jmp = hex_insn("eb 00"), jcc = hex_insn("74 00"),
                call = hex_insn("ff d0");
    struct insn ret = hex_insn("c3"), mov = hex_insn("89 c3"), ud2 = hex_insn("0f 0b");

    CHECK(!insn_falls_through(&jmp) && insn_is_branch(&jmp));
    CHECK(insn_falls_through(&jcc) && insn_is_branch(&jcc));
    CHECK(insn_falls_through(&call) && insn_is_call(&call));
    CHECK(!insn_falls_through(&ret) && !insn_is_call(&ret));
    CHECK(!insn_is_branch(&mov) && insn_falls_through(&mov));
    CHECK(!insn_falls_through(&ud2) && !insn_is_branch(&ud2));
}

UNIT_TEST(all_that_never_goes_on)
{
    static const char *const never[] = {
        "eb 00", "ff e0", "ff 20", "ff 28",    "c3",       "c2 08 00", "cb",    "48 cf",
        "0f 34", "0f 0b", "0f 37", "48 0f 07", "0f b9 c0", "0f 35",    "0f aa",
    };
    static const char *const may[] = { "0f 05",    "cc",       "cd 80",
                                       "f4",       "e2 00",    "ff 18",
                                       "c6 f8 00", "0f 01 c1", "0f 01 d8" };

    CHECK_ALL(never, insn_falls_through, false);
    CHECK_ALL(may, insn_falls_through, true);
}

UNIT_TEST(what_may_run_as_a_boosted_copy)
{
    static const char *const yes[] = {
        "89 c3", "55",       "f3 48 a5", "f0 ff 00", "8b 05 00 00 00 00",
        "d9 c0", "c5 f8 77", "9c",       "ec",       "0f a2",
        "fa",    "0f 30",    "f4",       "0f 0b",    "0f 22 d8",
        "8e d8", "0f 23 f8", "0f 01 10", "0f 01 18", "0f 00 d8"
    };
    static const char *const no[] = {
        "e8 00 00 00 00", "c3",       "74 00", "fb", "9d",    "8e e8", "8e d0", "cc",
        "0f 05",          "0f 01 f8", "e2 00", "f1", "ff e0", "48 cf"
    };

    CHECK_ALL(yes, insn_can_boost, true);
    CHECK_ALL(no, insn_can_boost, false);
}

UNIT_TEST(what_may_fault_on_memory)
{
    static const char *const yes[] = {
        "8b 03", "50", "c3", "a4", "ff 13", "d7", "67 a1 01 02 03 04", "66 0f f7 c1"
    };
    static const char *const no[] = { "89 c3",    "48 8d 04 18", "0f 1f 00",
                                      "0f 18 08", "eb 00",       "0f 01 38" };

    CHECK_ALL(yes, insn_may_fault, true);
    CHECK_ALL(no, insn_may_fault, false);
}

UNIT_TEST(kinds_and_classes_have_names)
{
    CHECK_STR(insn_kind_name(INSN_JRCXZ), "JRCXZ");
    CHECK_STR(insn_kind_name(INSN_KIND_COUNT), "?");
    CHECK_STR(insn_class_name(INSN_CLASS_MULDIV), "MULDIV");
    CHECK_STR(insn_class_name((enum insn_class)1000), "?");
}

static const char *named(const char *hex)
{
    static char buf[INSN_MNEMONIC_MAX];
    struct insn insn = hex_insn(hex);

    return insn_mnemonic(buf, &insn) ? buf : "none";
}

UNIT_TEST(instructions_have_mnemonics)
{
    CHECK_STR(named("55"), "push");
    CHECK_STR(named("74 00"), "je");
    CHECK_STR(named("0f 9f c0"), "setg");
    CHECK_STR(named("48 83 e8 01"), "sub");
    CHECK_STR(named("f7 d8"), "neg");
    CHECK_STR(named("48 0f bf c0"), "movsx");
    CHECK_STR(named("f0 0f b1 17"), "lock cmpxchg");
    CHECK_STR(named("f3 48 ab"), "rep stosq");
    CHECK_STR(named("f2 ae"), "repne scasb");
    CHECK_STR(named("f3 a6"), "repe cmpsb");
    CHECK_STR(named("f3 c3"), "ret"); /* the prefix means nothing here */
    CHECK_STR(named("0f 01 ca"), "clac");
    CHECK_STR(named("f2 0f 01 ca"), "erets");
    CHECK_STR(named("f3 0f 01 ca"), "eretu");
    CHECK_STR(named("f3 0f 01 ec"), "uiret");
    CHECK_STR(named("0f 58 c1"), "none");
}

UNIT_TEST(classes_are_coarse)
{
    CHECK_STR(insn_class_name(hex_insn("48 8d 04 18").class), "LEA");
    CHECK_STR(insn_class_name(hex_insn("87 03").class), "ATOMIC");
    CHECK_STR(insn_class_name(hex_insn("87 c3").class), "MOV");
    CHECK_STR(insn_class_name(hex_insn("d3 e0").class), "SHIFT");
    CHECK_STR(insn_class_name(hex_insn("0f a3 c3").class), "BIT");
    CHECK_STR(insn_class_name(hex_insn("0f 58 c1").class), "SSE");
    CHECK_STR(insn_class_name(hex_insn("8f e9 78 80 c1").class), "XOP");
}

UNIT_TESTS()
