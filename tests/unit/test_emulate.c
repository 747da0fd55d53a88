/* test_emulate.c - tests of emulate_run(): the register image after an instruction is
 * compared with a second implementation of the manual, which is written here.
 */
#include "probes/insn/operand.h"
#include "tests/unit/port_fake.h"

static struct site site;
static struct pt_regs
    regs;                  /* before the instruction; each test begins with fake_regs() */
static struct pt_regs got; /* behind it */

static void begin(void)
{
    fake_start();
    regs = fake_regs();
}

/* prepare - put the instruction @hex into the text, and prepare to emulate it.
 * Return: its address.
 */
static uintptr_t prepare(const char *hex)
{
    struct insn insn;
    uintptr_t addr = fake_function("fn", hex);

    CHECK_EQ(insn_decode(&insn, (const uint8_t *)addr, INSN_MAX_LEN, addr), 0);
    CHECK(emulate_supports(&insn));
    memset(&site, 0, sizeof(site));
    site.addr = addr;
    site.len = insn.len;
    site.way = WAY_EMULATE;
    emulate_prepare(&site.emul, &insn);
    return addr;
}

/* check_rest - check that only ip, sp, flags, cx and orig_ax may differ. */
static void check_rest(const struct pt_regs *got, struct pt_regs want)
{
    want.ip = got->ip;
    want.sp = got->sp;
    want.flags = got->flags;
    want.cx = got->cx;
    want.orig_ax = got->orig_ax;
    CHECK(memcmp(got, &want, sizeof(want)) == 0);
}

static struct pt_regs run(struct pt_regs image)
{
    struct pt_regs before = image;
    unsigned raised = fake.raised;
    bool is_done;

    image.ip = site.addr + 1;
    is_done = emulate_run(&site, &image);
    CHECK_EQ(is_done, fake.raised == raised);
    check_rest(&image, before);
    return image;
}

/* ---- conditional branches ---- */

static const unsigned long status[5] = { FLAGS_CF, FLAGS_PF, FLAGS_ZF, FLAGS_SF,
                                         FLAGS_OF };

static unsigned long flags_of(unsigned combination)
{
    unsigned long flags = FLAGS_FIXED | FLAGS_IF;

    for (int i = 0; i < 5; i++)
        if (combination & 1u << i)
            flags |= status[i];
    return flags;
}

/* holds - does the condition @cond hold? As SDM vol. 1, appendix "EFLAGS Condition
 * Codes".
 */
static bool holds(unsigned cond, unsigned long flags)
{
    bool cf = flags & FLAGS_CF, pf = flags & FLAGS_PF, zf = flags & FLAGS_ZF,
         sf = flags & FLAGS_SF, of = flags & FLAGS_OF;
    const bool table[16] = {
        of, !of, cf, !cf, zf,       !zf,      cf || zf,       !cf && !zf,
        sf, !sf, pf, !pf, sf != of, sf == of, zf || sf != of, !zf && sf == of,
    };

    return table[cond];
}

UNIT_TEST(jcc_takes_the_branch_as_the_flags_say)
{
    char hex[32];

    for (unsigned cond = 0; cond < 16; cond++) {
        uintptr_t addr;

        snprintf(hex, sizeof(hex), "%02x 10", 0x70 + cond);
        addr = prepare(hex);
        for (unsigned c = 0; c < 32; c++) {
            regs = fake_regs();
            regs.flags = flags_of(c);
            got = run(regs);
            CHECK_EQ(got.ip, holds(cond, regs.flags) ? addr + 2 + 0x10 : addr + 2);
            CHECK(got.flags == regs.flags && got.sp == regs.sp && got.cx == regs.cx);
        }
    }
}

UNIT_TEST(near_jcc_reaches_backwards)
{
    for (unsigned cond = 0; cond < 16; cond++) {
        char hex[32];
        uintptr_t addr;

        snprintf(hex, sizeof(hex), "0f %02x 00 00 00 ff", 0x80 + cond);
        addr = prepare(hex);
        for (unsigned c = 0; c < 32; c++) {
            regs = fake_regs();
            regs.flags = flags_of(c);
            CHECK_EQ(run(regs).ip,
                     holds(cond, regs.flags) ? addr + 6 - 0x1000000 : addr + 6);
        }
    }
}

/* ---- loops ---- */

static const uint64_t counters[] = { 0,
                                     1,
                                     2,
                                     3,
                                     UINT64_C(0x100000000),
                                     UINT64_C(0x100000001),
                                     UINT64_C(0x100000002),
                                     UINT64_C(0xffffffff00000000),
                                     UINT64_C(0xffffffff00000001),
                                     UINT64_MAX };

static void check_loop(const char *hex, bool narrow, int wants_zf)
{
    uintptr_t addr = prepare(hex);
    size_t len = site.len;

    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        for (int zf = 0; zf < 2; zf++) {
            uint64_t left =
                narrow ? (uint32_t)((uint32_t)counters[i] - 1) : counters[i] - 1;
            bool taken = left != 0 && (wants_zf < 0 || wants_zf == zf);

            regs = fake_regs();
            regs.cx = counters[i];
            regs.flags = FLAGS_FIXED | (zf ? FLAGS_ZF : 0) | FLAGS_CF;
            got = run(regs);
            CHECK_EQ(got.cx, left);
            CHECK_EQ(got.ip, taken ? addr + len - 16 : addr + len);
            CHECK_EQ(got.flags, regs.flags);
        }
    }
}

UNIT_TEST(loop_counts_down_and_leaves_flags_alone)
{
    check_loop("e2 f0", false, -1);
    check_loop("67 e2 f0", true, -1);
}

UNIT_TEST(loope_and_loopne_look_at_zf_too)
{
    check_loop("e1 f0", false, 1);
    check_loop("e0 f0", false, 0);
    check_loop("67 e1 f0", true, 1);
    check_loop("67 e0 f0", true, 0);
}

UNIT_TEST(jrcxz_only_looks)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        uintptr_t addr;

        fake_start();
        addr = prepare(narrow ? "67 e3 7f" : "e3 7f");
        for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
            bool zero = narrow ? (uint32_t)counters[i] == 0 : counters[i] == 0;

            regs = fake_regs();
            regs.cx = counters[i];
            got = run(regs);
            CHECK_EQ(got.ip, addr + site.len + (zero ? 0x7f : 0));
            CHECK_EQ(got.cx, counters[i]);
        }
        fake_end();
    }
}

/* ---- jumps, calls, returns ---- */

UNIT_TEST(branch_through_each_register)
{
    for (unsigned n = 0; n < 16; n++) {
        const char *rex = n < 8 ? "" : "41 ";
        uintptr_t addr;
        char hex[32];

        regs = fake_regs();
        snprintf(hex, sizeof(hex), "%sff %02x", rex, 0xe0 + n % 8);
        prepare(hex);
        got = run(regs);
        CHECK_EQ(got.ip, *insn_reg(&regs, n));
        CHECK_EQ(got.sp, regs.sp);

        snprintf(hex, sizeof(hex), "%sff %02x", rex, 0xd0 + n % 8);
        addr = prepare(hex);
        got = run(regs); /* call *%rsp goes to rsp as it was before the push */
        CHECK_EQ(got.ip, *insn_reg(&regs, n));
        CHECK_EQ(got.sp, regs.sp - 8);
        CHECK_EQ(*(uint64_t *)got.sp, addr + site.len);
    }
}

UNIT_TEST(branch_through_the_stack_counts_from_before_the_push)
{
    fake_stack()[1] = 0x1234;
    prepare("ff 54 24 08"); /* call *8(%rsp) */
    got = run(regs);
    CHECK_EQ(got.ip, 0x1234);
    CHECK_EQ(got.sp, regs.sp - 8);
    prepare("ff 64 24 08"); /* jmp *8(%rsp) */
    got = run(regs);
    CHECK_EQ(got.ip, 0x1234);
    CHECK_EQ(got.sp, regs.sp);
}

UNIT_TEST(branch_through_base_index_and_displacement)
{
    static uint64_t cells[64];

    for (size_t i = 0; i < 64; i++)
        cells[i] = 0x1000 + i;
    regs.ax = (uintptr_t)cells;
    regs.r13 = 5;
    prepare("42 ff 64 e8 10"); /* jmp *16(%rax,%r13,8) */
    CHECK_EQ(run(regs).ip, 0x1000 + 7);
    regs.r13 = (unsigned long)-2;
    regs.ax = (uintptr_t)&cells[10];
    CHECK_EQ(run(regs).ip, 0x1000 + 10);
    regs.bp = (uintptr_t)&cells[9];
    prepare("ff 65 f8"); /* jmp *-8(%rbp) */
    CHECK_EQ(run(regs).ip, 0x1000 + 8);
    regs.r12 = (uintptr_t)&cells[3];
    prepare("41 ff 24 24"); /* jmp *(%r12) */
    CHECK_EQ(run(regs).ip, 0x1000 + 3);
}

UNIT_TEST(a_rip_relative_operand_counts_from_the_original)
{
    uintptr_t addr = prepare("ff 15 02 00 00 00 90 90 88 77 66 55 44 33 22 11");

    got = run(regs);
    CHECK_EQ(got.ip, 0x1122334455667788);
    CHECK_EQ(*(uint64_t *)got.sp, addr + 6);
}

UNIT_TEST(a_segment_base_is_added)
{
    static uint64_t cells[4] = { 1, 2, 3, 4 };

    fake.gs_base = (uintptr_t)cells;
    fake.fs_base = (uintptr_t)(cells + 1);
    prepare("65 ff 24 25 10 00 00 00"); /* jmp *%gs:16 */
    CHECK_EQ(run(regs).ip, 3);
    prepare("64 ff 24 25 10 00 00 00"); /* jmp *%fs:16 */
    CHECK_EQ(run(regs).ip, 4);
}

UNIT_TEST(a_target_that_cannot_be_loaded_is_a_fault_at_the_original)
{
    static uint64_t cell;
    static const char *const forms[] = { "ff 10", "ff 20" }; /* call, jmp *(%rax) */

    for (int i = 0; i < 2; i++) {
        uintptr_t addr;

        fake_start();
        regs = fake_regs();
        regs.ax = (uintptr_t)&cell;
        fake_bad((uintptr_t)&cell, sizeof(cell));
        fake_stack()[-1] = 42;
        addr = prepare(forms[i]);
        got = run(regs);
        CHECK_EQ(fake.raised, 1);
        CHECK_EQ(fake.raised_at, (uintptr_t)&cell);
        CHECK_EQ(fake.raised_ip, addr);
        CHECK_EQ(got.sp, regs.sp);
        CHECK_EQ(fake_stack()[-1], 42);
        fake_end();
    }
}

UNIT_TEST(ret_pops_the_target_and_drops_the_arguments)
{
    static const struct {
        const char *hex;
        unsigned drop;
    } rows[] = { { "c3", 0 },
                 { "f3 c3", 0 },
                 { "c2 00 00", 0 },
                 { "c2 10 00", 16 },
                 { "c2 ff ff", 0xffff } };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_start();
        regs = fake_regs();
        fake_stack()[0] = 0x5678;
        prepare(rows[i].hex);
        got = run(regs);
        CHECK_EQ(got.ip, 0x5678);
        CHECK_EQ(got.sp, regs.sp + 8 + rows[i].drop);
        fake_end();
    }
}

UNIT_TEST(the_stack_is_what_rsp_and_rbp_are_the_base_of)
{
    static const struct {
        const char *hex;
        bool by_stack;
    } forms[] = { { "ff 24 24", true },       /* jmp *(%rsp) */
                  { "ff 65 08", true },       /* jmp *8(%rbp) */
                  { "41 ff 65 08", false } }; /* jmp *8(%r13) */

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        fake_start();
        regs = fake_regs();
        regs.bp = regs.r13 = regs.sp;
        fake_bad(regs.sp, 16);
        prepare(forms[i].hex);
        run(regs);
        CHECK_EQ(fake.raised, 1);
        CHECK_EQ(fake.raised_by_stack, forms[i].by_stack);
        fake_end();
    }
}

UNIT_TEST(ret_from_a_bad_stack_is_a_fault_at_the_original)
{
    uintptr_t addr;

    fake_bad(regs.sp, 8);
    addr = prepare("c3");
    got = run(regs);
    CHECK_EQ(fake.raised_at, regs.sp);
    CHECK_EQ(fake.raised_ip, addr);
    CHECK(fake.raised_by_stack);
    CHECK_EQ(got.sp, regs.sp);
}

/* ---- flags ---- */

UNIT_TEST(pushf_pushes_what_the_program_has)
{
    uintptr_t addr;

    regs.flags = flags_of(21) | FLAGS_DF | FLAGS_AC | FLAGS_ID | FLAGS_TF | FLAGS_RF;
    addr = prepare("9c");
    got = run(regs);
    CHECK_EQ(got.sp, regs.sp - 8);
    CHECK_EQ(*(uint64_t *)got.sp, regs.flags & ~FLAGS_RF);
    CHECK_EQ(got.flags, regs.flags & ~FLAGS_RF);
    CHECK_EQ(got.ip, addr + 1);
}

UNIT_TEST(pushfw_pushes_two_bytes)
{
    uintptr_t addr;

    regs.flags = flags_of(31) | FLAGS_ID | FLAGS_NT;
    fake_stack()[-1] = UINT64_C(0x1111111111111111);
    addr = prepare("66 9c");
    got = run(regs);
    CHECK_EQ(got.sp, regs.sp - 2);
    CHECK_EQ(fake_stack()[-1], (regs.flags & 0xffff) << 48 | UINT64_C(0x111111111111));
    CHECK_EQ(got.ip, addr + 2);
}

#define POPF_CHANGES UINT64_C(0x247fd5) /* all but 1, RF, VM, VIF, VIP and the reserved */

UNIT_TEST(popf_takes_every_flag_it_may)
{
    uintptr_t addr = prepare("9d");

    for (int i = 0; i < 2; i++) {
        uint64_t old = i ? UINT64_MAX : 0, new = ~old;

        regs = fake_regs();
        regs.flags = old;
        fake_stack()[0] = new;
        got = run(regs);
        CHECK_EQ(got.flags, (old & ~POPF_CHANGES & ~FLAGS_RF) | (new &POPF_CHANGES));
        CHECK_EQ(got.sp, regs.sp + 8);
        CHECK_EQ(got.ip, addr + 1);
    }
}

UNIT_TEST(popfw_takes_the_lower_16)
{
    uintptr_t addr = prepare("66 9d");

    for (int i = 0; i < 2; i++) {
        uint64_t old = i ? UINT64_MAX : 0, new = ~old, mask = POPF_CHANGES & 0xffff;

        regs = fake_regs();
        regs.flags = old;
        fake_stack()[0] = new;
        got = run(regs);
        CHECK_EQ(got.flags, (old & ~mask & ~FLAGS_RF) | (new &mask));
        CHECK_EQ(got.sp, regs.sp + 2);
        CHECK_EQ(got.ip, addr + 2);
    }
}

/* The two bytes that popfw reads are the last ones that can be read. */
UNIT_TEST(popfw_reads_two_bytes)
{
    regs.sp += 6;
    fake_stack()[0] = (uint64_t)(FLAGS_CF | FLAGS_FIXED) << 48;
    fake_bad(regs.sp + 2, 8);
    prepare("66 9d");
    got = run(regs);
    CHECK_EQ(fake.raised, 0);
    CHECK_EQ(got.flags & 0xffff, FLAGS_CF | FLAGS_FIXED);
}

UNIT_TEST(popf_from_a_bad_stack_is_a_fault_at_the_original)
{
    uintptr_t addr;

    fake_bad(regs.sp, 8);
    addr = prepare("9d");
    got = run(regs);
    CHECK_EQ(fake.raised, 1);
    CHECK_EQ(fake.raised_ip, addr);
    CHECK_EQ(got.flags, regs.flags);
    CHECK_EQ(got.sp, regs.sp);
}

/* ---- what is whose ---- */

UNIT_TEST(everything_else_is_not_emulated)
{
    static const char *const rows[] = {
        "90", "50",    "48 89 e5", "fb",    "f4", "cc",
        "cf", "ff 30", "ff 18",    "ff 28", "cb", "f3 a4"
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uintptr_t addr = fake_function("fn", rows[i]);
        struct insn insn;

        CHECK_EQ(insn_decode(&insn, (const uint8_t *)addr, INSN_MAX_LEN, addr), 0);
        CHECK(!emulate_supports(&insn));
    }
}

UNIT_TEST(a_wrong_kind_is_a_bug)
{
    memset(&site, 0, sizeof(site));
    site.emul.kind = INSN_NOP;
    CHECK(FAKE_BUG(emulate_run(&site, &regs)));
}

UNIT_TESTS_BETWEEN(begin, fake_end)
