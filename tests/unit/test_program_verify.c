/* test_program_verify.c - which programs are refused, with which words, and with which
 * numbers words begin. That C and code do the same is for hosted/program.
 */
#include "probes/program/program.h"
#include "tests/unit/unit.h"

#include <errno.h>

static struct kprobe_program_problem problem;

static int verify(const struct kprobe_op *ops, unsigned count, unsigned words)
{
    struct kprobe_program program = { .ops = ops,
                                      .count = (uint16_t)count,
                                      .words = (uint16_t)words };

    problem = (struct kprobe_program_problem){ .why = "" };
    return program_verify(&program, &problem);
}

#define VERIFY(words, ...)                                                               \
    verify((const struct kprobe_op[]){ __VA_ARGS__ },                                    \
           sizeof((const struct kprobe_op[]){ __VA_ARGS__ }) / sizeof(struct kprobe_op), \
           words)

UNIT_TEST(an_operation_that_does_not_exist_is_refused)
{
    CHECK_EQ(VERIFY(1, KPROBE_COUNT(0), { .code = KPROBE_OPCODES }), -EINVAL);
    CHECK_EQ(problem.at, 1);
    CHECK_STR(problem.why, "there is no such operation");
    CHECK_EQ(verify(NULL, 0, 0), -EINVAL);
    CHECK_EQ(VERIFY(1, KPROBE_COUNT(0)), 0);
}

UNIT_TEST(a_skip_leads_to_the_end_at_most)
{
    CHECK_EQ(VERIFY(1, KPROBE_IF(KPROBE_REG_DI, KPROBE_E, 0, 1), KPROBE_COUNT(0)), 0);
    CHECK_EQ(VERIFY(1, KPROBE_IF(KPROBE_REG_DI, KPROBE_E, 0, 2), KPROBE_COUNT(0)),
             -EINVAL);
    CHECK_EQ(problem.at, 0);
}

UNIT_TEST(words_and_keys_stay_in_memory)
{
    CHECK_EQ(VERIFY(1, KPROBE_COUNT(1)), -EINVAL);
    CHECK_EQ(VERIFY(65, KPROBE_KEY_LOG2(KPROBE_REG_DI), KPROBE_COUNT_KEYED(0)), 0);
    CHECK_EQ(VERIFY(64, KPROBE_KEY_LOG2(KPROBE_REG_DI), KPROBE_COUNT_KEYED(0)), -EINVAL);
    CHECK_EQ(VERIFY(66, KPROBE_KEY_LOG2(KPROBE_REG_DI), KPROBE_COUNT_KEYED(2)), -EINVAL);
    CHECK_EQ(VERIFY(9, KPROBE_KEY_SMALL(KPROBE_REG_DI, 8), KPROBE_COUNT_KEYED(0)), 0);
    CHECK_EQ(VERIFY(8, KPROBE_KEY_SMALL(KPROBE_REG_DI, 8), KPROBE_COUNT_KEYED(0)),
             -EINVAL);
    CHECK_EQ(
        VERIFY(12, KPROBE_KEY_LINEAR(KPROBE_REG_DI, -5, 7, 10), KPROBE_COUNT_KEYED(0)),
        0);
    CHECK_EQ(
        VERIFY(11, KPROBE_KEY_LINEAR(KPROBE_REG_DI, -5, 7, 10), KPROBE_COUNT_KEYED(0)),
        -EINVAL);
    CHECK_EQ(VERIFY(KPROBE_PROGRAM_WORDS + 1, KPROBE_COUNT(0)), -EINVAL);
    CHECK_EQ(VERIFY(0, KPROBE_KEY_LINEAR(KPROBE_REG_DI, 0, 1, KPROBE_PROGRAM_WORDS)), 0);
    CHECK_EQ(VERIFY(0, KPROBE_KEY_LINEAR(KPROBE_REG_DI, 0, 1, KPROBE_PROGRAM_WORDS + 1)),
             -EINVAL);
}

/* A skip may jump over the second key: the first one, which is greater, counts as well. */
UNIT_TEST(the_greatest_key_counts)
{
    CHECK_EQ(VERIFY(20, KPROBE_KEY_LOG2(KPROBE_REG_DI),
                    KPROBE_IF(KPROBE_REG_SI, KPROBE_E, 0, 1),
                    KPROBE_KEY_SMALL(KPROBE_REG_SI, 4), KPROBE_COUNT_KEYED(0)),
             -EINVAL);
}

UNIT_TEST(operands_must_be_possible)
{
    CHECK_EQ(VERIFY(0, KPROBE_GET(KPROBE_REG_SP)), 0);
    CHECK_EQ(VERIFY(0, KPROBE_ADD(KPROBE_REG_SP, 0)), -EINVAL);
    CHECK_EQ(VERIFY(0, KPROBE_GET(KPROBE_VALUE)), -EINVAL);
    CHECK_EQ(VERIFY(0, KPROBE_ADD(KPROBE_SOURCES, 0)), -EINVAL);
    CHECK_EQ(VERIFY(1, KPROBE_MIN(0, KPROBE_REG_AX, 0)), -EINVAL);
    CHECK_EQ(VERIFY(1, KPROBE_MIN(0, KPROBE_VALUE, 0)), 0);
    CHECK_EQ(VERIFY(0, KPROBE_LOAD(3, 0)), -EINVAL);
    CHECK_EQ(VERIFY(0, KPROBE_LOAD(4, 0)), 0);
    CHECK_EQ(VERIFY(0, KPROBE_SHL(64)), -EINVAL);
    CHECK_EQ(VERIFY(0, KPROBE_SHL(63)), 0);
    CHECK_EQ(VERIFY(0, KPROBE_IF(KPROBE_REG_DI, 10, 0, 0)), -EINVAL);
    CHECK_EQ(VERIFY(1, KPROBE_EVERY(0, 0, 0)), -EINVAL);
    CHECK_EQ(VERIFY(1, KPROBE_EVERY(0, UINT64_C(1) << 31, 0)), -EINVAL);
    CHECK_EQ(VERIFY(0, KPROBE_KEY_LINEAR(KPROBE_REG_DI, 0, UINT32_MAX, 16)), -EINVAL);
    CHECK_EQ(VERIFY(0, KPROBE_KEY_LINEAR(KPROBE_REG_DI, 0, 0, 16)), -EINVAL);
}

#define RESERVE(skip) KPROBE_RESERVE(1, skip) /* functions that are never called */
#define STORE KPROBE_STORE(8, 0, KPROBE_REG_DI, 0)
#define COMMIT KPROBE_COMMIT(1)
#define IF(skip) KPROBE_IF(KPROBE_REG_DI, KPROBE_E, 0, skip)

UNIT_TEST(each_condition_is_the_processors_or_of_bits)
{
    for (unsigned i = 0; i < 256; i++) {
        bool known =
            i >= KPROBE_B && i <= KPROBE_NONE && (i <= KPROBE_A || i >= KPROBE_L);

        CHECK_EQ(VERIFY(0, KPROBE_IF(KPROBE_REG_DI, (uint8_t)i, 0, 0)),
                 known ? 0 : -EINVAL);
    }
}

UNIT_TEST(sizes_are_those_of_the_processor)
{
    for (unsigned size = 0; size < 16; size++) {
        bool known = size == 1 || size == 2 || size == 4 || size == 8;

        uint8_t sub = (uint8_t)(size << 4);

        CHECK_EQ(VERIFY(0, { .code = KPROBE_OP_LOAD, .sub = sub }), known ? 0 : -EINVAL);
        CHECK_EQ(VERIFY(0, { .code = KPROBE_OP_EXTEND, .sub = sub }),
                 known && size < 8 ? 0 : -EINVAL);
        CHECK_EQ(VERIFY(0, RESERVE(2), { .code = KPROBE_OP_STORE, .sub = sub }, COMMIT),
                 known ? 0 : -EINVAL);
    }
}

UNIT_TEST(a_record_is_entered_and_left_as_a_whole)
{
    CHECK_EQ(VERIFY(0, RESERVE(2), STORE, COMMIT), 0);
    CHECK_EQ(VERIFY(0, IF(3), RESERVE(2), STORE, COMMIT, KPROBE_END), 0);
    CHECK_EQ(VERIFY(0, STORE), -EINVAL);
    CHECK_EQ(VERIFY(0, COMMIT), -EINVAL);
    CHECK_EQ(VERIFY(0, RESERVE(1), STORE), -EINVAL);         /* never committed */
    CHECK_EQ(VERIFY(0, RESERVE(1), STORE, COMMIT), -EINVAL); /* without a record */
    CHECK_EQ(VERIFY(0, RESERVE(2), RESERVE(1), COMMIT), -EINVAL);
    CHECK_EQ(VERIFY(0, RESERVE(2), KPROBE_CALL(1), COMMIT), -EINVAL);
    CHECK_EQ(VERIFY(0, IF(1), RESERVE(2), STORE, COMMIT), -EINVAL); /* into it */
    CHECK_EQ(VERIFY(0, IF(2), RESERVE(2), STORE, COMMIT), -EINVAL);
    CHECK_EQ(VERIFY(0, RESERVE(3), IF(1), STORE, COMMIT), 0); /* inside */
    CHECK_EQ(VERIFY(0, RESERVE(3), IF(2), STORE, COMMIT, KPROBE_END), -EINVAL); /* out */
    CHECK_EQ(VERIFY(0, RESERVE(2), KPROBE_END, COMMIT), -EINVAL);
    CHECK_EQ(VERIFY(0, RESERVE(3), KPROBE_CONST(0), KPROBE_LOAD(8, 0), COMMIT), -EINVAL);
    CHECK_EQ(VERIFY(0, RESERVE(3), KPROBE_CONST(0), KPROBE_LOAD_OR_ZERO(8, 0, 0), COMMIT),
             0);
    CHECK_EQ(VERIFY(0, RESERVE(2), KPROBE_STORE(8, KPROBE_RECORD_MAX - 7, KPROBE_IMM, 0),
                    COMMIT),
             -EINVAL);
    CHECK_EQ(VERIFY(0, IF(4), RESERVE(2), STORE, COMMIT, RESERVE(1), COMMIT), -EINVAL);
    CHECK_EQ(VERIFY(0, RESERVE(2), STORE, COMMIT, RESERVE(1), COMMIT), 0);
}

UNIT_TEST(words_begin_as_their_operations_say)
{
    static const struct kprobe_op ops[] = {
        KPROBE_EVERY(0, 7, 0),
        KPROBE_KEY_SMALL(KPROBE_REG_DI, 2),
        KPROBE_MIN(1, KPROBE_REG_SI, KPROBE_KEYED),
        KPROBE_MAX(4, KPROBE_REG_SI, KPROBE_SIGNED),
        KPROBE_LOAD(8, 0),
    };
    struct kprobe_program program = { .ops = ops, .count = 5, .words = 6 };

    CHECK_EQ(program_verify(&program, NULL), 0);
    CHECK_EQ(program_words(&program), 7);
    CHECK_EQ(program_word_begins(&program, 0), 6);
    for (unsigned i = 1; i <= 3; i++)
        CHECK(program_word_begins(&program, i) == UINT64_MAX);
    CHECK(program_word_begins(&program, 4) == (uint64_t)INT64_MIN);
    CHECK_EQ(program_word_begins(&program, 5), 0);
    CHECK_EQ(program_word_begins(&program, 6), 0);
}

/* The key of a table may be greater in the table in front. The last word, which counts loads
 * that fail, is in none.
 */
UNIT_TEST(words_begin_as_their_own_table_says)
{
    static const struct kprobe_op ops[] = {
        KPROBE_KEY_SMALL(KPROBE_REG_DI, 5),          KPROBE_COUNT_KEYED(0),
        KPROBE_KEY_SMALL(KPROBE_REG_DI, 1),          KPROBE_COUNT_KEYED(8),
        KPROBE_MIN(10, KPROBE_REG_SI, KPROBE_KEYED), KPROBE_COUNT_KEYED(12),
        KPROBE_MIN(14, KPROBE_REG_SI, KPROBE_KEYED), KPROBE_LOAD(8, 0),
    };
    struct kprobe_program program = { .ops = ops, .count = 8, .words = 20 };

    for (unsigned i = 0; i < 20; i++)
        CHECK(program_word_begins(&program, i) ==
              (i == 10 || i == 11 || i >= 14 ? UINT64_MAX : 0));
    CHECK_EQ(program_words(&program), 21);
    CHECK_EQ(program_word_begins(&program, 20), 0);
}

UNIT_TEST(a_program_can_be_read)
{
    static const struct kprobe_op ops[] = {
        KPROBE_IF(KPROBE_REG_DI, KPROBE_G, 100, 2),
        KPROBE_SUM(3, KPROBE_REG_R8, 0),
        KPROBE_COUNT(0),
        KPROBE_COUNT(1),
    };
    struct kprobe_program program = { .ops = ops, .count = 4, .words = 4 };
    char text[64];

    program_op_text(&program, 0, text, sizeof(text));
    CHECK_STR(text, "go on if rdi > signed 100; else skip 2");
    program_op_text(&program, 1, text, sizeof(text));
    CHECK_STR(text, "word 3 adds r8");
    CHECK_EQ(program_op_text(&program, 3, text, 5), strlen("word 1 counts"));
    CHECK_STR(text, "word");
}

UNIT_TESTS()
