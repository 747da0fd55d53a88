/* test_agent.c - tests of probes/agent/agent: programs are run over registers and
 * memory.
 */
#include "probes/agent/agent.h"

#include "tests/unit/unit.h"

#define ALL (AGENT_COLLECT | AGENT_PRINT | AGENT_VARS)
#define MEMORY 0x10000 /* the address of memory[0] */

static uint8_t memory[4096];
static struct pt_regs regs;
static struct agent_problem problem;
static char output[2048]; /* describes what the program has collected and printed */
static int refuse_output;

static int read_memory(void *arg, void *dst, uintptr_t addr, size_t len)
{
    CHECK_EQ((uintptr_t)arg, 77);
    if (addr < MEMORY || addr - MEMORY > sizeof(memory) ||
        len > sizeof(memory) - (addr - MEMORY))
        return -EFAULT;
    memcpy(dst, memory + (addr - MEMORY), len);
    return 0;
}

static int64_t variables[3];

static int variable(void *arg UNUSED, unsigned number, bool set, int64_t *value)
{
    if (number >= 3)
        return -ENOENT;
    *(set ? &variables[number] : value) = *(set ? value : &variables[number]);
    return 0;
}

static void add_output(const char *text)
{
    strcat(output, text);
}

static int collect(void *arg UNUSED, uintptr_t addr, size_t len)
{
    char line[64];

    snprintf(line, sizeof(line), "M%lx,%zx ", addr, len);
    add_output(line);
    if (addr < MEMORY)
        return -EFAULT;
    return refuse_output;
}

static int collect_var(void *arg UNUSED, unsigned number)
{
    char line[64];

    snprintf(line, sizeof(line), "V%u ", number);
    add_output(line);
    return refuse_output;
}

static int print(void *arg UNUSED, const char *text, size_t len)
{
    CHECK_EQ(strlen(text), len);
    add_output(text);
    return refuse_output;
}

static const struct agent_world world = {
    .regs = &regs,
    .ip = 0xffffffff80001234,
    .arg = (void *)77,
    .read = read_memory,
    .var = variable,
    .collect = collect,
    .collect_var = collect_var,
    .print = print,
};

/* run - run the program @hex, which must pass the verifier. It is in memory of exactly
 * its size, so that the sanitizer catches a read behind it.
 */
static int run(const char *hex, uint64_t *value)
{
    uint8_t *code = malloc(strlen(hex) + 1);
    size_t len = 0;
    unsigned byte;
    int used, err;

    for (; sscanf(hex, " %2x%n", &byte, &used) == 1; hex += used)
        code[len++] = (uint8_t)byte;
    code = realloc(code, len);
    problem = (struct agent_problem){ 0 };
    output[0] = '\0';
    err = agent_verify(code, len, ALL, &problem);
    if (err)
        unit_note("refused: %s at %u", problem.why, problem.at);
    CHECK_EQ(err, 0);
    if (!err)
        err = agent_run(code, &world, value, &problem);
    free(code);
    return err;
}

static uint64_t result(const char *hex)
{
    uint64_t value = 0xdead;

    CHECK_EQ(run(hex, &value), 0);
    return value;
}

/* of_two - return the result of the operation @op: @b is on top of the stack, @a below
 * it.
 */
static uint64_t of_two(const char *op, uint64_t a, uint64_t b)
{
    char hex[64];
    size_t len = (size_t)snprintf(hex, sizeof(hex), "25%016lx25%016lx", a, b);

    snprintf(hex + len, sizeof(hex) - len, "%s27", op);
    return result(hex);
}

static void failure(const char *hex, int err, const char *text)
{
    uint64_t value = 5;
    char told[160];

    CHECK_EQ(run(hex, &value), err);
    CHECK_EQ(value, 5);
    agent_problem_text(&problem, told, sizeof(told));
    CHECK_STR(told, text);
}

UNIT_TEST(arithmetic_is_of_64_bits)
{
    CHECK_EQ(of_two("02", UINT64_MAX, 3), 2);
    CHECK_EQ(of_two("03", 3, 5), -2);
    CHECK_EQ(of_two("04", UINT64_C(1) << 63, 3), UINT64_C(1) << 63);
    CHECK_EQ(of_two("05", (uint64_t)-7, 2), -3);
    CHECK_EQ(of_two("06", (uint64_t)-7, 2), UINT64_C(0x7ffffffffffffffc));
    CHECK_EQ(of_two("07", (uint64_t)-7, 2), -1);
    CHECK_EQ(of_two("08", (uint64_t)-7, 2), 1);
    CHECK_EQ(of_two("0f", 0xff0, 0x3c), 0x30);
    CHECK_EQ(of_two("10", 0xff0, 0x3c), 0xffc);
    CHECK_EQ(of_two("11", 0xff0, 0x3c), 0xfcc);
    CHECK_EQ(result("22 05 12 27"), ~UINT64_C(5));
    CHECK_EQ(result("22 05 0e 27"), 0);
    CHECK_EQ(result("22 00 0e 27"), 1);
}

UNIT_TEST(shifts_by_any_number)
{
    CHECK_EQ(of_two("09", 3, 62), UINT64_C(3) << 62);
    CHECK_EQ(of_two("09", 3, 64), 0);
    CHECK_EQ(of_two("09", 3, UINT64_MAX), 0);
    CHECK_EQ(of_two("0a", (uint64_t)-8, 1), -4);
    CHECK_EQ(of_two("0a", (uint64_t)-8, 64), -1);
    CHECK_EQ(of_two("0a", 8, 1000), 0);
    CHECK_EQ(of_two("0b", (uint64_t)-8, 60), 15);
    CHECK_EQ(of_two("0b", (uint64_t)-8, 64), 0);
}

UNIT_TEST(comparisons)
{
    CHECK_EQ(of_two("13", 7, 7), 1);
    CHECK_EQ(of_two("13", 7, 8), 0);
    CHECK_EQ(of_two("14", (uint64_t)-1, 1), 1);
    CHECK_EQ(of_two("14", 1, (uint64_t)-1), 0);
    CHECK_EQ(of_two("15", (uint64_t)-1, 1), 0);
    CHECK_EQ(of_two("15", 1, (uint64_t)-1), 1);
}

UNIT_TEST(words_are_extended)
{
    CHECK_EQ(result("22 80 16 08 27"), -128);
    CHECK_EQ(result("22 7f 16 08 27"), 127);
    CHECK_EQ(result("22 01 16 01 27"), -1);
    CHECK_EQ(result("25 ff ff ff ff ff ff ff ff 2a 20 27"), 0xffffffff);
    CHECK_EQ(result("25 81 23 45 67 89 ab cd ef 2a 40 27"), 0x8123456789abcdef);
    CHECK_EQ(result("25 81 23 45 67 89 ab cd ef 16 40 27"), 0x8123456789abcdef);
}

UNIT_TEST(constants_have_their_high_byte_first)
{
    CHECK_EQ(result("22 fe 27"), 0xfe);
    CHECK_EQ(result("23 fe 01 27"), 0xfe01);
    CHECK_EQ(result("24 fe 01 02 03 27"), 0xfe010203);
    CHECK_EQ(result("25 fe 01 02 03 04 05 06 07 27"), 0xfe01020304050607);
}

UNIT_TEST(words_move)
{
    CHECK_EQ(result("22 01 22 02 2b 03 27"), 1); /* swap: 2 - 1 */
    CHECK_EQ(result("22 05 28 04 27"), 25);
    CHECK_EQ(result("22 05 22 09 29 27"), 5);
    CHECK_EQ(result("22 05 22 06 22 07 32 02 27"), 5);
    CHECK_EQ(result("22 05 22 06 22 07 32 00 27"), 7);
    /* a b c becomes c a b. */
    CHECK_EQ(result("22 05 22 06 22 07 33 27"), 6);
    CHECK_EQ(result("22 05 22 06 22 07 33 29 27"), 5);
    CHECK_EQ(result("22 05 22 06 22 07 33 29 29 27"), 7);
    CHECK_EQ(result("27"), 0);
}

UNIT_TEST(registers_have_gdbs_numbers)
{
    unsigned long *const first[] = { &regs.ax,  &regs.bx,    &regs.cx,  &regs.dx,
                                     &regs.si,  &regs.di,    &regs.bp,  &regs.sp,
                                     &regs.r8,  &regs.r9,    &regs.r10, &regs.r11,
                                     &regs.r12, &regs.r13,   &regs.r14, &regs.r15,
                                     &regs.ip,  &regs.flags, &regs.cs,  &regs.ss };
    char hex[16];

    for (unsigned i = 0; i < AGENT_REGS; i++) {
        *first[i] = 1000 + i;
        snprintf(hex, sizeof(hex), "26 00 %02x 27", i);
        CHECK_EQ(result(hex), i == AGENT_REG_IP ? world.ip : 1000 + i);
    }
}

UNIT_TEST(memory_is_read_in_four_widths)
{
    memcpy(memory + 8, "\x88\x77\x66\x55\x44\x33\x22\x11", 8);
    CHECK_EQ(result("24 00 01 00 08 17 27"), 0x88);
    CHECK_EQ(result("24 00 01 00 08 18 27"), 0x7788);
    CHECK_EQ(result("24 00 01 00 08 19 27"), 0x55667788);
    CHECK_EQ(result("24 00 01 00 08 1a 27"), 0x1122334455667788);
}

UNIT_TEST(jumps_are_taken_by_what_is_not_0)
{
    /* 1 ? 5 : 6 */
    CHECK_EQ(result("22 01 20 00 0a 22 06 21 00 0c 22 05 27"), 5);
    CHECK_EQ(result("22 00 20 00 0a 22 06 21 00 0c 22 05 27"), 6);
    CHECK_EQ(result("25 80 00 00 00 00 00 00 00 20 00 11 22 06 21 00 13 22 05 27"), 5);
}

UNIT_TEST(failures_name_their_instruction)
{
    failure("22 00 1a 27", -EFAULT, "ref64 at 2: memory cannot be read");
    failure("24 00 01 10 00 1a 27", -EFAULT,
            "ref64 at 5: memory cannot be read (0x11000)");
    failure("24 00 01 0f fd 19 27", -EFAULT,
            "ref32 at 5: memory cannot be read (0x10ffd)");
    failure("22 01 22 00 05 27", -EDOM, "div_signed at 4: division by zero");
    failure("22 01 22 00 06 27", -EDOM, "div_unsigned at 4: division by zero");
    failure("22 01 22 00 07 27", -EDOM, "rem_signed at 4: division by zero");
    failure("22 01 22 00 08 27", -EDOM, "rem_unsigned at 4: division by zero");
    failure("25 80 00 00 00 00 00 00 00 25 ff ff ff ff ff ff ff ff 05 27", -EDOM,
            "div_signed at 18: the quotient is too large");
    failure("25 80 00 00 00 00 00 00 00 25 ff ff ff ff ff ff ff ff 07 27", -EDOM,
            "rem_signed at 18: the quotient is too large");
    failure("2c 00 03 27", -ENOENT, "getv at 0: there is no such variable");
}

UNIT_TEST(variables_of_the_trace)
{
    variables[1] = -9;
    CHECK_EQ(result("2c 00 01 27"), -9);
    CHECK_EQ(result("22 04 2d 00 02 27"), 4);
    CHECK_EQ(variables[2], 4);
}

UNIT_TEST(memory_is_collected)
{
    CHECK_EQ(result("24 00 01 00 10 0d 08 27"), 0x10010);
    CHECK_STR(output, "M10010,8 ");
    CHECK_EQ(result("24 00 01 00 10 30 01 02 27"), 0x10010);
    CHECK_STR(output, "M10010,102 ");
    CHECK_EQ(run("24 00 01 00 10 22 05 0c 2e 00 07 27", NULL), 0);
    CHECK_STR(output, "M10010,5 V7 ");
    failure("22 08 0d 04 27", -EFAULT, "trace_quick at 2: memory cannot be read (0x8)");
    failure("24 00 01 00 00 24 00 01 00 00 0c 27", -E2BIG,
            "trace at 10: it is more than 65535 bytes");
    refuse_output = -ENOSPC;
    failure("24 00 01 00 10 0d 08 27", -ENOSPC,
            "trace_quick at 5: there is no room for it in the frame");
    failure("2e 00 07 27", -ENOSPC, "tracev at 0: the variable cannot be collected");
    refuse_output = 0;
}

UNIT_TEST(texts_are_collected_to_their_end)
{
    memset(memory, 'x', sizeof(memory));
    memory[0x25] = '\0';
    CHECK_EQ(run("24 00 01 00 03 23 01 00 2f 27", NULL), 0);
    CHECK_STR(output, "M10003,23 ");
    CHECK_EQ(run("24 00 01 00 03 22 05 2f 27", NULL), 0);
    CHECK_STR(output, "M10003,5 ");
    CHECK_EQ(run("24 00 01 00 25 22 05 2f 27", NULL), 0);
    CHECK_STR(output, "M10025,1 ");
    failure("24 00 01 0f f0 23 01 00 2f 27", -EFAULT,
            "tracenz at 8: memory cannot be read (0x11000)");
}

UNIT_TEST(words_are_printed_in_order)
{
    /* printf("%d-%d", 3, 4): the last word is pushed first. */
    CHECK_EQ(run("22 04 22 03 22 00 22 00 34 02 00 06 25 64 2d 25 64 00 27", NULL), 0);
    CHECK_STR(output, "3-4");
    refuse_output = -ENOSPC;
    failure("22 00 22 00 34 00 00 01 00 27", -ENOSPC,
            "printf at 4: it cannot be printed");
    refuse_output = 0;
}

UNIT_TEST(a_full_stack_is_within_its_bounds)
{
    char hex[3 * 128] = "";

    for (int i = 0; i < 32; i++)
        strcat(hex, "22 01 ");
    for (int i = 0; i < 31; i++)
        strcat(hex, "02 ");
    CHECK_EQ(result(strcat(hex, "27")), 32);
}

UNIT_TESTS()
