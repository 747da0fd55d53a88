/* test_step.c - tests of steps: the copy, and the trap behind it; with both step engines,
 * and with programs that step themselves.
 */
#include "tests/unit/port_fake.h"

#define DR6_BS (1ul << 14)

static struct probe_cpu *cpu;
static struct kprobe p;
static struct pt_regs regs, seen;
static unsigned ran, ran_post;

static int pre(struct kprobe *kp UNUSED, struct pt_regs *r UNUSED)
{
    ran++;
    return 0;
}

static void post(struct kprobe *kp UNUSED, struct pt_regs *r, unsigned long flags UNUSED)
{
    CHECK_EQ(cpu->depth, 1);
    ran_post++;
    seen = *r;
}

static void start(const char *hex, bool with_post, enum step_engine engine)
{
    cpu = plat_probe_cpu(0);
    ran = ran_post = 0;
    regs = fake_regs();
    step_set_engine(engine);
    CHECK_EQ(step_get_engine(), engine);
    p = (struct kprobe){ .pre_handler = pre, .post_handler = with_post ? post : NULL };
    p.addr = fake_function("fn", hex);
    CHECK_EQ(register_kprobe(&p), 0);
}

static void end(void)
{
    CHECK_EQ(cpu->depth, 0);
    if (p.site)
        CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

/* debug - let the CPU take a #DB with @dr6, in front of the instruction at @ip. */
static bool debug(uintptr_t ip, unsigned long dr6)
{
    regs.ip = ip;
    regs.dr6 = dr6;
    return kprobe_debug_handler(&regs, plat_this_cpu());
}

static bool is_remembered(const struct site *site)
{
    for (size_t i = 0; i < PROBE_CACHE_LEN; i++)
        if (cpu->cache[i].addr && cpu->cache[i].site == site)
            return true;
    return false;
}

UNIT_TEST(where_tf_ends_a_step_is_remembered_as_long_as_the_site_is)
{
    const struct site *site;

    start("48 89 e5 c3", true, STEP_TF);
    site = p.site;
    for (unsigned i = 1; i <= 3; i++) {
        CHECK(debug((uintptr_t)site->step_slot + 3, DR6_BS));
        CHECK_EQ(ran_post, i);
        CHECK(is_remembered(site));
    }
    CHECK(!debug(p.addr, DR6_BS));
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK(!is_remembered(site));
}

UNIT_TEST(what_a_single_step_would_undo_is_ended_by_int3)
{
    static const char *const insns[] = { "f4 c3", "0f 23 f8 c3", "0f 23 f0 c3" };

    for (size_t i = 0; i < 3; i++) {
        start(insns[i], true, STEP_TF);
        CHECK(fake_int3(&regs, p.addr));
        CHECK_EQ(regs.ip, (uintptr_t)p.site->step_slot);
        CHECK(!(regs.flags & FLAGS_TF));
        CHECK(fake_int3(&regs, (uintptr_t)p.site->step_slot + p.site->len));
        CHECK_EQ(ran_post, 1);
        CHECK_EQ(regs.ip, p.addr + p.site->len);
        end();
    }
}

UNIT_TEST(the_shadow_of_sti_is_cast_again_behind_the_post_handler)
{
    start("fb c3", true, STEP_INT3);
    CHECK(fake_int3(&regs, p.addr));
    regs.flags |= FLAGS_IF;
    CHECK(fake_int3(&regs, (uintptr_t)p.site->step_slot + 1));
    CHECK_EQ(seen.ip, p.addr + 1);
    CHECK(seen.flags & FLAGS_IF);
    CHECK_EQ(regs.ip, (uintptr_t)site_pair(p.site)->slot);
    CHECK(!(regs.flags & FLAGS_IF));
}

UNIT_TEST(so_it_is_with_what_is_emulated)
{
    uint64_t *sp;

    start("fb ff d0 c3", true, STEP_INT3);
    sp = (uint64_t *)regs.sp;
    regs.ax = p.addr + 3;
    regs.flags &= ~FLAGS_IF;
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(regs.ip, (uintptr_t)p.site->step_slot);
    regs.flags |= FLAGS_IF;
    CHECK(fake_int3(&regs, (uintptr_t)p.site->step_slot + 1));
    CHECK_EQ(seen.ip, p.addr + 1);
    CHECK_EQ(seen.sp, (uintptr_t)sp);
    CHECK_EQ(regs.ip, p.addr + 3);
    CHECK_EQ(sp[-1], p.addr + 3);
    CHECK(regs.flags & FLAGS_IF);
}

UNIT_TEST(iterations_of_a_string_instruction_are_no_steps)
{
    start("f3 a4 c3", true, STEP_TF);
    CHECK(fake_int3(&regs, p.addr));
    for (int i = 0; i < 5; i++) {
        CHECK(debug((uintptr_t)p.site->step_slot, DR6_BS));
        CHECK_EQ(regs.ip, (uintptr_t)p.site->step_slot);
        CHECK(regs.flags & FLAGS_TF);
        CHECK_EQ(ran_post, 0);
    }
    CHECK(debug((uintptr_t)p.site->step_slot + 2, DR6_BS));
    CHECK_EQ(ran_post, 1);
}

UNIT_TEST(an_nmi_is_stepped_without_tf)
{
    start("90 c3", true, STEP_TF);
    FAKE_DEPTHS.nmi = 1;
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(regs.ip, (uintptr_t)p.site->step_slot);
    CHECK(!(regs.flags & FLAGS_TF));
    CHECK(fake_int3(&regs, (uintptr_t)p.site->step_slot + 1));
    CHECK_EQ(ran_post, 1);
    FAKE_DEPTHS.nmi = 0;
}

UNIT_TEST(a_step_may_end_on_another_cpu)
{
    start("90 c3", true, STEP_INT3);
    fake.cpus = 2;
    CHECK(fake_int3(&regs, p.addr));
    fake.this_cpu = 1;
    cpu = plat_probe_cpu(1);
    CHECK(fake_int3(&regs, (uintptr_t)p.site->step_slot + 1));
    CHECK_EQ(ran_post, 1);
    CHECK_EQ(fake_totals().traps, 2);
    fake.this_cpu = 0;
}

static void hold_post(struct kprobe *kp UNUSED, struct pt_regs *r UNUSED,
                      unsigned long flags UNUSED)
{
}

static void end_of_step(void)
{
    CHECK(fake_int3(&regs, (uintptr_t)p.site->step_slot + 1));
}

/* The last post-handler is unregistered during a step. */
UNIT_TEST(a_step_whose_post_handler_has_gone_just_ends)
{
    struct kprobe other = { .post_handler = hold_post };

    start("90 c3", false, STEP_INT3);
    other.addr = p.addr;
    CHECK_EQ(register_kprobe(&other), 0);
    CHECK(fake_int3(&regs, p.addr));
    fake.on_quiesce = end_of_step;
    CHECK_EQ(unregister_kprobe(&other), 0);
    CHECK_EQ(regs.ip, p.addr + 1);
    CHECK_EQ(p.site->way, WAY_BOOST);
}

/* ---- a program that has TF set ---- */

UNIT_TEST(a_stepping_program_traps_once_behind_a_boosted_instruction)
{
    start("48 89 e5 c3", false, STEP_INT3);
    regs.flags |= FLAGS_TF;
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(regs.ip, (uintptr_t)p.site->boost_slot);
    CHECK(!debug((uintptr_t)p.site->boost_slot + 3, DR6_BS)); /* it is for the program */
    CHECK_EQ(regs.ip, p.addr + 3);
    CHECK(regs.flags & FLAGS_TF);
    CHECK_EQ(fake_totals().traps, 1);
}

UNIT_TEST(a_stepping_program_traps_once_behind_a_stepped_instruction)
{
    for (enum step_engine engine = STEP_INT3; engine <= STEP_TF; engine++) {
        start("48 89 e5 c3", true, engine);
        regs.flags |= FLAGS_TF;
        CHECK(fake_int3(&regs, p.addr));
        CHECK(!debug(regs.ip + 3, DR6_BS));
        CHECK_EQ(regs.ip, p.addr + 3);
        CHECK(regs.flags & FLAGS_TF);
        CHECK_EQ(ran_post, 1);
        CHECK(seen.flags & FLAGS_TF);
        end();
    }
}

UNIT_TEST(a_stepping_program_is_owed_a_trap_behind_an_emulated_instruction)
{
    for (int with_post = 0; with_post < 2; with_post++) {
        start("eb 10 c3", with_post, STEP_INT3);
        CHECK(fake_int3(&regs, p.addr));
        CHECK_EQ(fake.raised_steps, with_post);
        regs.flags |= FLAGS_TF;
        CHECK(fake_int3(&regs, p.addr));
        CHECK_EQ(fake.raised_steps, with_post + 1);
        CHECK_EQ(fake.raised_ip, p.addr + 2 + 0x10);
        end();
    }
}

UNIT_TEST(popf_that_sets_tf_traps_one_later)
{
    start("9d 90 c3", false, STEP_INT3);
    fake_stack()[0] = FLAGS_TF | FLAGS_FIXED;
    CHECK(fake_int3(&regs, p.addr));
    CHECK(regs.flags & FLAGS_TF);
    CHECK_EQ(fake.raised_steps, 0);
}

UNIT_TEST(a_stepping_program_sees_each_iteration)
{
    unsigned raised = fake.raised_steps;

    start("f3 a4 c3", false, STEP_INT3);
    regs.flags |= FLAGS_TF;
    CHECK(fake_int3(&regs, p.addr));
    CHECK(debug((uintptr_t)p.site->boost_slot, DR6_BS));
    CHECK_EQ(fake.raised_steps, raised + 1);
    CHECK_EQ(fake.raised_ip, p.addr);
    CHECK_EQ(regs.ip, (uintptr_t)p.site->boost_slot);
    CHECK(regs.flags & FLAGS_TF);
}

UNIT_TEST(iterations_of_a_port_instruction_are_no_steps_either)
{
    start("f3 6c c3", true, STEP_TF);
    CHECK(fake_int3(&regs, p.addr));
    CHECK(debug((uintptr_t)p.site->step_slot, DR6_BS));
    CHECK_EQ(ran_post, 0);
}

/* ---- traps that are not steps ---- */

UNIT_TEST(a_debug_trap_that_is_no_step_is_for_others)
{
    start("90 c3", true, STEP_TF);
    CHECK(fake_int3(&regs, p.addr));
    CHECK(!debug((uintptr_t)p.site->step_slot + 1, 1)); /* a data breakpoint */
    CHECK_EQ(ran_post, 0);
}

UNIT_TEST(a_step_elsewhere_is_for_others)
{
    start("48 89 e5 c3", true, STEP_TF);
    CHECK(!debug(p.addr + 3, DR6_BS));
    CHECK_EQ(regs.ip, p.addr + 3);
    CHECK(!debug((uintptr_t)p.site->step_slot, DR6_BS));
    CHECK(!debug((uintptr_t)p.site->step_slot + 1, DR6_BS));
    CHECK_EQ(ran_post, 0);
}

UNIT_TEST(an_int3_elsewhere_in_a_cell_is_no_hit)
{
    start("48 89 e5 c3", true, STEP_INT3);
    CHECK(!fake_int3(&regs, (uintptr_t)p.site->step_slot + 4));
    CHECK(!fake_int3(&regs, (uintptr_t)p.site->boost_slot + 8));
    CHECK_EQ(ran_post, 0);
}

UNIT_TESTS_BETWEEN(fake_start, end)
