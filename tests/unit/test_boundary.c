/* test_boundary.c - tests that decode from the start of a function to find out where
 * instructions begin.
 */
#include "kernel/base/err.h"
#include "probes/core/life.h"
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
    fake_start();
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

static void each_start_is_found_and_decoded(void)
{
    start(body);
    for (size_t i = 0; starts[i] < fn.size; i++) {
        CHECK_EQ(find(starts[i]), 0);
        CHECK_EQ(insn.addr, fn.start + starts[i]);
        CHECK_EQ(insn.len, starts[i + 1] - starts[i]);
    }
    end();
}

static void each_middle_is_refused_with_the_start_of_its_instruction(void)
{
    start(body);
    for (size_t i = 0; starts[i] < fn.size; i++) {
        for (unsigned off = starts[i] + 1; off < starts[i + 1]; off++) {
            CHECK_EQ(find(off), -EILSEQ);
            CHECK_EQ(why.reason, PROBE_NOT_BOUNDARY);
            CHECK_EQ(why.at, fn.start + starts[i]);
        }
    }
    end();
}

static void what_looks_like_an_instruction_inside_one_is_none(void)
{
    start(body); /* byte 8 is 55, which is push %rbp only outside of the immediate */
    CHECK_EQ(find(8), -EILSEQ);
    end();
}

static void behind_undecodable_bytes_nothing_is_known(void)
{
    start("90 06 90 c3"); /* 06: no instruction in 64-bit mode */
    CHECK_EQ(find(0), 0);
    for (size_t off = 1; off < 4; off++) {
        CHECK_EQ(find(off), -EILSEQ);
        CHECK_EQ(why.reason, PROBE_UNDECODABLE);
        CHECK_EQ(why.at, fn.start + 1);
    }
    end();
}

static void an_instruction_that_the_function_cuts_off_is_none(void)
{
    start("90 e9 00 00");
    CHECK_EQ(find(0), 0);
    CHECK_EQ(find(1), -EILSEQ);
    CHECK_EQ(why.reason, PROBE_UNDECODABLE);
    end();
}

static void the_last_instruction_may_end_with_the_text(void)
{
    start(body);
    CHECK_EQ(find(17), 0);
    CHECK_EQ(insn.kind, INSN_RET);
    end();
}

static void one_function_does_not_answer_for_another(void)
{
    struct plat_symbol other;

    start(body);
    plat_symbol_at(fake_function("other", "90 90 90 90 90 c3"), &other);
    CHECK_EQ(find(1), 0);
    CHECK_EQ(boundary_find(other.start + 3, &other, &insn, &why), 0);
    CHECK_EQ(find(3), -EILSEQ);
    CHECK_EQ(boundary_find(other.start + 3, &other, &insn, &why), 0);
    end();
}

static void a_second_question_costs_no_memory(void)
{
    start(body);
    find(1);
    fake_fail_at(1);
    CHECK_EQ(find(4), 0);
    CHECK(!fake_failed());
    end();
}

static void the_start_of_a_function_is_known_without_decoding_it(void)
{
    start(body);
    fake_fail_at(1);
    CHECK_EQ(find(0), 0);
    CHECK_EQ(insn.kind, INSN_PUSH_REG);
    CHECK(!fake_failed());
    fake_fail_at(0);
    end();
}

static void functions_are_remembered_side_by_side(void)
{
    struct plat_symbol other;

    start(body);
    plat_symbol_at(fake_function("other", "48 89 e5 c3"), &other);
    CHECK_EQ(find(4), 0);
    CHECK_EQ(boundary_find(other.start + 3, &other, &insn, &why), 0);
    fake_fail_at(1);
    CHECK_EQ(find(1), 0);
    CHECK_EQ(boundary_find(other.start + 1, &other, &insn, &why), -EILSEQ);
    CHECK_EQ(why.at, other.start);
    CHECK(!fake_failed());
    fake_fail_at(0);
    end();
}

static void a_set_leaves_nothing_remembered(void)
{
    struct kprobe p[2] = { 0 }, *ps[] = { &p[0], &p[1] };
    struct kprobe single = { 0 };

    start(body);
    single.addr = fn.start;
    CHECK_EQ(register_kprobe(&single), 0);
    boundary_forget();
    p[0].addr = fn.start + starts[1];
    p[1].addr = fn.start + starts[2];
    CHECK_EQ(register_kprobes(ps, 2), 0);
    fake_fail_at(1);
    CHECK_EQ(find(1), -ENOMEM);
    CHECK_EQ(unregister_kprobes(ps, 2), 0);
    CHECK_EQ(unregister_kprobe(&single), 0);
    end();
}

static void armed_probes_do_not_show(void)
{
    struct kprobe p = { 0 };

    start(body);
    p.addr = fn.start;
    CHECK_EQ(register_kprobe(&p), 0);
    boundary_forget();
    CHECK_EQ(find(0), 0);
    CHECK_EQ(insn.kind, INSN_PUSH_REG);
    CHECK_EQ(find(1), 0);
    CHECK_EQ(unregister_kprobe(&p), 0);
    end();
}

static void without_memory_it_says_so_and_recovers(void)
{
    for (unsigned n = 1; n <= 2; n++) {
        start(body);
        fake_fail_at(n);
        CHECK_EQ(find(1), -ENOMEM);
        CHECK_EQ(why.reason, PROBE_NO_MEMORY);
        CHECK_EQ(find(0), 0);
        end();
    }
}

static void unreadable_text_is_no_text(void)
{
    start(body);
    fake_bad(fn.start + 3, 1);
    CHECK_EQ(find(0), -ENOENT);
    CHECK_EQ(why.reason, PROBE_NOT_TEXT);
    end();
}

static unsigned visited;

static void visit(const struct insn *i, void *arg)
{
    CHECK(arg == &fn);
    CHECK_EQ(i->addr, fn.start + starts[visited]);
    visited++;
}

static void for_each_goes_through_all(void)
{
    start(body);
    visited = 0;
    CHECK_EQ(boundary_for_each(&fn, visit, &fn), 0);
    CHECK_EQ(visited, 6);
    fake_fail_at(1);
    CHECK_EQ(boundary_for_each(&fn, visit, &fn), -ENOMEM);
    CHECK_EQ(visited, 6);
    end();
}

static void for_each_stops_where_nothing_decodes(void)
{
    start("55 06 90");
    visited = 0;
    CHECK_EQ(boundary_for_each(&fn, visit, &fn), -EILSEQ);
    CHECK_EQ(visited, 1);
    end();
}

UNIT_TESTS(each_start_is_found_and_decoded,
           each_middle_is_refused_with_the_start_of_its_instruction,
           what_looks_like_an_instruction_inside_one_is_none,
           behind_undecodable_bytes_nothing_is_known,
           an_instruction_that_the_function_cuts_off_is_none,
           the_last_instruction_may_end_with_the_text,
           one_function_does_not_answer_for_another, a_second_question_costs_no_memory,
           the_start_of_a_function_is_known_without_decoding_it,
           functions_are_remembered_side_by_side, a_set_leaves_nothing_remembered,
           armed_probes_do_not_show, without_memory_it_says_so_and_recovers,
           unreadable_text_is_no_text, for_each_goes_through_all,
           for_each_stops_where_nothing_decodes)
