/* test_program_line.c - conditions of `probe add`, as users write them. */
#include "probes/console/program_line.h"
#include "tests/unit/unit.h"

#include <string.h>

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

static void each_comparison_is_read(void)
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

static void what_is_wrong_is_said(void)
{
    CHECK_STR(condition("edi > 1"), "it begins with a register: rax ... r15");
    CHECK_STR(condition(""), "it begins with a register: rax ... r15");
    CHECK_STR(condition("rsp > 1"), "it begins with a register: rax ... r15");
    CHECK_STR(condition("rdi ~ 1"),
              "behind the register comes one of < <= > >= == != has lacks");
    CHECK_STR(condition("rdi > x"), "behind the comparison comes a number");
    CHECK_STR(condition("rdi > 1 or"), "behind the number comes nothing, or `and`");
    CHECK_STR(condition("rdi > 1 and"), "it begins with a register: rax ... r15");
    CHECK_STR(
        condition("rax==1 and rax==1 and rax==1 and rax==1 and rax==1 and rax==1 and "
                  "rax==1"),
        "there are too many conditions");
    CHECK_STR(program_line_every(&line, "0"), "it is a number from 1 to 2147483647");
    CHECK_STR(program_line_every(&line, "2x"), "it is a number from 1 to 2147483647");
    CHECK(!program_line_every(&line, "2147483647"));
}

static void what_does_not_hold_skips_the_rest(void)
{
    struct kprobe_op ops[PROGRAM_LINE_OPS];
    struct kprobe_program program;

    CHECK(!condition("rdi > 1 and rsi > 1"));
    CHECK(!program_line_every(&line, "3"));
    program_line_make(&line, &program, ops);
    CHECK_EQ(program_verify(&program, NULL), 0);
    CHECK_EQ(program.count, 4);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(ops[i].skip, 3 - i);
    CHECK_EQ(ops[3].code, KPROBE_OP_COUNT);
}

UNIT_TESTS(each_comparison_is_read, what_is_wrong_is_said,
           what_does_not_hold_skips_the_rest)
