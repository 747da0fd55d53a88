/* test_agent_verify.c - tests of probes/agent/agent_verify: which programs are accepted;
 * which are refused, at which instruction and for which reason.
 */
#include "probes/agent/agent.h"

#include "tests/unit/unit.h"

#define ALL (AGENT_COLLECT | AGENT_PRINT | AGENT_VARS)

static struct agent_problem problem;

/* of_hex - convert @hex to bytes in a block of exactly their size. @len: receives the
 * size
 */
static uint8_t *of_hex(const char *hex, size_t *len)
{
    uint8_t *code = malloc(strlen(hex) + 1);
    unsigned byte;
    int used;

    for (*len = 0; sscanf(hex, " %2x%n", &byte, &used) == 1; hex += used)
        code[(*len)++] = (uint8_t)byte;
    return realloc(code, *len + !*len);
}

static int verified(const char *hex, unsigned use)
{
    size_t len;
    uint8_t *code = of_hex(hex, &len);
    int err;

    problem = (struct agent_problem){ 0 };
    err = agent_verify(code, len, use, &problem);
    free(code);
    return err;
}

static void accepted(const char *hex)
{
    CHECK_EQ(verified(hex, ALL), 0);
}

static void refused(const char *hex, unsigned use, int err, const char *text)
{
    char told[160];

    CHECK_EQ(verified(hex, use), err);
    agent_problem_text(&problem, told, sizeof(told));
    CHECK_STR(told, text);
}

UNIT_TEST(an_empty_program_has_no_end)
{
    refused("", 0, -EINVAL, "at 0: it has no end");
    refused("22 01", 0, -EINVAL, "at 2: it has no end");
    refused("22 01 20 00 05", 0, -EINVAL, "if_goto at 2: it jumps out of the program");
}

UNIT_TEST(an_instruction_is_whole)
{
    refused("25 01 02 03 04 05 06 07", 0, -EINVAL,
            "const64 at 0: the program ends within it");
    refused("22", 0, -EINVAL, "const8 at 0: the program ends within it");
    refused("34", ALL, -EINVAL, "printf at 0: the program ends within it");
    refused("22 00 22 00 34 00 00 05 41 00 27", ALL, -EINVAL,
            "printf at 4: the program ends within it");
}

UNIT_TEST(an_opcode_exists)
{
    refused("00 27", 0, -EINVAL, "at 0: there is no such opcode");
    refused("31 27", 0, -EINVAL, "? at 0: there is no such opcode");
    refused("35 27", 0, -EINVAL, "? at 0: there is no such opcode");
    refused("ff 27", 0, -EINVAL, "? at 0: there is no such opcode");
}

UNIT_TEST(floating_point_is_refused)
{
    static const char *const ops[] = { "01", "1b", "1c", "1d", "1e", "1f" };
    char hex[32];

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        snprintf(hex, sizeof(hex), "22 01 %s 27", ops[i]);
        CHECK_EQ(verified(hex, ALL), -EOPNOTSUPP);
        CHECK_STR(problem.why, "the kernel has no floating point");
    }
}

UNIT_TEST(uses_are_asked_for)
{
    CHECK_EQ(verified("26 00 01 0d 08 29 27", AGENT_COLLECT), 0);
    refused("26 00 01 0d 08 29 27", AGENT_PRINT | AGENT_VARS | AGENT_VALUE, -EOPNOTSUPP,
            "trace_quick at 3: it is not allowed here");
    CHECK_EQ(verified("2c 00 01 27", AGENT_VARS), 0);
    CHECK_EQ(verified("2c 00 01 27", AGENT_VALUE), -EOPNOTSUPP);
    CHECK_EQ(verified("22 00 22 00 34 00 00 01 00 27", AGENT_PRINT), 0);
    CHECK_EQ(verified("22 00 22 00 34 00 00 01 00 27", AGENT_COLLECT), -EOPNOTSUPP);
}

UNIT_TEST(a_value_is_left_where_it_is_wanted)
{
    CHECK_EQ(verified("27", 0), 0);
    refused("27", AGENT_VALUE, -EINVAL, "end at 0: no value is left");
    CHECK_EQ(verified("22 01 27", AGENT_VALUE), 0);
    /* One of the two ways to the end leaves no value. */
    refused("22 01 20 00 08 22 02 27 27", AGENT_VALUE, -EINVAL,
            "end at 8: no value is left");
}

UNIT_TEST(the_stack_is_not_popped_empty)
{
    refused("02 27", 0, -EINVAL, "add at 0: the stack is empty");
    refused("22 01 02 27", 0, -EINVAL, "add at 2: the stack is empty");
    refused("29 27", 0, -EINVAL, "pop at 0: the stack is empty");
    refused("28 27", 0, -EINVAL, "dup at 0: the stack is empty");
    refused("22 01 22 02 33 27", 0, -EINVAL, "rot at 4: the stack is empty");
    refused("20 00 03 27", 0, -EINVAL, "if_goto at 0: the stack is empty");
    refused("2d 00 01 27", ALL, -EINVAL, "setv at 0: the stack is empty");
    refused("22 01 22 01 22 01 34 02 00 01 00 27", ALL, -EINVAL,
            "printf at 6: the stack is empty");
}

UNIT_TEST(the_stack_is_32_deep)
{
    char hex[3 * 70 + 8] = "";

    for (int i = 0; i < 32; i++)
        strcat(hex, "22 01 ");
    CHECK_EQ(verified(strcat(hex, "27"), 0), 0);
    hex[strlen(hex) - 2] = '\0';
    refused(strcat(hex, "28 27"), 0, -EINVAL, "dup at 64: the stack is full");
}

UNIT_TEST(pick_takes_what_is_there)
{
    accepted("22 01 22 02 32 01 27");
    refused("22 01 22 02 32 02 27", 0, -EINVAL, "pick at 4: the stack is not that deep");
    refused("22 01 32 ff 27", 0, -EINVAL, "pick at 2: the stack is not that deep");
}

UNIT_TEST(jumps_lead_forward)
{
    accepted("21 00 03 27");
    refused("21 00 00 27", 0, -EINVAL, "goto at 0: it does not jump forward");
    refused("22 01 20 00 02 27", 0, -EINVAL, "if_goto at 2: it does not jump forward");
    refused("22 01 20 00 00 27", 0, -EINVAL, "if_goto at 2: it does not jump forward");
    refused("21 00 02 27", 0, -EINVAL,
            "goto at 0: it does not jump forward"); /* into itself */
    refused("21 00 04 27", 0, -EINVAL, "goto at 0: it jumps out of the program");
    refused("21 ff ff 27", 0, -EINVAL, "goto at 0: it jumps out of the program");
}

UNIT_TEST(jumps_lead_to_instructions)
{
    refused("22 01 20 00 06 22 27 27", 0, -EINVAL,
            "const8 at 5: a jump leads into the middle of it");
    refused("22 01 20 00 0d 25 00 00 00 00 00 00 00 27 27", 0, -EINVAL,
            "const64 at 5: a jump leads into the middle of it");
}

UNIT_TEST(all_ways_agree_on_the_stack)
{
    accepted("22 01 20 00 0a 22 05 21 00 0c 22 06 27");
    refused("22 01 20 00 07 22 05 27", 0, -EINVAL,
            "end at 7: the stack is deeper by one way than by another");
    /* Two jumps to one place. */
    refused("22 01 20 00 0f 22 05 22 01 20 00 0f 29 22 09 27", 0, -EINVAL,
            "if_goto at 9: the stack is deeper by one way than by another");
    /* One way pops the value before it comes to the common place; the jump does not. */
    refused("22 01 28 20 00 07 29 27", 0, -EINVAL,
            "end at 7: the stack is deeper by one way than by another");
}

UNIT_TEST(each_instruction_can_be_reached)
{
    refused("27 27", 0, -EINVAL, "end at 1: nothing leads to it");
    refused("21 00 05 22 01 27", 0, -EINVAL, "const8 at 3: nothing leads to it");
}

UNIT_TEST(operands_have_bounds)
{
    for (unsigned bits = 0; bits < 256; bits++) {
        char hex[32];

        snprintf(hex, sizeof(hex), "22 01 16 %02x 27", bits);
        CHECK_EQ(verified(hex, 0), bits >= 1 && bits <= 64 ? 0 : -EINVAL);
        snprintf(hex, sizeof(hex), "22 01 2a %02x 27", bits);
        CHECK_EQ(verified(hex, 0), bits >= 1 && bits <= 64 ? 0 : -EINVAL);
        snprintf(hex, sizeof(hex), "26 00 %02x 27", bits);
        CHECK_EQ(verified(hex, 0), bits < AGENT_REGS ? 0 : -EINVAL);
    }
    refused("26 01 00 27", 0, -EINVAL, "reg at 0: there is no such register");
    refused("22 01 16 41 27", 0, -EINVAL, "ext at 2: a width is 1 to 64 bits");
}

UNIT_TEST(a_program_has_at_most_1024_bytes)
{
    uint8_t code[AGENT_CODE_MAX + 1];

    memset(code, 0x0e, sizeof(code)); /* log_not */
    code[0] = 0x22;
    code[AGENT_CODE_MAX - 1] = code[AGENT_CODE_MAX] = 0x27;
    CHECK_EQ(agent_verify(code, AGENT_CODE_MAX, AGENT_VALUE, NULL), 0);
    CHECK_EQ(agent_verify(code, AGENT_CODE_MAX + 1, AGENT_VALUE, &problem), -E2BIG);
}

UNIT_TEST(formats_are_looked_at)
{
    refused("22 00 22 00 34 00 00 00 27", ALL, -EINVAL,
            "printf at 4: a format is 1 to 256 bytes long");
    refused("22 00 22 00 34 00 00 01 41 27", ALL, -EINVAL,
            "printf at 4: the format does not end where it should");
    refused("22 00 22 00 34 00 00 03 25 6e 00 27", ALL, -EINVAL,
            "printf at 4: a conversion of the format is not understood");
    refused("22 00 22 00 34 00 00 03 25 64 00 27", ALL, -EINVAL,
            "printf at 4: the format has not as many conversions as words");
}

UNIT_TESTS()
