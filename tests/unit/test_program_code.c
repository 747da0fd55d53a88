/* test_program_code.c - the code of programs has no instruction more than it needs. What the
 * code does is for hosted/program and tools/program_model.
 */
#include "probes/program/program_code.h"
#include "tests/unit/unit.h"

#define CODE_MAX 512

/* instructions - how many of them are in the code of a program, with those that save. */
static unsigned instructions(const struct kprobe_op *ops, size_t count, bool flags_live)
{
    struct kprobe_program program = { .ops = ops, .count = (uint16_t)count, .words = 8 };
    struct programs programs = { .of[0] = { .program = count ? &program : NULL },
                                 .count = 1,
                                 .addr = 0x1000,
                                 .flags_live = flags_live,
                                 .below = 16 };
    uint8_t code[CODE_MAX];
    struct insn_builder b = { .out = code, .max = sizeof(code), .at = 0x2000 };
    unsigned found = 0;

    programs_build(&b, &programs);
    CHECK(!b.full && !b.far);
    for (size_t at = 0; at < b.len; found++) {
        struct insn insn;

        CHECK_EQ(insn_decode(&insn, code + at, b.len - at, 0x2000 + at), 0);
        at += insn.len;
    }
    return found;
}

#define INSTRUCTIONS(flags_live, ...)                                                    \
    instructions((const struct kprobe_op[]){ __VA_ARGS__ },                              \
                 ARRAY_LEN(((const struct kprobe_op[]){ __VA_ARGS__ })), flags_live)
#define SAVED_FLAGS 6 /* push, lahf, seto; add, sahf, pop */

/* The hit itself is counted by one instruction. */
UNIT_TEST(nothing_is_saved_that_does_not_change)
{
    CHECK_EQ(instructions(NULL, 0, false), 1);
    CHECK_EQ(instructions(NULL, 0, true), 1 + SAVED_FLAGS);
    CHECK_EQ(INSTRUCTIONS(false, KPROBE_COUNT(0)), 2);
    CHECK_EQ(INSTRUCTIONS(false, KPROBE_SUM(0, KPROBE_REG_DI, 0)), 2);
    CHECK_EQ(
        INSTRUCTIONS(false, KPROBE_IF(KPROBE_REG_DI, KPROBE_A, 100, 1), KPROBE_COUNT(0)),
        4);
    CHECK_EQ(
        INSTRUCTIONS(true, KPROBE_IF(KPROBE_REG_DI, KPROBE_A, 100, 1), KPROBE_COUNT(0)),
        4 + SAVED_FLAGS);
    CHECK_EQ(INSTRUCTIONS(false, KPROBE_EVERY(0, 10, 1), KPROBE_COUNT(1)), 5);
    CHECK_EQ(
        INSTRUCTIONS(false, KPROBE_GET(KPROBE_REG_DI), KPROBE_SUM(0, KPROBE_VALUE, 0)),
        1 + 2 + 2); /* rcx is saved */
}

/* A constant of four bytes is a part of the instruction; one of eight may be too long. */
UNIT_TEST(a_constant_is_stored_by_one_instruction)
{
#define STORING(size, value)                                                             \
    INSTRUCTIONS(false, KPROBE_RESERVE(0x3000, 2),                                       \
                 KPROBE_STORE(size, 0, KPROBE_IMM, value), KPROBE_COMMIT(0x3000))
    CHECK_EQ(STORING(4, UINT32_MAX), STORING(4, 1));
    CHECK_EQ(STORING(8, 1), STORING(4, 1));
    CHECK_EQ(STORING(8, UINT32_MAX), STORING(4, 1) + 1);
}

/* Behind the load stands its mark, and beside the way of the others is a jump over the code
 * for loads that fail.
 */
UNIT_TEST(only_loads_that_are_there_have_code_for_faults)
{
    unsigned get = INSTRUCTIONS(false, KPROBE_GET(KPROBE_REG_DI));

    CHECK_EQ(INSTRUCTIONS(false, KPROBE_GET(KPROBE_REG_DI), KPROBE_LOAD(8, 0)),
             get + 3 + 1); /* it counts */
    CHECK_EQ(INSTRUCTIONS(false, KPROBE_GET(KPROBE_REG_DI), KPROBE_LOAD_OR_ZERO(8, 0, 0)),
             get + 3 + 3); /* it counts, takes 0, goes on */
    CHECK_EQ(INSTRUCTIONS(false, KPROBE_GET(KPROBE_REG_DI), KPROBE_LOAD(8, 0),
                          KPROBE_LOAD(8, 0)),
             get + 5 + 1);
}

/* The mark leads there. A program that only calls needs none. */
UNIT_TEST(a_call_that_is_given_up_ends_the_program)
{
    unsigned call = INSTRUCTIONS(false, KPROBE_CALL(0x3000));

    CHECK_EQ(INSTRUCTIONS(false, KPROBE_CALL(0x3000), KPROBE_COUNT(0)), call + 2);
}

UNIT_TESTS()
