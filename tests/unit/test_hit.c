/* test_hit.c - tests of the hit of a breakpoint: which site the engine finds, which
 * handlers it calls, and where the CPU goes on.
 */
#include "probes/core/registry.h"
#include "probes/jump/jump_site.h"
#include "probes/region/region.h"
#include "tests/unit/port_fake.h"

static struct probe_cpu *cpu;
static struct kprobe p;
static unsigned ran, ran_post;
static struct pt_regs regs; /* of the program; each test begins with fake_regs() */
static struct pt_regs seen, seen_post;
static int answer;           /* the pre-handler returns it */
static uintptr_t go_to;      /* the pre-handler sends the program there; 0: nowhere */
static unsigned long new_ax; /* the pre-handler sets ax to it; 0: it leaves ax alone */
static void (*inside)(void); /* both handlers call it; NULL: they call nothing */

static int pre(struct kprobe *kp, struct pt_regs *r)
{
    CHECK(kp == &p);
    ran++;
    seen = *r;
    if (go_to)
        r->ip = go_to;
    if (new_ax)
        r->ax = new_ax;
    if (inside)
        inside();
    return answer;
}

static void post(struct kprobe *kp, struct pt_regs *r, unsigned long flags)
{
    CHECK(kp == &p);
    CHECK_EQ(flags, 0);
    ran_post++;
    seen_post = *r;
    if (inside)
        inside();
}

/* start - start a machine, and put a probe on the first instruction of the function
 * @hex.
 */
static void start(const char *hex, bool with_post)
{
    cpu = plat_probe_cpu(0);
    ran = ran_post = 0;
    answer = 0;
    go_to = new_ax = 0;
    inside = NULL;
    p = (struct kprobe){ .pre_handler = pre, .post_handler = with_post ? post : NULL };
    p.addr = fake_function("fn", hex);
    CHECK_EQ(register_kprobe(&p), 0);
}

static void begin(void)
{
    fake_start();
    regs = fake_regs();
}

static void end(void)
{
    if (p.site)
        CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void check_same_but_ip(const struct pt_regs *got, const struct pt_regs *want)
{
    struct pt_regs a = *got, b = *want;

    a.ip = b.ip = 0;
    CHECK(memcmp(&a, &b, sizeof(a)) == 0);
}

/* ---- one hit ---- */

UNIT_TEST(the_handler_sees_the_program_and_the_copy_is_next)
{
    struct pt_regs before;

    start("48 89 e5 c3", false);
    before = regs;
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(ran, 1);
    check_same_but_ip(&seen, &before);
    CHECK_EQ(seen.ip, p.addr + 1);
    check_same_but_ip(&regs, &before);
    CHECK_EQ(regs.ip, (uintptr_t)p.site->boost_slot);
    CHECK_EQ(p.hits, 1);
    CHECK_EQ(p.nmissed, 0);
    CHECK_EQ(fake_totals().traps, 1);
    CHECK_EQ(cpu->ran[WAY_BOOST], 1);
    CHECK_EQ(cpu->depth, 0);
}

/* The entry of a function that the compiler has prepared: endbr64, and a nop. */
UNIT_TEST(at_an_entry_it_is_searched_for_once)
{
    start("f3 0f 1e fa 0f 1f 44 00 00 c3", false);
    for (unsigned n = 1; n <= 3; n++) {
        regs = fake_regs();
        CHECK(fake_int3(&regs, p.addr));
        CHECK_EQ(ran, n);
        CHECK_EQ(cpu->cache_misses, 1);
    }
}

UNIT_TEST(what_a_handler_changes_is_what_goes_on)
{
    start("ff d0 c3", false); /* call *%rax */
    new_ax = 0x1000;
    fake_int3(&regs, p.addr);
    CHECK_EQ(regs.ip, 0x1000);
    CHECK_EQ(regs.ax, 0x1000);
}

UNIT_TEST(non_zero_means_the_handler_has_set_ip)
{
    struct pt_regs before;

    start("e8 10 00 00 00 c3", true);
    before = regs;
    answer = 1;
    go_to = 0x4444;
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(regs.ip, 0x4444);
    CHECK_EQ(regs.sp, before.sp); /* nothing was pushed */
    CHECK_EQ(ran_post, 0);
    CHECK_EQ(cpu->depth, 0);
}

UNIT_TEST(a_disabled_probe_beside_an_enabled_one_is_not_called)
{
    struct kprobe other = { .pre_handler = NULL };

    start("90 c3", false);
    other.addr = p.addr;
    CHECK_EQ(register_kprobe(&other), 0);
    CHECK_EQ(disable_kprobe(&p), 0);
    fake_int3(&regs, p.addr);
    CHECK_EQ(ran, 0);
    CHECK_EQ(p.hits, 0);
    CHECK_EQ(other.hits, 1);
    CHECK_EQ(unregister_kprobe(&other), 0);
}

UNIT_TEST(no_post_handler_after_an_instruction_that_faulted)
{
    static uint64_t nowhere;

    start("ff 10 c3", true); /* call *(%rax) */
    regs.ax = (uintptr_t)&nowhere;
    fake_bad((uintptr_t)&nowhere, 8);
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(fake.raised, 1);
    CHECK_EQ(ran, 1);
    CHECK_EQ(ran_post, 0);
}

/* ---- int3s that are not the engine's, or no longer ---- */

UNIT_TEST(an_int3_that_has_vanished_is_tried_again)
{
    uintptr_t was_there;

    start("90 c3", false);
    was_there = fake_bytes_at("55");
    CHECK(fake_int3(&regs, was_there));
    CHECK_EQ(regs.ip, was_there);
    CHECK_EQ(cpu->retries, 1);
    CHECK_EQ(ran, 0);
}

UNIT_TEST(an_int3_in_memory_that_is_gone_is_no_hit)
{
    uintptr_t was_there;

    start("90 c3", false);
    was_there = fake_bytes_at("55");
    fake_bad(was_there, 1);
    CHECK(!fake_int3(&regs, was_there));
}

static struct pt_regs late;

static void hit_late(void)
{
    CHECK(fake_int3(&late, p.addr));
}

/* A CPU may have fetched the int3 before the site was disarmed, and trap after that.
 * Until the site leaves the registry, the engine handles this trap as a hit.
 */
UNIT_TEST(a_hit_that_comes_after_disarming_is_served)
{
    start("90 c3", false);
    late = fake_regs();
    fake.on_quiesce = hit_late;
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_EQ(fake_totals().traps, 1);
    CHECK(late.ip != p.addr + 1);
}

/* ---- nesting ---- */

static struct kprobe chain[8];
static unsigned chain_ran[8];
static size_t chain_length;

/* chain_pre - as the handler of a probe, hit the next probe of the chain. */
static int chain_pre(struct kprobe *kp, struct pt_regs *unused UNUSED)
{
    size_t i = (size_t)(kp - chain);
    struct pt_regs inner = fake_regs();

    CHECK_EQ(cpu->depth, i + 1);
    chain_ran[i]++;
    if (i + 1 < chain_length) {
        CHECK(fake_int3(&inner, chain[i + 1].addr));
        CHECK_EQ(inner.ip, (uintptr_t)chain[i + 1].site->boost_slot);
    }
    CHECK_EQ(cpu->depth, i + 1);
    return 0;
}

static void chain_start(size_t length)
{
    cpu = plat_probe_cpu(0);
    memset(chain, 0, sizeof(chain));
    memset(chain_ran, 0, sizeof(chain_ran));
    chain_length = length;
    for (size_t i = 0; i < length; i++) {
        chain[i].pre_handler = chain_pre;
        chain[i].addr = fake_function("fn", "90 c3");
        CHECK_EQ(register_kprobe(&chain[i]), 0);
    }
}

static void chain_end(void)
{
    for (size_t i = 0; i < chain_length; i++)
        CHECK_EQ(unregister_kprobe(&chain[i]), 0);
}

UNIT_TEST(four_handlers_may_be_active_at_once)
{
    chain_start(4);
    CHECK(fake_int3(&regs, chain[0].addr));
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(chain_ran[i], 1);
        CHECK_EQ(chain[i].hits, 1);
        CHECK_EQ(chain[i].nmissed, 0);
    }
    CHECK_EQ(cpu->depth, 0);
    chain_end();
}

UNIT_TEST(the_fifth_is_run_without_handlers_and_counted)
{
    chain_start(5);
    CHECK(fake_int3(&regs, chain[0].addr));
    CHECK_EQ(chain_ran[3], 1);
    CHECK_EQ(chain_ran[4], 0);
    CHECK_EQ(chain[4].hits, 0);
    CHECK_EQ(chain[4].nmissed, 1);
    CHECK_EQ(chain[4].missed[MISS_NESTED], 1);
    CHECK_EQ(cpu->missed[MISS_NESTED], 1);
    CHECK_EQ(fake_totals().traps, 5);
    chain_end();
}

static void hit_myself(void)
{
    struct pt_regs inner = fake_regs();

    CHECK(fake_int3(&inner, p.addr));
    CHECK_EQ(inner.ip, (uintptr_t)p.site->boost_slot);
}

UNIT_TEST(a_handler_that_runs_into_its_own_probe_is_a_recursion)
{
    start("90 c3", false);
    inside = hit_myself;
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(ran, 1);
    CHECK_EQ(p.hits, 1);
    CHECK_EQ(p.missed[MISS_RECURSION], 1);
    CHECK_EQ(cpu->missed[MISS_RECURSION], 1);
}

UNIT_TEST(a_recursion_does_not_step)
{
    start("90 c3", true);
    inside = hit_myself;
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(regs.ip, (uintptr_t)p.site->step_slot);
    CHECK_EQ(p.missed[MISS_RECURSION], 1);
}

UNIT_TEST(the_engines_own_code_is_not_hit_inside_a_hit)
{
    struct kprobe mine = { .addr = fake_function("engine", "90 c3") };

    fake_engine(mine.addr, mine.addr + 2);
    CHECK_EQ(register_kprobe(&mine), 0);
    cpu = plat_probe_cpu(0);
    CHECK(fake_int3(&regs, mine.addr));
    CHECK_EQ(mine.hits, 1);
    cpu->depth = 1; /* as if another hit were active on this CPU */
    CHECK(fake_int3(&regs, mine.addr));
    cpu->depth = 0;
    CHECK_EQ(mine.hits, 1);
    CHECK_EQ(mine.missed[MISS_RECURSION], 1);
    CHECK_EQ(unregister_kprobe(&mine), 0);
}

UNIT_TEST(little_stack_means_no_handlers)
{
    start("90 c3", false);
    fake.stack_left = PROBE_STACK_MIN - 1;
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(ran, 0);
    CHECK_EQ(p.missed[MISS_STACK], 1);
    CHECK_EQ(regs.ip, (uintptr_t)p.site->boost_slot);
    fake.stack_left = PROBE_STACK_MIN;
    fake_int3(&regs, p.addr);
    CHECK_EQ(ran, 1);
}

UNIT_TEST(before_the_cpu_is_ready_the_instruction_just_runs)
{
    uintptr_t foreign, gone;

    start("90 c3", false);
    foreign = fake_bytes_at("cc");
    gone = fake_bytes_at("90");
    fake.early = true;
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(regs.ip, (uintptr_t)p.site->boost_slot);
    CHECK_EQ(p.missed[MISS_EARLY], 1);
    CHECK_EQ(p.nmissed, 1);
    CHECK(!fake_int3(&regs, foreign));
    CHECK(fake_int3(&regs, gone));
    CHECK_EQ(regs.ip, gone);
    fake.early = false;
    CHECK_EQ(ran, 0);
}

UNIT_TEST(every_probe_of_a_missed_hit_is_told_except_disabled_ones)
{
    struct kprobe on = { 0 }, off = { .flags = KPROBE_FLAG_DISABLED };

    start("90 c3", false);
    on.addr = off.addr = p.addr;
    CHECK_EQ(register_kprobe(&on), 0);
    CHECK_EQ(register_kprobe(&off), 0);
    fake.stack_left = 0;
    fake_int3(&regs, p.addr);
    CHECK_EQ(p.nmissed, 1);
    CHECK_EQ(on.nmissed, 1);
    CHECK_EQ(off.nmissed, 0);
    CHECK_EQ(cpu->missed[MISS_STACK], 1);
    CHECK_EQ(unregister_kprobe(&on), 0);
    CHECK_EQ(unregister_kprobe(&off), 0);
}

/* ---- what a handler may not do ---- */

static int errors[8];

static void misbehave(void)
{
    struct kprobe other = { .addr = p.addr };
    struct kretprobe rp = { .kp.addr = p.addr };
    struct jprobe jp = { .kp.addr = p.addr };

    errors[0] = register_kprobe(&other);
    errors[1] = unregister_kprobe(&p);
    errors[2] = disable_kprobe(&p);
    errors[3] = enable_kprobe(&p);
    errors[4] = register_kretprobe(&rp);
    errors[5] = unregister_kretprobe(&rp);
    errors[6] = register_jprobe(&jp);
    errors[7] = unregister_jprobe(&jp);
}

UNIT_TEST(nothing_is_registered_or_taken_out_from_a_handler)
{
    start("90 c3", false);
    inside = misbehave;
    CHECK(fake_int3(&regs, p.addr));
    for (int i = 0; i < 8; i++)
        CHECK_EQ(errors[i], -EDEADLK);
    CHECK_EQ(ran, 1);
    inside = NULL;
}

/* ---- sti ---- */

UNIT_TEST(sti_runs_together_with_its_successor)
{
    struct kprobe behind = { 0 };

    start("fb 90 c3", false);
    fake_int3(&regs, p.addr);
    CHECK_EQ(regs.ip, (uintptr_t)site_pair(p.site)->slot);
    fake.stops_at = behind.addr = p.addr + 1;
    fake_int3(&regs, p.addr);
    CHECK_EQ(regs.ip,
             (uintptr_t)p.site->boost_slot); /* a debug register stops it behind */
    fake.stops_at = 0;
    CHECK_EQ(register_kprobe(&behind), 0);
    fake_int3(&regs, p.addr);
    /* The copy of sti runs alone, so that the probe behind it is hit. */
    CHECK_EQ(regs.ip, (uintptr_t)p.site->boost_slot);
    CHECK_EQ(disable_kprobe(&behind), 0);
    fake_int3(&regs, p.addr);
    CHECK_EQ(regs.ip, (uintptr_t)site_pair(p.site)->slot);
    CHECK_EQ(unregister_kprobe(&behind), 0);
}

/* The last probe behind the sti is being unregistered, but its jump is still in the text.
 * If the jump is one over a region, bytes of several instructions are not in the text,
 * and the copy of sti and its successor must not go on there.
 */
UNIT_TEST(sti_does_not_lead_into_a_region)
{
    static struct region region;
    struct kprobe behind = { 0 };

    start("fb 90 c3", false);
    behind.addr = p.addr + 1;
    CHECK_EQ(register_kprobe(&behind), 0);
    behind.site->probes = NULL;
    fake_int3(&regs, p.addr);
    CHECK_EQ(regs.ip, (uintptr_t)site_pair(p.site)->slot);
    jump_site(behind.site)->region = &region;
    behind.site->asks_resume = true;
    fake_int3(&regs, p.addr);
    CHECK_EQ(regs.ip, (uintptr_t)p.site->boost_slot);
    jump_site(behind.site)->region = NULL;
    behind.site->asks_resume = false;
    behind.site->probes = &behind;
    CHECK_EQ(unregister_kprobe(&behind), 0);
}

/* The engine applies both instructions to the image. So interrupts are enabled when the
 * engine loads the image, which is behind the call.
 */
UNIT_TEST(sti_is_on_the_image_together_with_a_call)
{
    uint64_t *sp = (uint64_t *)regs.sp;

    start("fb e8 10 00 00 00 c3", false);
    regs.flags &= ~FLAGS_IF;
    fake_int3(&regs, p.addr);
    CHECK_EQ(regs.ip, p.addr + 6 + 16);
    CHECK(regs.flags & FLAGS_IF);
    CHECK_EQ(regs.sp, (uintptr_t)(sp - 1));
    CHECK_EQ(sp[-1], p.addr + 6);
    regs = fake_regs();
    regs.flags |= FLAGS_TF; /* the program wants a #DB between sti and the call */
    fake_int3(&regs, p.addr);
    CHECK_EQ(regs.ip, (uintptr_t)p.site->boost_slot);
}

/* A hit by a jump has interrupts as the program has them, and an STI may be executed with
 * interrupts on. A search of the registry needs them off, because the table is freed when
 * each CPU has taken an interrupt.
 */
UNIT_TEST(the_successor_of_sti_is_searched_with_interrupts_off)
{
    unsigned before;

    start("fb 90 c3", false);
    before = fake.irq_saves;
    boost_sti(p.site, &regs);
    CHECK_EQ(fake.irq_saves - before, 1);
}

/* ---- totals ---- */

UNIT_TEST(totals_are_the_sum_over_all_cpus)
{
    struct probe_totals totals;

    start("90 c3", false);
    fake.cpus = 3;
    for (fake.this_cpu = 0; fake.this_cpu < 3; fake.this_cpu++)
        for (unsigned i = 0; i <= fake.this_cpu; i++)
            fake_int3(&regs, p.addr);
    fake.this_cpu = 0;
    fake.stack_left = 0;
    fake_int3(&regs, p.addr);
    fake_int3(&regs, fake_bytes_at("90"));
    account_totals(&totals);
    CHECK_EQ(totals.traps, 8);
    CHECK_EQ(totals.ran[WAY_BOOST], 6);
    CHECK_EQ(totals.missed[MISS_STACK], 1);
    CHECK_EQ(totals.retries, 1);
    CHECK_EQ(totals.cache_misses, 4);
    CHECK_EQ(p.hits, 6);
}

UNIT_TEST(causes_have_names)
{
    CHECK_STR(probe_miss_name(MISS_RECURSION), "recursion");
    CHECK_STR(probe_miss_name(MISS_NESTED), "nested");
    CHECK_STR(probe_miss_name(MISS_STACK), "stack");
    CHECK_STR(probe_miss_name(MISS_EARLY), "early");
    CHECK_STR(probe_miss_name(MISS_CAUSES), "?");
}

UNIT_TEST(a_light_handler_is_known_by_its_frame)
{
    struct kprobe other = { 0 };
    struct plat_light frame = { .probe = &other };

    start("90 c3", false);
    other.addr = fake_function("other", "90 c3");
    CHECK_EQ(register_kprobe(&other), 0);
    plat_this_cpu()->light = &frame;
    cpu->depth = 1;
    CHECK(fake_int3(&regs, p.addr));
    CHECK_EQ(ran, 1);
    CHECK(fake_int3(&regs, other.addr));
    CHECK_EQ(other.hits, 0);
    CHECK_EQ(other.missed[MISS_RECURSION], 1);
    CHECK(fault_in_handler(cpu) == &other);
    FAKE_DEPTHS.irq = 1;
    CHECK(!fault_in_handler(cpu));
    FAKE_DEPTHS.irq = 0;
    CHECK_EQ(cpu->depth, 1);
    cpu->depth = 0;
    plat_this_cpu()->light = NULL;
    CHECK_EQ(unregister_kprobe(&other), 0);
}

UNIT_TESTS_BETWEEN(begin, end)
