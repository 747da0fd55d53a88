/* test_fault.c - tests of faults in copies and in handlers. */
#include "tests/unit/port_fake.h"
#include "tests/unit/port_fake_parts.h"

#define PF 14
#define UD 6

static struct probe_cpu *cpu;
static struct kprobe a, b;
static struct pt_regs regs;
static char order[32];
static struct kprobe *bad_pre, *bad_too, *bad_post,
    *bad_fault;               /* the probe with such a handler */
static struct kprobe *solver; /* the probe with a fault handler that returns 1 */
static int trapnr_seen;
static uintptr_t ip_seen;

static void note(char ch)
{
    size_t len = strlen(order);

    order[len] = ch;
    order[len + 1] = '\0';
}

static char letter(const struct kprobe *p)
{
    return p == &a ? 'a' : 'b';
}

/* crash - fault as a handler does. Unless there is a fix-up, the engine ends the handler,
 * and this function does not return.
 */
static void crash(void)
{
    struct pt_regs fault = fake_regs();

    if (fake_fault(&fault, UD, 0x1234))
        return;
    note('!');
}

static int pre(struct kprobe *p, struct pt_regs *r UNUSED)
{
    note(letter(p));
    if (p == bad_pre || p == bad_too) {
        crash();
        note('-');
    }
    return 0;
}

static void post(struct kprobe *p, struct pt_regs *r UNUSED, unsigned long flags UNUSED)
{
    note((char)(letter(p) + 'A' - 'a'));
    if (p == bad_post) {
        crash();
        note('-');
    }
}

static int on_fault(struct kprobe *p, struct pt_regs *r, int trapnr)
{
    note(p == &a ? '1' : '2');
    trapnr_seen = trapnr;
    ip_seen = r->ip;
    if (p == bad_fault) {
        crash();
        note('-');
    }
    return p == solver;
}

static void start(const char *hex, bool with_post)
{
    cpu = plat_probe_cpu(0);
    regs = fake_regs();
    memset(order, 0, sizeof(order));
    bad_pre = bad_too = bad_post = bad_fault = solver = NULL;
    trapnr_seen = 0;
    a = (struct kprobe){ .pre_handler = pre, .fault_handler = on_fault };
    b = a;
    if (with_post)
        a.post_handler = b.post_handler = post;
    a.addr = b.addr = fake_function("fn", hex);
    CHECK_EQ(register_kprobe(&a), 0);
    CHECK_EQ(register_kprobe(&b), 0);
}

static void end(void)
{
    CHECK_EQ(cpu->depth, 0);
    if (b.site) {
        CHECK_EQ(unregister_kprobe(&a), 0);
        CHECK_EQ(unregister_kprobe(&b), 0);
    }
    fake_end();
}

/* ---- in a copy ---- */

UNIT_TEST(a_fault_in_a_stepped_copy_too_and_tf_is_gone)
{
    unsigned long flags;

    start("48 8b 00 c3", true);
    step_set_engine(STEP_TF);
    flags = regs.flags;
    fake_int3(&regs, a.addr);
    CHECK(regs.flags & FLAGS_TF);
    CHECK(!fake_fault(&regs, PF, regs.ip));
    CHECK_EQ(regs.ip, a.addr);
    CHECK_EQ(regs.flags, flags);
    CHECK_STR(order, "ab12");
}

UNIT_TEST(a_stepping_program_keeps_its_tf)
{
    start("48 8b 00 c3", true);
    regs.flags |= FLAGS_TF;
    fake_int3(&regs, a.addr);
    CHECK(!fake_fault(&regs, PF, regs.ip));
    CHECK(regs.flags & FLAGS_TF);
}

UNIT_TEST(a_fault_behind_sti_is_the_successors)
{
    start("fb 48 8b 00 c3", false);
    fake_int3(&regs, a.addr);
    CHECK(!fake_fault(&regs, PF, regs.ip + 1));
    CHECK_EQ(regs.ip, a.addr + 1);
}

UNIT_TEST(the_first_fault_handler_that_can_ends_it)
{
    start("48 8b 00 c3", false);
    solver = &a;
    fake_int3(&regs, a.addr);
    CHECK(fake_fault(&regs, PF, regs.ip));
    CHECK_STR(order, "ab1");
}

UNIT_TEST(a_disabled_probe_is_not_asked)
{
    start("48 8b 00 c3", false);
    CHECK_EQ(disable_kprobe(&a), 0);
    fake_int3(&regs, a.addr);
    fake_fault(&regs, PF, regs.ip);
    CHECK_STR(order, "b2");
}

UNIT_TEST(a_fault_handler_that_faults_is_tripped_and_the_next_is_asked)
{
    start("48 8b 00 c3", false);
    bad_fault = &a;
    solver = &b;
    fake_int3(&regs, a.addr);
    CHECK(fake_fault(&regs, PF, regs.ip));
    CHECK_STR(order, "ab12");
    CHECK(a.flags & KPROBE_FLAG_TRIPPED);
    CHECK(!(b.flags & KPROBE_FLAG_TRIPPED));
    CHECK_EQ(cpu->handler_faults, 1);
}

UNIT_TEST(a_fault_somewhere_else_is_not_the_engines)
{
    start("48 8b 00 c3", false);
    CHECK(!fake_fault(&regs, PF, a.addr));
    CHECK(!fake_fault(&regs, PF, 0x1234));
    CHECK_EQ(regs.ip, 0x1234);
    fake.early = true;
    CHECK(!fake_fault(&regs, PF, 0x1234));
    fake.early = false;
    CHECK_STR(order, "");
}

/* ---- in a handler ---- */

UNIT_TEST(a_handler_that_faults_has_had_its_last_hit)
{
    start("90 c3", false);
    bad_pre = &a;
    CHECK(fake_int3(&regs, a.addr));
    CHECK_STR(order, "a1b");
    CHECK_EQ(trapnr_seen, UD);
    CHECK_EQ(regs.ip, (uintptr_t)a.site->boost_slot);
    CHECK_EQ(a.flags, KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED);
    CHECK_EQ(b.flags, 0);
    CHECK_EQ(cpu->handler_faults, 1);
    CHECK_EQ(cpu->given_up.addr, a.addr);
    CHECK_EQ(cpu->given_up.vector, UD);
    CHECK(!fault_in_handler(cpu));
    fake_int3(&regs, a.addr);
    CHECK_STR(order, "a1bb");
}

UNIT_TEST(a_post_handler_too)
{
    start("eb 00 c3", true);
    bad_post = &b;
    CHECK(fake_int3(&regs, a.addr));
    CHECK_STR(order, "abAB2");
    CHECK(b.flags & KPROBE_FLAG_TRIPPED);
    CHECK_EQ(regs.ip, a.addr + 2);
}

UNIT_TEST(a_post_handler_in_a_step_of_the_program_owes_it_the_trap)
{
    start("90 c3", true);
    bad_post = &a;
    regs.flags |= FLAGS_TF;
    CHECK(fake_int3(&regs, a.addr));
    regs.ip = (uintptr_t)a.site->boost_slot + 1;
    regs.dr6 = 1ul << 14;
    fake_take(&regs, kprobe_debug_handler);
    CHECK_STR(order, "abA1B");
    CHECK_EQ(fake.raised_steps, 1);
    CHECK_EQ(fake.raised_ip, a.addr + 1);
}

UNIT_TEST(its_fault_handler_can_save_it)
{
    start("90 c3", false);
    bad_pre = solver = &a;
    CHECK(fake_int3(&regs, a.addr));
    CHECK_STR(order, "a1-b");
    CHECK_EQ(a.flags, 0);
    CHECK_EQ(cpu->handler_faults, 0);
}

UNIT_TEST(a_fault_handler_that_faults_does_not_save_it)
{
    start("90 c3", false);
    bad_pre = bad_fault = &a;
    bad_too = &b;
    CHECK(fake_int3(&regs, a.addr));
    CHECK_STR(order, "a1b2"); /* the fault handler of the next one is asked */
    CHECK(a.flags & b.flags & KPROBE_FLAG_TRIPPED);
}

UNIT_TEST(a_fault_with_a_fix_up_is_left_to_it)
{
    start("90 c3", false);
    bad_pre = &a;
    fake_fixup(0x1234);
    CHECK(fake_int3(&regs, a.addr));
    CHECK_STR(order, "a!-b"); /* the engine leaves the fault to the kernel's fix-up */
    CHECK_EQ(a.flags, 0);
}

UNIT_TEST(an_nmi_that_faults_does_not_trip_the_handler_it_interrupted)
{
    start("90 c3", false);
    cpu->hits[0] = (struct probe_hit){ .site = a.site, .running = &a };
    cpu->depth = 1;
    FAKE_DEPTHS.nmi = 1;
    CHECK(!fake_fault(&regs, PF, 0x1234));
    FAKE_DEPTHS.nmi = 0;
    cpu->depth = 0;
    CHECK_EQ(a.flags, 0);
}

/* This also holds for a handler that itself runs in an interrupt, and has enabled
 * interrupts.
 */
UNIT_TEST(an_interrupt_that_faults_does_not_trip_the_handler_it_interrupted)
{
    start("90 c3", false);
    for (unsigned depth = 0; depth < 2; depth++) {
        cpu->hits[0] = (struct probe_hit){ .site = a.site, .running = &a };
        cpu->hits[0].found.irq = depth;
        cpu->depth = 1;
        FAKE_DEPTHS.irq = depth + 1;
        CHECK(!fake_fault(&regs, PF, 0x1234));
        FAKE_DEPTHS.irq = depth;
        CHECK(fault_in_handler(cpu) == &a);
    }
    FAKE_DEPTHS.irq = 0;
    cpu->depth = 0;
    CHECK_EQ(a.flags, 0);
}

/* ---- handlers that run probed code ---- */

static struct kprobe helper;
static bool helper_faulted;
static uint64_t unmapped;

static int calls_helper(struct kprobe *p UNUSED, struct pt_regs *unused UNUSED)
{
    struct pt_regs inner = fake_regs();

    inner.ax = (uintptr_t)&unmapped;
    CHECK(fake_int3(&inner, helper.addr));
    if (!fake.raised) /* the helper has a copy, and the copy faults when it is run */
        fake_fault(&inner, PF, inner.ip);
    helper_faulted = true;
    return 0;
}

static void helper_start(const char *hex)
{
    cpu = plat_probe_cpu(0);
    regs = fake_regs();
    helper_faulted = false;
    fake_bad((uintptr_t)&unmapped, sizeof(unmapped));
    memset(order, 0, sizeof(order));
    bad_pre = bad_too = bad_post = bad_fault = solver = NULL;
    a = (struct kprobe){ .pre_handler = calls_helper };
    helper = (struct kprobe){ .pre_handler = pre };
    a.addr = fake_function("fn", "90 c3");
    helper.addr = fake_function("helper", hex);
    CHECK_EQ(register_kprobe(&a), 0);
    CHECK_EQ(register_kprobe(&helper), 0);
}

static void helper_end(void)
{
    CHECK_EQ(cpu->depth, 0);
    CHECK_EQ(unregister_kprobe(&a), 0);
    CHECK_EQ(unregister_kprobe(&helper), 0);
}

/* The fault is in the copy of an instruction of `helper`, which a handler has called. */
UNIT_TEST(a_copy_that_faults_for_a_handler_trips_the_handler)
{
    helper_start("48 8b 00 c3");
    CHECK(fake_int3(&regs, a.addr));
    CHECK(!helper_faulted);
    CHECK(a.flags & KPROBE_FLAG_TRIPPED);
    CHECK_EQ(helper.flags, 0);
    CHECK_EQ(regs.ip, (uintptr_t)a.site->boost_slot);
    helper_end();
}

UNIT_TEST(unless_the_original_has_a_fix_up)
{
    helper_start("48 8b 00 c3");
    fake_fixup(helper.addr);
    CHECK(fake_int3(&regs, a.addr));
    CHECK(helper_faulted);
    CHECK_EQ(a.flags, 0);
    helper_end();
}

UNIT_TEST(an_emulated_load_that_faults_for_a_handler_does_too)
{
    for (int with_post = 0; with_post < 2; with_post++) {
        struct kprobe more = { .post_handler = post };

        helper_start("ff 20 c3"); /* jmp *(%rax) */
        more.addr = helper.addr;
        if (with_post)
            CHECK_EQ(register_kprobe(&more), 0);
        CHECK(fake_int3(&regs, a.addr));
        CHECK_EQ(fake.raised, with_post + 1);
        CHECK(!helper_faulted);
        CHECK(a.flags & KPROBE_FLAG_TRIPPED);
        CHECK_STR(order, "b"); /* the helper's pre-handler, no post-handler */
        if (with_post)
            CHECK_EQ(unregister_kprobe(&more), 0);
        helper_end();
    }
}

UNIT_TESTS_BETWEEN(fake_start, end)
