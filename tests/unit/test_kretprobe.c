/* test_kretprobe.c - tests of return probes: which return belongs to which call. */
#include "probes/core/registry.h"
#include "probes/jump/jump.h"
#include "probes/returns/kretprobe.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/shadow.h"
#include "probes/text/text_part.h"
#include "tests/unit/port_fake.h"
#include "tests/unit/port_fake_parts.h"

#define LEA "48 8d 7f 01 c3" /* lea rdi, [rdi + 1]; ret */
#define RETURN_ADDR ((uintptr_t)kretprobe_trampoline + 0x1000)

/* One letter for each call of a handler, and the return address that the handler saw. */
static char order[64];
static uintptr_t seen_ret[64];

static void note(char letter, uintptr_t ret)
{
    size_t len = strlen(order);

    if (len + 1 >= sizeof(order))
        return;
    order[len] = letter;
    seen_ret[len] = ret;
}

static int entry_skips;

static int on_entry(struct kretprobe_instance *ri, struct pt_regs *r UNUSED)
{
    note('e', ri->ret_addr);
    return entry_skips;
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *at)
{
    CHECK_EQ(at->ip, ri->ret_addr);
    note('r', ri->ret_addr);
    return 0;
}

static int on_return_too(struct kretprobe_instance *ri, struct pt_regs *r UNUSED)
{
    note('R', ri->ret_addr);
    return 0;
}

/* The probes of a test, at f() and g(); end() unregisters those that are registered. */
static struct kretprobe rp, other;
static struct pt_regs regs;

static void start(void)
{
    fake_start();
    memset(order, 0, sizeof(order));
    entry_skips = 0;
    rp = other = (struct kretprobe){ .handler = on_return };
}

static void end(void)
{
    if (other.kp.site)
        CHECK_EQ(unregister_kretprobe(&other), 0);
    if (rp.kp.site)
        CHECK_EQ(unregister_kretprobe(&rp), 0);
    fake_end();
}

static void probe_f(void)
{
    rp.kp.addr = fake_function("f", LEA);
    CHECK_EQ(register_kretprobe(&rp), 0);
}

static void probe_f_and_g(kretprobe_handler_t at_g)
{
    probe_f();
    other.kp.addr = fake_function("g", LEA);
    other.handler = at_g;
    CHECK_EQ(register_kretprobe(&other), 0);
}

/* enter - jump to a probed function. Its return address is at @regs->sp already. */
static void enter(const struct kretprobe *at)
{
    CHECK(fake_int3(&regs, at->kp.addr));
}

/* call_at - call a probed function with @bytes more on the stack than the test has. */
static void call_at(size_t bytes, const struct kretprobe *at, uintptr_t ret)
{
    regs = fake_regs();
    regs.sp -= bytes;
    *(uintptr_t *)regs.sp = ret;
    enter(at);
}

static void call(void)
{
    call_at(0, &rp, RETURN_ADDR);
}

/* return_at - let the function return that was called with @bytes more on the stack. */
static bool return_at(size_t bytes)
{
    regs = fake_regs();
    regs.sp -= bytes;
    return fake_return(&regs);
}

/* recurse - @count calls of f(), 16 bytes apart, and their returns.
 * Return: how many of the returns were followed. Each goes where it should.
 */
static unsigned recurse(unsigned count)
{
    unsigned followed = 0;

    for (unsigned i = 0; i < count; i++)
        call_at(16 * i, &rp, RETURN_ADDR + i);
    for (unsigned i = count; i-- > 0;) {
        followed += return_at(16 * i);
        CHECK_EQ(regs.ip, RETURN_ADDR + i);
    }
    return followed;
}

/* ---- pairing ---- */

UNIT_TEST(recursion_returns_in_the_opposite_order)
{
    probe_f();
    CHECK_EQ(recurse(10), 10);
    CHECK_STR(order, "rrrrrrrrrr");
}

UNIT_TEST(a_tail_call_returns_innermost_first)
{
    probe_f_and_g(on_return_too);
    call();
    enter(&other);
    CHECK(fake_return(&regs));
    CHECK_STR(order, "Rr");
    CHECK_EQ(seen_ret[0], RETURN_ADDR);
    CHECK_EQ(seen_ret[1], RETURN_ADDR);
    CHECK_EQ(regs.ip, RETURN_ADDR);
}

static char depths[32];

static int note_depth(struct kretprobe_instance *ri UNUSED, struct pt_regs *r UNUSED)
{
    snprintf(depths + strlen(depths), sizeof(depths) - strlen(depths), "%d ",
             kretprobe_depth(rp.kp.addr));
    return 0;
}

/* g calls f, f calls itself, and the inner f ends with a jump to g. */
UNIT_TEST(the_depth_of_a_call_within_another)
{
    struct kretprobe too = { .handler = note_depth };

    rp.handler = note_depth;
    depths[0] = '\0';
    probe_f_and_g(note_depth);
    too.kp.addr = rp.kp.addr;
    CHECK_EQ(register_kretprobe(&too), 0);
    call_at(0, &other, RETURN_ADDR);
    call_at(16, &rp, RETURN_ADDR + 1);
    call_at(32, &rp, RETURN_ADDR + 2);
    enter(&other);
    CHECK(fake_return(&regs));
    CHECK(return_at(16));
    CHECK(return_at(0));
    CHECK_STR(depths, "2 1 1 0 0 -1 ");
    CHECK_EQ(unregister_kretprobe(&too), 0);
}

UNIT_TEST(sibling_calls_in_a_circle_are_one_instance)
{
    probe_f_and_g(on_return_too);
    call();
    for (unsigned i = 0; i < 100; i++) {
        enter(&other);
        enter(&rp);
    }
    CHECK(fake_return(&regs));
    CHECK_STR(order, "Rr");
    CHECK_EQ(rp.coalesced, 100);
    CHECK_EQ(other.coalesced, 99);
    CHECK_EQ(rp.nmissed + other.nmissed, 0);
}

/* ---- frames that never return ---- */

UNIT_TEST(what_was_left_by_a_jump_is_dropped_by_a_shallower_call)
{
    probe_f();
    for (unsigned i = 1; i <= 3; i++)
        call_at(32 * i, &rp, RETURN_ADDR + i);
    call_at(32, &rp, RETURN_ADDR + 9);
    CHECK_EQ(rp.dropped, 3);
    CHECK(fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR + 9);
    CHECK_STR(order, "r");
}

UNIT_TEST(what_was_left_by_a_jump_is_dropped_by_a_shallower_return)
{
    probe_f();
    call();
    call_at(64, &rp, RETURN_ADDR + 1);
    CHECK(return_at(0));
    CHECK_EQ(regs.ip, RETURN_ADDR);
    CHECK_EQ(rp.dropped, 1);
    CHECK_STR(order, "r");
}

UNIT_TEST(a_return_without_its_call_is_a_bug)
{
    probe_f();
    *(uintptr_t *)fake_regs().sp = (uintptr_t)kretprobe_trampoline;
    CHECK(FAKE_BUG(return_at(0)));
}

/* ---- what the entry decides ---- */

UNIT_TEST(an_entry_handler_may_skip_the_return)
{
    entry_skips = 1;
    rp.entry_handler = on_entry;
    probe_f();
    call();
    CHECK(!fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR);
    CHECK_STR(order, "e");
    CHECK_EQ(rp.nmissed, 0);
}

static int keep_depth(struct kretprobe_instance *ri, struct pt_regs *at)
{
    *(uint64_t *)ri->data = at->sp;
    return 0;
}

static unsigned right;

static int check_depth(struct kretprobe_instance *ri, struct pt_regs *at)
{
    right += *(uint64_t *)ri->data == at->sp - 8;
    return 0;
}

UNIT_TEST(each_instance_has_data_of_its_own)
{
    right = 0;
    rp = (struct kretprobe){ .entry_handler = keep_depth,
                             .handler = check_depth,
                             .data_size = sizeof(uint64_t) };
    probe_f();
    CHECK_EQ(recurse(20), 20);
    CHECK_EQ(right, 20);
}

/* Of 8 KiB for data the largest instance takes more than a half, and the other one exactly
 * a half.
 */
UNIT_TEST(without_room_for_data_the_return_is_missed)
{
    static const size_t sizes[] = { KRETPROBE_DATA_MAX,
                                    4096 - sizeof(struct kretprobe_instance) };

    for (unsigned most = 1; most <= 2; most++) {
        rp = (struct kretprobe){ .handler = on_return, .data_size = sizes[most - 1] };
        probe_f();
        CHECK_EQ(recurse(4), most);
        CHECK_EQ(rp.missed[KRETPROBE_MISS_DATA], 4 - most);
        CHECK_EQ(rp.nmissed, 4 - most);
        CHECK_EQ(rp.kp.nmissed, 0);
        CHECK_EQ(unregister_kretprobe(&rp), 0);
    }
}

UNIT_TEST(maxactive_limits_the_instances)
{
    rp.maxactive = 2;
    probe_f();
    for (unsigned round = 0; round < 3; round++)
        CHECK_EQ(recurse(3), 2);
    CHECK_EQ(rp.missed[KRETPROBE_MISS_MAXACTIVE], 3);
    CHECK_STR(order, "rrrrrr");
}

UNIT_TEST(another_stack_is_not_touched)
{
    uint64_t elsewhere[2] = { RETURN_ADDR };

    probe_f();
    regs = fake_regs();
    regs.sp = (uintptr_t)elsewhere;
    enter(&rp);
    CHECK(!fake_return(&regs));
    CHECK_EQ(rp.missed[KRETPROBE_MISS_STACK], 1);
}

UNIT_TEST(a_return_address_out_of_reach_is_left_alone)
{
    probe_f();
    call_at(0, &rp, RETURN_ADDR + (1ul << 32));
    CHECK(!fake_return(&regs));
    CHECK_EQ(rp.missed[KRETPROBE_MISS_FAR], 1);
}

static int ignore(struct kretprobe_instance *ri UNUSED, struct pt_regs *r UNUSED)
{
    return 0;
}

/* fill_stack - call f() every @step bytes, on the whole stack. Return: its length. */
static size_t fill_stack(size_t step, uintptr_t *top)
{
    size_t len = fake_stack_area(0, top);

    rp.handler = other.handler = ignore;
    for (uintptr_t sp = *top - step; sp >= *top - len; sp -= step)
        call_at(fake_regs().sp - sp, &rp, RETURN_ADDR);
    return len;
}

UNIT_TEST(the_shadow_holds_an_entry_for_every_16_bytes)
{
    uintptr_t top;
    size_t len;

    probe_f();
    len = fill_stack(16, &top);
    CHECK_EQ(rp.nmissed, 0);
    for (regs.sp = top - len; regs.sp < top; regs.sp += 8)
        CHECK(fake_return(&regs));
}

UNIT_TEST(closer_calls_than_that_are_missed_and_counted)
{
    uintptr_t top;
    size_t len;

    probe_f();
    len = fill_stack(8, &top);
    CHECK_EQ(rp.missed[KRETPROBE_MISS_FULL], len / 16);
    for (uintptr_t sp = top - len; sp < top; sp += 8) {
        regs.sp = sp;
        CHECK_EQ(fake_return(&regs), top - sp <= len / 2);
        CHECK_EQ(regs.ip, RETURN_ADDR);
    }
}

UNIT_TEST(each_probe_of_a_function_takes_an_entry)
{
    uintptr_t top;
    size_t len;

    probe_f();
    other.kp.addr = rp.kp.addr;
    CHECK_EQ(register_kretprobe(&other), 0);
    len = fill_stack(16, &top);
    CHECK_EQ(rp.missed[KRETPROBE_MISS_FULL] + other.missed[KRETPROBE_MISS_FULL],
             len / 16);
    for (uintptr_t sp = top - len; sp < top; sp += 16) {
        regs.sp = sp;
        CHECK_EQ(fake_return(&regs), top - sp <= len / 2);
        CHECK_EQ(regs.ip, RETURN_ADDR);
    }
}

UNIT_TEST(an_nmi_has_a_shadow_of_its_own)
{
    uintptr_t top;

    probe_f();
    call();
    FAKE_DEPTHS.nmi = 1;
    fake_stack_area(1, &top);
    call_at(fake_regs().sp - (top - 64), &rp, RETURN_ADDR + 1);
    CHECK(fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR + 1);
    FAKE_DEPTHS.nmi = 0;
    CHECK(return_at(0));
    CHECK_EQ(regs.ip, RETURN_ADDR);
    CHECK_STR(order, "rr");
}

/* ---- coming and going ---- */

/* The unregistration of the other probe frees the holder that the call needed. */
UNIT_TEST(calls_under_way_outlive_their_probe)
{
    size_t blocks;

    probe_f_and_g(on_return);
    call();
    blocks = fake.blocks;
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    memset(&rp, 0xa5, sizeof(rp)); /* a call of its handler would crash from now on */
    CHECK(fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR);
    CHECK_STR(order, "");
    CHECK(fake.blocks < blocks);
    rp.kp.site = NULL;
}

UNIT_TEST(a_thread_that_ends_leaves_nothing)
{
    probe_f();
    call();
    fake_shadow_end();
    CHECK_EQ(fake.irqs_off, 0);
    CHECK_STR(order, "");
}

static int with_irqs_off(struct kretprobe_instance *ri, struct pt_regs *at)
{
    CHECK_EQ(fake.irqs_off, 1);
    return on_return(ri, at);
}

UNIT_TEST(a_handler_runs_with_interrupts_off_on_request)
{
    rp.kp.flags = KPROBE_FLAG_IRQS_OFF;
    rp.handler = with_irqs_off;
    probe_f();
    call();
    CHECK(fake_return(&regs));
    CHECK_STR(order, "r");
}

UNIT_TEST(with_kprobes_off_as_a_whole_it_sees_no_return)
{
    probe_f();
    call();
    CHECK_EQ(kprobes_switch(false), 0);
    CHECK(fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR);
    CHECK_EQ(rp.missed[KRETPROBE_MISS_RETURN], 1);
    CHECK_EQ(kprobes_switch(true), 0);
    CHECK_EQ(recurse(1), 1);
    CHECK_STR(order, "r");
}

UNIT_TEST(a_disabled_one_sees_nothing)
{
    rp.entry_handler = on_entry;
    probe_f();
    call();
    CHECK_EQ(disable_kretprobe(&rp), 0);
    CHECK(fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR);
    CHECK_STR(order, "e");
    CHECK_EQ(rp.missed[KRETPROBE_MISS_RETURN], 1);
    CHECK_EQ(enable_kretprobe(&rp), 0);
    call();
    CHECK(fake_return(&regs));
    CHECK_STR(order, "eer");
}

static int fault_here(struct kretprobe_instance *ri UNUSED, struct pt_regs *r UNUSED)
{
    struct pt_regs here = fake_regs();

    note('f', 0);
    fake_fault(&here, 14, 0x1234);
    note('!', 0); /* not reached */
    return 0;
}

UNIT_TEST(a_handler_that_faults_has_had_its_last_return)
{
    probe_f_and_g(fault_here);
    for (unsigned round = 0; round < 2; round++) {
        call();
        enter(&other);
        CHECK(fake_return(&regs));
        CHECK_EQ(regs.ip, RETURN_ADDR);
    }
    CHECK_STR(order, "frr");
    CHECK_EQ(fake.preempt_enables, 1);
    CHECK(other.kp.flags & KPROBE_FLAG_TRIPPED);
}

UNIT_TEST(and_owes_a_program_that_steps_itself_its_trap)
{
    rp.handler = fault_here;
    probe_f();
    call();
    regs = fake_regs();
    regs.sp += sizeof(uintptr_t);
    regs.ip = (uintptr_t)kretprobe_trampoline;
    regs.flags |= FLAGS_TF;
    regs.dr6 = 1ul << 14;
    fake_take(&regs, kprobe_debug_handler);
    CHECK_STR(order, "f");
    CHECK_EQ(fake.raised_steps, 1);
    CHECK_EQ(fake.raised_ip, RETURN_ADDR);
}

UNIT_TEST(an_entry_handler_that_faults_leaves_the_return_alone)
{
    rp.entry_handler = fault_here;
    probe_f();
    call();
    CHECK(!fake_return(&regs));
    CHECK_STR(order, "f");
    CHECK_EQ(enable_kretprobe(&rp), 0);
    rp.entry_handler = NULL;
    call_at(0, &rp, RETURN_ADDR + 1);
    CHECK(fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR + 1);
    CHECK_STR(order, "fr");
}

/* ---- steps of the `ret` ---- */

static struct kprobe at_ret;

static int at_the_ret(struct kprobe *p UNUSED, struct pt_regs *r UNUSED)
{
    return 0;
}

static bool leave_jump(struct pt_regs *r, struct probe_cpu *cpu)
{
    kprobe_jump_leave(r, at_ret.site, cpu, false);
    return true;
}

/* step_probed_ret - a program that steps itself returns from f(), and from g() in its place,
 * by a `ret` that has a probe of its own, so that the engine emulates it. The step ends at
 * the caller. @handlers: which handlers run
 */
static void step_probed_ret(bool (*come)(struct pt_regs *, struct probe_cpu *),
                            kretprobe_handler_t handler, const char *handlers)
{
    rp.handler = handler;
    probe_f_and_g(handler);
    at_ret = (struct kprobe){ .addr = other.kp.addr + 4, .pre_handler = at_the_ret };
    CHECK_EQ(register_kprobe(&at_ret), 0);
    call();
    enter(&other);
    regs = fake_regs();
    regs.ip = at_ret.addr + 1;
    regs.flags |= FLAGS_TF;
    CHECK(fake_take(&regs, come));
    CHECK_EQ(regs.ip, RETURN_ADDR);
    CHECK_EQ(fake.raised_steps, 1);
    CHECK_EQ(fake.raised_ip, RETURN_ADDR);
    CHECK_STR(order, handlers);
    CHECK_EQ(unregister_kprobe(&at_ret), 0);
}

UNIT_TEST(a_step_of_a_probed_ret_ends_at_the_caller)
{
    step_probed_ret(kprobe_int3_handler, on_return, "rr");
}

UNIT_TEST(so_does_one_of_a_hit_by_a_jump)
{
    step_probed_ret(leave_jump, on_return, "rr");
}

UNIT_TEST(and_one_whose_return_handlers_fault)
{
    step_probed_ret(leave_jump, fault_here, "ff");
    CHECK_EQ(fake.preempt_enables, 1);
}

/* ---- refusals ---- */

static void refused(int err, enum probe_reason reason)
{
    struct probe_reject why;

    CHECK_EQ(register_kretprobe_why(&rp, &why), err);
    CHECK_EQ(why.reason, reason);
    CHECK(!rp.holder);
}

UNIT_TEST(only_entries_are_accepted)
{
    rp.kp.addr = fake_function("f", LEA) + 4;
    refused(-EINVAL, PROBE_NOT_ENTRY);
    rp.kp.addr = 0;
    rp.kp.symbol_name = "nowhere";
    refused(-ENOENT, PROBE_NO_SYMBOL);
    rp.kp.symbol_name = "f";
    rp.kp.offset = 4;
    refused(-EINVAL, PROBE_NOT_ENTRY);
}

UNIT_TEST(a_function_that_switches_stacks_is_refused)
{
    rp.kp.addr = fake_function("f", LEA);
    fake_switches_stack(rp.kp.addr);
    refused(-EOPNOTSUPP, PROBE_SWITCHES_STACK);
    CHECK_EQ(registry_count(), 0);
}

UNIT_TEST(a_function_that_removes_its_arguments_is_refused)
{
    rp.kp.addr = fake_function("f", "85 ff 74 01 c3 c2 08 00");
    refused(-EOPNOTSUPP, PROBE_POPS_ARGUMENTS);
    CHECK_EQ(registry_count(), 0);
    rp.kp.addr = fake_function("g", "85 ff 74 01 c3 b8 c2 08 00 00 c3");
    CHECK_EQ(register_kretprobe(&rp), 0);
}

/* Its text was not there when the return probe was registered. */
UNIT_TEST(also_when_it_comes_later)
{
    struct text_part part;

    rp.kp.symbol_name = "f";
    rp.kp.flags = KPROBE_FLAG_PENDING;
    CHECK_EQ(register_kretprobe(&rp), 0);
    part.start = fake_function("f", LEA);
    part = (struct text_part){ .start = part.start, .end = part.start + 5 };
    fake_switches_stack(part.start);
    CHECK_EQ(text_comes(&part), 0);
    CHECK(rp.kp.flags & KPROBE_FLAG_GONE && fake_text_is_original());
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    text_goes(&part);
    text_gone(&part);
}

UNIT_TEST(too_much_data_is_refused)
{
    rp.data_size = KRETPROBE_DATA_MAX + 1;
    rp.kp.addr = fake_function("f", LEA);
    refused(-E2BIG, PROBE_DATA_TOO_BIG);
}

UNIT_TEST(a_batch_is_all_or_none)
{
    struct kretprobe rps[3] = { [0] = { .data_size = 0 } },
                     *ps[3] = { &rps[0], &rps[1], &rps[2] };
    struct probe_reject why;

    rps[0].kp.addr = fake_function("f", LEA);
    rps[1].kp.addr = fake_function("g", LEA);
    rps[2].kp.addr = rps[1].kp.addr + 4;
    CHECK_EQ(register_kretprobes_why(ps, 3, &why), -EINVAL);
    CHECK_EQ(why.index, 2);
    CHECK(fake_text_is_original());
    CHECK_EQ(register_kretprobes(ps, 2), 0);
    CHECK_EQ(register_kretprobe(&rps[1]), -EEXIST);
    CHECK_EQ(unregister_kretprobes(ps, 3), -EINVAL);
    CHECK_EQ(unregister_kretprobes(ps, 2), 0);
}

UNIT_TEST(without_memory_nothing_is_left)
{
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        struct kretprobe rps[2] = { [0] = { .data_size = 8 } };
        struct kretprobe *ps[2] = { &rps[0], &rps[1] };

        start();
        rps[0].kp.addr = fake_function("f", LEA);
        rps[1].kp.addr = fake_function("g", LEA);
        fake_fail_at(n);
        if (register_kretprobes(ps, 2) == 0) {
            CHECK_EQ(unregister_kretprobes(ps, 2), 0);
        } else {
            CHECK(fake_failed());
            CHECK(!rps[0].holder && !rps[1].holder);
            CHECK_EQ(kprobe_kind(&rps[0].kp), 'k');
            CHECK_EQ(kprobe_kind(&rps[1].kp), 'k');
        }
        failed = fake_failed();
        fake_end();
    }
}

/* The engine treats a probe by its kind. A kprobe that is unregistered must be of the
 * ordinary kind, because the caller may register it again as such.
 */
UNIT_TEST(its_kprobe_may_be_an_ordinary_one_later)
{
    probe_f();
    CHECK_EQ(kprobe_kind(&rp.kp), 'r');
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    CHECK_EQ(kprobe_kind(&rp.kp), 'k');
}

/* ---- code that looks at stacks ---- */

static uintptr_t found_above(uintptr_t sp)
{
    uintptr_t ret;

    return shadow_find_above(plat_shadow_of(sp), sp, &ret) ? ret : 0;
}

UNIT_TEST(the_real_address_is_found_by_its_slot)
{
    probe_f();
    call();
    call_at(64, &rp, RETURN_ADDR + 1);
    CHECK_EQ(kretprobe_find_ret(fake_stack()), RETURN_ADDR);
    CHECK_EQ(kretprobe_find_ret((uintptr_t *)regs.sp), RETURN_ADDR + 1);
    CHECK_EQ(kretprobe_find_ret(fake_stack() - 1), 0);
    CHECK_EQ(found_above(regs.sp), RETURN_ADDR + 1);
    CHECK_EQ(found_above(regs.sp + 8), RETURN_ADDR);
    CHECK_EQ(found_above((uintptr_t)fake_stack() + 8), 0);
    CHECK(fake_return(&regs));
    CHECK(return_at(0));
    CHECK_EQ(kretprobe_find_ret(fake_stack()), 0);
}

static bool points_at(const struct shadow *s, const struct kretprobe_holder *h)
{
    for (const struct shadow_entry *e = s->entries + 1; e <= s->limit; e++)
        if (e->holder == h)
            return true;
    return false;
}

/* A CPU in an NMI may read an entry that is claimed and not filled yet. Even the holder
 * of such an entry must not be freed memory.
 */
UNIT_TEST(no_entry_points_at_what_is_freed)
{
    const struct kretprobe_holder *gone;

    probe_f_and_g(on_return);
    call_at(0, &other, RETURN_ADDR);
    call_at(64, &rp, RETURN_ADDR);
    CHECK(fake_return(&regs));
    gone = rp.holder;
    CHECK(points_at(plat_shadow_of((uintptr_t)fake_stack()), gone));
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    CHECK(!points_at(plat_shadow_of((uintptr_t)fake_stack()), gone));
    CHECK(points_at(plat_shadow_of((uintptr_t)fake_stack()), other.holder));
    CHECK(return_at(0));
}

UNIT_TESTS_BETWEEN(start, end)
