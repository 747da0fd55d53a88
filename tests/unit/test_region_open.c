/* test_region_open.c - tests of hits, steps and faults while a region is open. */
#include "probes/jump/detour.h"
#include "probes/jump/jump.h"
#include "probes/jump/jump_site.h"
#include "probes/region/region.h"
#include "tests/unit/port_fake.h"

static struct probe_reject why;
static uintptr_t fn;
static struct kprobe p, q; /* q is elsewhere */
static struct pt_regs regs, inner;
static unsigned posts;
static uintptr_t post_ip, go_to;

static void note_post(struct kprobe *probe UNUSED, struct pt_regs *r,
                      unsigned long flags UNUSED)
{
    posts++;
    post_ip = r->ip;
}

static int set_ip(struct kprobe *probe UNUSED, struct pt_regs *r)
{
    r->ip = go_to;
    return 1;
}

static void probe_start(const char *hex)
{
    fn = fake_function("fn", hex);
    p = (struct kprobe){ .addr = fn };
    posts = 0;
}

static void end(void)
{
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void open_region(void)
{
    plat_lock(PLAT_PROBES);
    CHECK_EQ(region_prepare(p.site, &why), 0);
    plat_sync_cores();
    region_open(p.site);
    plat_unlock(PLAT_PROBES);
}

static void close_region(void)
{
    plat_lock(PLAT_PROBES);
    if (region_is_open(p.site))
        region_close(p.site);
    plat_quiesce();
    detour_release(p.site);
    region_release(p.site);
    plat_unlock(PLAT_PROBES);
}

static void hit(void)
{
    regs = fake_regs();
    CHECK(fake_int3(&regs, fn));
}

UNIT_TEST(a_boosted_hit_runs_the_copies)
{
    uint8_t *own;

    probe_start("55 48 89 e5 41 57 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    own = p.site->boost_slot;
    open_region();
    hit();
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell);
    CHECK_BYTES((uint8_t *)regs.ip, "55 48 89 e5 41 57 e9");
    close_region();
    hit();
    CHECK_EQ(regs.ip, (uintptr_t)own);
    CHECK(!region_is_open(p.site));
}

UNIT_TEST(behind_a_step_it_goes_on_at_the_copies)
{
    probe_start("55 48 89 e5 41 57 90 c3");
    p.post_handler = note_post;
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    hit();
    CHECK_EQ(regs.ip, (uintptr_t)p.site->step_slot);
    CHECK(fake_int3(&regs, (uintptr_t)p.site->step_slot + 1));
    CHECK_EQ(posts, 1);
    CHECK_EQ(post_ip, fn + 1);
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell + 1);
    close_region();
}

UNIT_TEST(behind_an_emulated_one_too)
{
    probe_start("74 10 31 c0 31 c9 c3"); /* je */
    p.post_handler = note_post;
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    regs = fake_regs();
    regs.flags &= ~FLAGS_ZF;
    CHECK(fake_int3(&regs, fn));
    CHECK_EQ(post_ip, fn + 2);
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell +
                          jump_site(p.site)->region->copies[1]);
    regs.flags |= FLAGS_ZF;
    CHECK(fake_int3(&regs, fn));
    CHECK_EQ(regs.ip, fn + 18);
    close_region();
}

UNIT_TEST(a_thread_sent_under_the_jump_goes_to_the_copies)
{
    probe_start("55 48 89 e5 41 57 90 c3");
    p.pre_handler = set_ip;
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    go_to = fn + 4;
    hit();
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell + 4);
    go_to = fn + 6;
    hit();
    CHECK_EQ(regs.ip, fn + 6);
    close_region();
    go_to = fn + 4;
    hit();
    CHECK_EQ(regs.ip, fn + 4);
}

/* ---- other sites than that of the region ---- */

static void set_ip_behind(struct kprobe *probe UNUSED, struct pt_regs *r,
                          unsigned long flags UNUSED)
{
    r->ip = go_to;
}

static int set_ip_and_go_on(struct kprobe *probe, struct pt_regs *r, int trap UNUSED)
{
    return set_ip(probe, r);
}

static void other_start(const char *hex)
{
    probe_start("55 48 8b 07 41 57 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    q = (struct kprobe){ .addr = fake_function("other", hex) };
    go_to = fn + 4;
}

static void other_end(void)
{
    CHECK_EQ(unregister_kprobe(&q), 0);
    close_region();
}

static void other_hit(void)
{
    regs = fake_regs();
    CHECK(fake_int3(&regs, q.addr));
}

UNIT_TEST(a_handler_elsewhere_sends_to_the_copies)
{
    uintptr_t copy;

    other_start("48 89 c3 c3");
    copy = (uintptr_t)jump_site(p.site)->region->cell + 4;
    q.pre_handler = set_ip;
    CHECK_EQ(register_kprobe(&q), 0);
    other_hit();
    CHECK_EQ(regs.ip, copy);
    kprobe_jump_leave(&regs, q.site, plat_probe_cpu(0), true);
    CHECK_EQ(regs.ip, copy);
    regs.ip = go_to;
    kprobe_jump_leave(&regs, q.site, plat_probe_cpu(0), true);
    CHECK_EQ(regs.ip, copy);
    for (go_to = fn; go_to < fn + 9; go_to += go_to == fn ? 5 : 1) {
        other_hit();
        CHECK_EQ(regs.ip, go_to);
    }
    region_close(p.site);
    go_to = fn + 4;
    other_hit();
    CHECK_EQ(regs.ip, go_to);
    other_end();
}

UNIT_TEST(a_post_handler_elsewhere_too)
{
    other_start("48 89 c3 c3");
    q.post_handler = set_ip_behind;
    CHECK_EQ(register_kprobe(&q), 0);
    other_hit();
    CHECK(fake_int3(&regs, (uintptr_t)q.site->step_slot + 3));
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell + 4);
    CHECK(kprobe_post_handler(&regs, q.site, plat_probe_cpu(0)));
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell + 4);
    other_end();
}

UNIT_TEST(a_fault_handler_elsewhere_too)
{
    other_start("48 8b 07 c3");
    q.fault_handler = set_ip_and_go_on;
    CHECK_EQ(register_kprobe(&q), 0);
    regs = fake_regs();
    CHECK(fake_fault(&regs, 14, (uintptr_t)q.site->boost_slot));
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell + 4);
    other_end();
}

static int fault_in_region(struct kprobe *probe UNUSED, struct pt_regs *r UNUSED)
{
    inner = fake_regs();
    CHECK(fake_fault(&inner, 14, (uintptr_t)jump_site(p.site)->region->cell + 1));
    return 0;
}

static int try_again(struct kprobe *probe UNUSED, struct pt_regs *r, int trap UNUSED)
{
    CHECK_EQ(r->ip, fn + 1);
    return 1;
}

UNIT_TEST(a_second_try_is_made_in_the_copies)
{
    other_start("48 89 c3 c3");
    q.pre_handler = fault_in_region;
    q.fault_handler = try_again;
    CHECK_EQ(register_kprobe(&q), 0);
    other_hit();
    CHECK_EQ(inner.ip, (uintptr_t)jump_site(p.site)->region->cell + 1);
    other_end();
}

UNIT_TEST(a_fault_in_a_copy_is_where_its_original_lies)
{
    probe_start("55 48 8b 07 41 57 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    regs = fake_regs();
    CHECK(!fake_fault(&regs, 14, (uintptr_t)jump_site(p.site)->region->cell + 1));
    CHECK_EQ(regs.ip, fn + 1);
    CHECK_EQ(copy_original((uintptr_t)jump_site(p.site)->region->cell), fn);
    CHECK_EQ(copy_original((uintptr_t)jump_site(p.site)->region->cell + 4), fn + 4);
    CHECK_EQ(copy_original((uintptr_t)jump_site(p.site)->region->cell + 6), fn + 6);
    close_region();
}

/* step_from - Return: true: the engine has raised the #DB of the step itself. */
static bool step_from(uintptr_t ip)
{
    regs = fake_regs();
    regs.flags |= FLAGS_TF;
    regs.ip = ip;
    regs.dr6 = 1ul << 14;
    fake.raised_steps = 0;
    return kprobe_debug_handler(&regs, plat_this_cpu());
}

UNIT_TEST(a_program_that_steps_itself_sees_the_originals)
{
    uintptr_t cell;

    probe_start("55 48 89 e5 41 57 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    cell = (uintptr_t)jump_site(p.site)->region->cell;
    for (size_t i = 0; i < 3; i++) {
        static const unsigned off[] = { 1, 4, 6 };

        CHECK(step_from(cell + off[i]));
        CHECK_EQ(fake.raised_steps, 1);
        CHECK_EQ(regs.ip, i < 2 ? cell + off[i] : fn + 6);
    }
    close_region();
}

UNIT_TEST(a_post_handler_of_its_step_sends_it_to_the_copies)
{
    other_start("48 89 c3 c3");
    q.post_handler = set_ip_behind;
    CHECK_EQ(register_kprobe(&q), 0);
    CHECK(step_from((uintptr_t)q.site->boost_slot + 3));
    CHECK_EQ(fake.raised_steps, 1);
    CHECK_EQ(fake.raised_ip, fn + 4);
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell + 4);
    other_end();
}

UNIT_TEST(it_sees_each_iteration_in_either_copy)
{
    uintptr_t copies[2];

    probe_start("f3 a4 48 89 e5 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    copies[0] = (uintptr_t)jump_site(p.site)->region->cell;
    copies[1] = (uintptr_t)p.site->boost_slot;
    for (size_t i = 0; i < 2; i++) {
        CHECK(step_from(copies[i]));
        CHECK_EQ(fake.raised_steps, 1);
        CHECK_EQ(fake.raised_ip, fn);
        CHECK_EQ(regs.ip, copies[i]);
    }
    close_region();
}

/* A thread can be in the copies that are not used any more, because there was no
 * quiescence since the region was opened, or closed.
 */
UNIT_TEST(a_thread_in_the_other_copy_is_where_its_original_lies)
{
    uintptr_t own, cell;

    probe_start("55 48 89 e5 41 57 90 c3");
    p.post_handler = note_post; /* so the detour has code in front of its copy */
    CHECK_EQ(register_kprobe(&p), 0);
    own = (uintptr_t)p.site->boost_slot;
    open_region();
    cell = (uintptr_t)jump_site(p.site)->region->cell;
    plat_lock(PLAT_PROBES);
    CHECK_EQ(detour_prepare(p.site, &why), 0);
    plat_unlock(PLAT_PROBES);
    CHECK_EQ(copy_original(own), fn);
    CHECK_EQ(copy_original(own + 1), fn + 1);
    plat_lock(PLAT_PROBES);
    region_close(p.site);
    plat_unlock(PLAT_PROBES);
    CHECK_EQ(copy_original(cell), fn);
    CHECK_EQ(copy_original(cell + 1), fn + 1);
    CHECK(!step_from(cell + 1));
    CHECK_EQ(fake.raised_steps, 0);
    CHECK_EQ(regs.ip, fn + 1);
    close_region();
}

UNIT_TEST(one_instruction_needs_no_copies)
{
    probe_start("48 b8 01 02 03 04 05 06 07 08 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    CHECK(!jump_site(p.site)->region->cell);
    hit();
    CHECK_EQ(regs.ip, (uintptr_t)p.site->boost_slot);
    CHECK_EQ(region_behind(p.site), fn + 10);
    close_region();
}

UNIT_TEST(a_refusal_leaves_nothing)
{
    probe_start("55 48 89 e5 41 57 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    fake_target(fn + 1);
    plat_lock(PLAT_PROBES);
    CHECK_EQ(region_prepare(p.site, &why), -EOPNOTSUPP);
    CHECK_EQ(why.reason, PROBE_REGION_TARGET);
    CHECK(!region_is_open(p.site));
    plat_unlock(PLAT_PROBES);
}

UNIT_TEST(no_memory_leaves_nothing)
{
    unsigned n = 0;
    int err;

    probe_start("55 48 89 e5 41 57 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    plat_lock(PLAT_PROBES);
    do {
        region_free(p.site);
        boundary_forget();
        fake_fail_at(++n);
        err = region_prepare(p.site, &why);
        CHECK_EQ(err, fake_failed() ? -ENOMEM : 0);
        CHECK_EQ(!jump_site(p.site)->region || !jump_site(p.site)->region->cell,
                 fake_failed());
    } while (fake_failed());
    CHECK(n > 2);
    region_release(p.site);
    plat_unlock(PLAT_PROBES);
}

UNIT_TESTS_BETWEEN(fake_start, end)
