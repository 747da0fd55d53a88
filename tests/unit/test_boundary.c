/* test_boundary.c - tests that decode from the start of a function to find out where
 * instructions begin.
 */
#include "probes/core/registry.h"
#include "tests/unit/port_fake.h"

/* push %rbp; mov %rsp,%rbp; movabs $0x5555555555555555,%rax; add $0x55,%al; pop %rbp;
 * ret
 */
static const char *const body = "55 48 89 e5 48 b8 55 55 55 55 55 55 55 55 04 55 5d c3";
static const unsigned starts[] = { 0, 1, 4, 14, 16, 17, 18 };

static struct plat_symbol fn;
static struct probe_reject why;
static struct insn insn;

static void start(const char *hex)
{
    plat_symbol_at(fake_function("fn", hex), &fn);
}

static void end(void)
{
    boundary_forget();
    fake_end();
}

static int find(size_t off)
{
    return boundary_find(fn.start + off, &fn, &insn, &why);
}

UNIT_TEST(each_middle_is_refused_with_the_start_of_its_instruction)
{
    start(body);
    for (size_t i = 0; starts[i] < fn.size; i++) {
        for (unsigned off = starts[i] + 1; off < starts[i + 1]; off++) {
            CHECK_EQ(find(off), -EILSEQ);
            CHECK_EQ(why.reason, PROBE_NOT_BOUNDARY);
            CHECK_EQ(why.at, fn.start + starts[i]);
        }
    }
}

UNIT_TEST(what_looks_like_an_instruction_inside_one_is_none)
{
    start(body); /* byte 8 is 55, which is push %rbp only outside of the immediate */
    CHECK_EQ(find(8), -EILSEQ);
}

UNIT_TEST(an_instruction_that_the_function_cuts_off_is_none)
{
    start("90 e9 00 00");
    CHECK_EQ(find(0), 0);
    CHECK_EQ(find(1), -EILSEQ);
    CHECK_EQ(why.reason, PROBE_UNDECODABLE);
}

UNIT_TEST(the_start_of_a_function_is_known_without_decoding_it)
{
    start(body);
    fake_fail_at(1);
    CHECK_EQ(find(0), 0);
    CHECK_EQ(insn.kind, INSN_PUSH_REG);
    CHECK(!fake_failed());
    fake_fail_at(0);
}

UNIT_TEST(unreadable_text_is_no_text)
{
    start(body);
    fake_bad(fn.start + 3, 1);
    CHECK_EQ(find(0), -ENOENT);
    CHECK_EQ(why.reason, PROBE_NOT_TEXT);
}

static unsigned visited;

static void visit(const struct insn *i, void *arg)
{
    CHECK(arg == &fn);
    CHECK_EQ(i->addr, fn.start + starts[visited]);
    visited++;
}

UNIT_TEST(for_each_goes_through_all)
{
    start(body);
    visited = 0;
    CHECK_EQ(boundary_for_each(&fn, visit, &fn), 0);
    CHECK_EQ(visited, 6);
    fake_fail_at(1);
    CHECK_EQ(boundary_for_each(&fn, visit, &fn), -ENOMEM);
    CHECK_EQ(visited, 6);
}

UNIT_TEST(for_each_stops_where_nothing_decodes)
{
    start("55 06 90");
    visited = 0;
    CHECK_EQ(boundary_for_each(&fn, visit, &fn), -EILSEQ);
    CHECK_EQ(visited, 1);
}

UNIT_TESTS_BETWEEN(fake_start, end)
