/* test_program_line.c - conditions of `probe add`, as users write them. */
#include "kernel/debug/params.h"
#include "probes/console/program_line.h"
#include "tests/unit/unit.h"

static struct program_line line;

static const char *condition(const char *text)
{
    memset(&line, 0, sizeof(line));
    return program_line_if(&line, text);
}

static void is(unsigned i, uint8_t source, uint8_t how, uint64_t imm)
{
    CHECK_EQ(line.ops[i].source, source);
    CHECK_EQ(line.ops[i].sub, how);
    CHECK(line.ops[i].imm == imm);
}

#define NO_OPERAND                                                                       \
    "it begins with a register (rax ... r15), cpu, thread, or a word in memory "         \
    "([rdi+8]); parameters are known at the entry of a function with debug data"

/* The function at 0x1000 is f(int number, void *_place, unsigned char small, int cpu). */
bool params_get(uintptr_t addr, unsigned i, struct param *out)
{
    static const struct param params[] = { { "number", 6, "s32", 3 },
                                           { "_place", 6, "x64", 3 },
                                           { "small", 5, "u8,", 2 },
                                           { "cpu", 3, "s32", 3 } };

    if (addr != 0x1000 || i >= ARRAY_LEN(params))
        return false;
    *out = params[i];
    return true;
}

UNIT_TEST(each_operand_is_read)
{
    CHECK(!condition("cpu == 1 and thread != 7"));
    CHECK_EQ(line.ops[0].source, KPROBE_CPU);
    is(1, KPROBE_VALUE, KPROBE_E, 1);
    CHECK_EQ(line.ops[2].source, KPROBE_THREAD);
    CHECK(!condition("[rdi+0x10] > 5"));
    CHECK_EQ(line.ops[1].code, KPROBE_OP_LOAD);
    CHECK_EQ(line.ops[1].at, 0x10);
    is(2, KPROBE_VALUE, KPROBE_A, 5);
    CHECK_STR(condition("[rdi+0x10 > 5"), NO_OPERAND);
    CHECK_STR(condition("number > 5"), NO_OPERAND);
    line.function = 0x1000;
    CHECK(!program_line_if(&line, "number > 5 and _place != 0 and small == 3"));
    CHECK_EQ(line.ops[1].sub, 4 << 4 | KPROBE_SIGNED);
    is(2, KPROBE_VALUE, KPROBE_G, 5);
    is(3, KPROBE_REG_SI, KPROBE_NE, 0);
    CHECK_EQ(line.ops[4].source, KPROBE_REG_DX);
    CHECK_EQ(line.ops[5].sub, 1 << 4);
    CHECK(program_line_if(&line, "numbe > 5") != NULL);
}

UNIT_TEST(a_parameter_is_found_before_a_fact_of_the_hit)
{
    memset(&line, 0, sizeof(line));
    line.function = 0x1000;
    CHECK(!program_line_if(&line, "cpu == 1 and thread == 2"));
    CHECK_EQ(line.ops[0].source, KPROBE_REG_CX);
    CHECK_EQ(line.ops[3].source, KPROBE_THREAD);
}

UNIT_TEST(a_number_has_the_size_of_its_parameter)
{
    memset(&line, 0, sizeof(line));
    line.function = 0x1000;
    CHECK(!program_line_if(&line, "small == -1 and small != 0x1ff and small < -1"));
    is(2, KPROBE_VALUE, KPROBE_E, 255);
    is(5, KPROBE_VALUE, KPROBE_NE, 255);
    is(8, KPROBE_VALUE, KPROBE_L, UINT64_MAX); /* which is never true */
    line.count = 0;
    CHECK(!program_line_if(&line, "number == 0xffffffff and _place == -1"));
    is(2, KPROBE_VALUE, KPROBE_E, UINT64_MAX);
    is(3, KPROBE_REG_SI, KPROBE_E, UINT64_MAX);
}

UNIT_TEST(each_comparison_is_read)
{
    CHECK(!condition("rdi < 1"));
    is(0, KPROBE_REG_DI, KPROBE_B, 1);
    CHECK(!condition("rsi<=0x10"));
    is(0, KPROBE_REG_SI, KPROBE_BE, 16);
    CHECK(!condition(" r15 > -1 "));
    is(0, KPROBE_REG_R15, KPROBE_G, UINT64_MAX);
    CHECK(!condition("rax>=-5"));
    is(0, KPROBE_REG_AX, KPROBE_GE, (uint64_t)-5);
    CHECK(!condition("rcx == 7"));
    is(0, KPROBE_REG_CX, KPROBE_E, 7);
    CHECK(!condition("rdx has 3"));
    is(0, KPROBE_REG_DX, KPROBE_ANY, 3);
    CHECK(!condition("rbx lacks 3"));
    is(0, KPROBE_REG_BX, KPROBE_NONE, 3);
    CHECK(!condition("rdi >= 1 and rdi < 9 and r8 != 0"));
    CHECK_EQ(line.count, 3);
    is(2, KPROBE_REG_R8, KPROBE_NE, 0);
}

UNIT_TEST(what_is_wrong_is_said)
{
    CHECK_STR(condition("edi > 1"), NO_OPERAND);
    CHECK_STR(condition(""), NO_OPERAND);
    CHECK_STR(condition("rsp > 1"), NO_OPERAND);
    CHECK_STR(condition("rdi ~ 1"),
              "behind the operand comes one of < <= > >= == != has lacks");
    CHECK_STR(condition("rdi > x"), "behind the comparison comes a number of 64 bits");
    CHECK_STR(condition("rdi > 1 or"), "behind the number comes nothing, or `and`");
    CHECK_STR(condition("rdi > 1 and"), NO_OPERAND);
    CHECK_STR(
        condition("r8==1 and r8==1 and r8==1 and r8==1 and r8==1 and r8==1 and r8==1 and "
                  "r8==1 and r8==1 and r8==1 and r8==1 and r8==1 and r8==1 and r8==1 and "
                  "r8==1 and r8==1 and r8==1 and r8==1 and r8==1 and r8==1 and r8==1"),
        "there are too many conditions");
    CHECK_STR(program_line_every(&line, "0"), "it is a number from 1 to 2147483647");
    CHECK_STR(program_line_every(&line, "2x"), "it is a number from 1 to 2147483647");
    CHECK(!program_line_every(&line, "2147483647"));
}

UNIT_TEST(a_number_that_does_not_fit_is_refused)
{
    static const char *const too_large[] = {
        "rdi == 18446744073709551616",    "rdi > 99999999999999999999",
        "rdi < -9223372036854775809",     "rdi < -99999999999999999999",
        "[rdi+0x10000000000000001] == 1", "number < 9223372036854775808",
        "number >= 0xffffffffffffffff",
    };

    memset(&line, 0, sizeof(line));
    line.function = 0x1000;
    for (size_t i = 0; i < ARRAY_LEN(too_large); i++)
        CHECK(program_line_if(&line, too_large[i]) != NULL);
    line.count = 0;
    CHECK(!program_line_if(&line, "number == 0xffffffffffffffff"));
    CHECK(!program_line_if(&line, "_place == 18446744073709551615"));
    CHECK(!program_line_if(&line, "rdi < -9223372036854775808"));
    CHECK(program_line_every(&line, "-18446744073709551615") != NULL);
    CHECK(program_line_every(&line, "18446744073709551617") != NULL);
}

UNIT_TEST(what_does_not_hold_skips_the_rest)
{
    struct kprobe_op ops[PROGRAM_LINE_OPS];
    struct kprobe_program program;

    CHECK(!condition("rdi > 1 and rsi > 1"));
    CHECK(!program_line_every(&line, "3"));
    program_line_make(&line, false, &program, ops);
    CHECK_EQ(program_verify(&program, NULL), 0);
    CHECK_EQ(program.count, 4);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(ops[i].skip, 3 - i);
    CHECK_EQ(ops[3].code, KPROBE_OP_COUNT);
}

UNIT_TEST(hits_of_hidden_threads_skip_all)
{
    const struct program_line empty = { .count = 0 };
    struct kprobe_op ops[PROGRAM_LINE_OPS];
    struct kprobe_program program;

    program_line_make(&empty, true, &program, ops);
    CHECK_EQ(program_verify(&program, NULL), 0);
    CHECK_EQ(program.count, 3);
    CHECK_EQ(program.words, 1);
    CHECK_EQ(ops[1].skip, 1);
    CHECK(
        !condition("rdi > 1 and rsi > 1 and rdx > 1 and rcx > 1 and r8 > 1 and r9 > 1"));
    CHECK(!program_line_every(&line, "3"));
    program_line_make(&line, true, &program, ops);
    CHECK_EQ(program_verify(&program, NULL), 0);
    CHECK_EQ(program.count, 11);
    CHECK_EQ(ops[1].skip, 9);
    CHECK_EQ(ops[2].at, LINE_OTHERS);
    CHECK_EQ(ops[10].at, LINE_TAKEN);
}

UNIT_TESTS()
