/* test_extend_none.c - tests of the core without the rooms above it: breakpoints, from
 * register to reclaim. Of the engine only core, insn and extend_none.c are linked: so the
 * link proves that the core needs no other room.
 */
#include "probes/core/registry.h"
#include "probes/insn/encode.h"
#include "tests/unit/port_fake.h"

static unsigned before, behind;

static int pre(struct kprobe *hit, struct pt_regs *r)
{
    CHECK_EQ(r->ip, hit->addr + 1);
    before++;
    return 0;
}

static void post(struct kprobe *hit UNUSED, struct pt_regs *r UNUSED,
                 unsigned long flags UNUSED)
{
    behind++;
}

static uint8_t byte_at(uintptr_t addr)
{
    uint8_t byte = 0;

    plat_text_read(&byte, addr, 1);
    return byte;
}

static struct kprobe p;
static struct pt_regs regs;

static void start(void)
{
    fake_start();
    before = behind = 0;
    p = (struct kprobe){ .pre_handler = pre };
    regs = fake_regs();
}

static void end(void)
{
    if (p.site)
        CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void probe(const char *hex)
{
    p.addr = fake_function("fn", hex);
    CHECK_EQ(register_kprobe(&p), 0);
}

/* ---- one breakpoint ---- */

UNIT_TEST(its_life_from_register_to_reclaim)
{
    struct site *site;

    probe("55 48 89 e5 c3");
    site = registry_find(p.addr);
    CHECK(site && site->state == SITE_ARMED && site->way == WAY_BOOST);
    CHECK_EQ(byte_at(p.addr), INSN_INT3);
    CHECK_EQ(byte_at(p.addr + 1), 0x48);
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(before, 1);
    CHECK_EQ(kprobe_hits(&p), 1);
    CHECK_EQ(regs.ip, (uintptr_t)site->boost_slot);
    CHECK_EQ(copy_original(regs.ip), p.addr);
    CHECK_EQ(copy_original(regs.ip + 1), p.addr + 1);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK(!registry_find(p.addr));
    CHECK(fake_text_is_original());
}

UNIT_TEST(a_post_handler_is_told_behind_the_copy)
{
    p.post_handler = post;
    probe("48 89 e5 c3");
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(regs.ip, (uintptr_t)p.site->step_slot);
    CHECK(fake_int3(&regs, regs.ip + 3));
    CHECK_EQ(behind, 1);
    CHECK_EQ(regs.ip, p.addr + 3);
}

UNIT_TEST(a_call_is_emulated)
{
    uint64_t *sp = (uint64_t *)regs.sp;

    probe("e8 10 00 00 00 c3");
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(regs.ip, p.addr + 5 + 16);
    CHECK_EQ(sp[-1], p.addr + 5);
}

UNIT_TEST(a_fault_in_the_copy_is_one_of_the_program)
{
    probe("48 8b 07 c3");
    CHECK(!fake_fault(&regs, 14, (uintptr_t)p.site->boost_slot));
    CHECK_EQ(regs.ip, p.addr);
}

UNIT_TEST(a_step_of_the_program_ends_behind_the_instruction)
{
    probe("48 89 e5 c3");
    regs.flags |= FLAGS_TF;
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(regs.ip, (uintptr_t)p.site->boost_slot);
    regs.ip += 3;
    regs.dr6 = 1 << 14;
    CHECK(!kprobe_debug_handler(&regs, plat_this_cpu()));
    CHECK_EQ(regs.ip, p.addr + 3);
}

/* ---- several ---- */

UNIT_TEST(two_at_one_address_share_a_breakpoint)
{
    struct kprobe q = { .pre_handler = pre };

    probe("90 c3");
    q.addr = p.addr;
    CHECK_EQ(register_kprobe(&q), 0);
    CHECK(p.site == q.site);
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(before, 2);
    CHECK_EQ(disable_kprobe(&p), 0);
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(before, 3);
    CHECK_EQ(unregister_kprobe(&q), 0);
    CHECK_EQ(byte_at(p.addr), 0x90);
    CHECK_EQ(enable_kprobe(&p), 0);
    CHECK_EQ(byte_at(p.addr), INSN_INT3);
}

UNIT_TEST(a_set_is_all_or_nothing)
{
    struct kprobe q = { 0 }, *both[] = { &p, &q };
    struct probe_reject why;

    p.addr = fake_function("fn", "48 89 e5 90 c3");
    q.addr = p.addr + 1;
    CHECK_EQ(register_kprobes_why(both, 2, &why), -EILSEQ);
    CHECK_EQ(why.index, 1);
    CHECK(fake_text_is_original());
    q.addr = p.addr + 3;
    CHECK_EQ(register_kprobes(both, 2), 0);
    CHECK_EQ(kprobes_switch(false), 0);
    CHECK(fake_text_is_original());
    CHECK_EQ(kprobes_switch(true), 0);
    CHECK_EQ(byte_at(p.addr), INSN_INT3);
    CHECK_EQ(byte_at(q.addr), INSN_INT3);
    CHECK_EQ(unregister_kprobes(both, 2), 0);
}

UNIT_TEST(no_probe_waits_for_text)
{
    p = (struct kprobe){ .symbol_name = "comes_later", .flags = KPROBE_FLAG_PENDING };
    CHECK_EQ(register_kprobe(&p), -ENOENT);
    CHECK(!p.site);
}

UNIT_TESTS_BETWEEN(start, end)
