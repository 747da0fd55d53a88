/* test_kretprobe.c - tests of return probes: which return belongs to which call. */
#include "probes/returns/kretprobe.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/shadow.h"
#include "tests/unit/port_fake.h"

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

static int on_entry(struct kretprobe_instance *ri, struct pt_regs *regs UNUSED)
{
    note('e', ri->ret_addr);
    return entry_skips;
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    CHECK_EQ(regs->ip, ri->ret_addr);
    note('r', ri->ret_addr);
    return 0;
}

static int on_return_too(struct kretprobe_instance *ri, struct pt_regs *regs UNUSED)
{
    note('R', ri->ret_addr);
    return 0;
}

static void start(void)
{
    fake_start();
    memset(order, 0, sizeof(order));
    entry_skips = 0;
}

/* enter - enter the function at @addr. Its return address is at @regs->sp already. */
static void enter(struct pt_regs *regs, uintptr_t addr)
{
    CHECK(fake_int3(regs, addr));
}

static void call(struct pt_regs *regs, uintptr_t addr, uintptr_t ret)
{
    *(uintptr_t *)regs->sp = ret;
    enter(regs, addr);
}

static struct kretprobe *probed(struct kretprobe *rp, const char *name)
{
    rp->kp.addr = fake_function(name, LEA);
    if (!rp->handler)
        rp->handler = on_return;
    CHECK_EQ(register_kretprobe(rp), 0);
    return rp;
}

static struct pt_regs regs_below(size_t bytes)
{
    struct pt_regs regs = fake_regs();

    regs.sp -= bytes;
    return regs;
}

/* ---- pairing ---- */

UNIT_TEST(recursion_returns_in_the_opposite_order)
{
    struct kretprobe rp = { 0 };
    struct pt_regs regs;

    probed(&rp, "f");
    for (unsigned i = 0; i < 10; i++) {
        regs = regs_below(16 * i);
        call(&regs, rp.kp.addr, RETURN_ADDR + i);
    }
    for (unsigned i = 10; i-- > 0;) {
        regs = regs_below(16 * i);
        CHECK(fake_return(&regs));
        CHECK_EQ(regs.ip, RETURN_ADDR + i);
    }
    CHECK_STR(order, "rrrrrrrrrr");
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

UNIT_TEST(a_tail_call_returns_innermost_first)
{
    struct kretprobe outer = { 0 }, inner = { .handler = on_return_too };
    struct pt_regs regs;

    probed(&outer, "f");
    probed(&inner, "g");
    regs = fake_regs();
    call(&regs, outer.kp.addr, RETURN_ADDR);
    enter(&regs, inner.kp.addr);
    CHECK(fake_return(&regs));
    CHECK_STR(order, "Rr");
    CHECK_EQ(seen_ret[0], RETURN_ADDR);
    CHECK_EQ(seen_ret[1], RETURN_ADDR);
    CHECK_EQ(regs.ip, RETURN_ADDR);
    CHECK_EQ(unregister_kretprobe(&inner), 0);
    CHECK_EQ(unregister_kretprobe(&outer), 0);
}

static char depths[32];
static uintptr_t depth_of;

static int note_depth(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    snprintf(depths + strlen(depths), sizeof(depths) - strlen(depths), "%d ",
             kretprobe_depth(depth_of));
    return 0;
}

/* g calls f, f calls itself, and the inner f ends with a jump to g. */
UNIT_TEST(the_depth_of_a_call_within_another)
{
    struct kretprobe f = { .handler = note_depth }, g = { .handler = note_depth };
    struct kretprobe too = { .handler = note_depth };
    struct pt_regs regs;

    probed(&f, "f");
    probed(&g, "g");
    too.kp.addr = f.kp.addr;
    CHECK_EQ(register_kretprobe(&too), 0);
    depth_of = f.kp.addr;
    depths[0] = '\0';
    regs = fake_regs();
    call(&regs, g.kp.addr, RETURN_ADDR);
    regs = regs_below(16);
    call(&regs, f.kp.addr, RETURN_ADDR + 1);
    regs = regs_below(32);
    call(&regs, f.kp.addr, RETURN_ADDR + 2);
    enter(&regs, g.kp.addr);
    CHECK(fake_return(&regs));
    regs = regs_below(16);
    CHECK(fake_return(&regs));
    regs = fake_regs();
    CHECK(fake_return(&regs));
    CHECK_STR(depths, "2 1 1 0 0 -1 ");
    CHECK_EQ(unregister_kretprobe(&too), 0);
    CHECK_EQ(unregister_kretprobe(&g), 0);
    CHECK_EQ(unregister_kretprobe(&f), 0);
}

UNIT_TEST(sibling_calls_in_a_circle_are_one_instance)
{
    struct kretprobe f = { 0 }, g = { .handler = on_return_too };
    struct pt_regs regs;

    probed(&f, "f");
    probed(&g, "g");
    regs = fake_regs();
    call(&regs, f.kp.addr, RETURN_ADDR);
    for (unsigned i = 0; i < 100; i++) {
        enter(&regs, g.kp.addr);
        enter(&regs, f.kp.addr);
    }
    CHECK(fake_return(&regs));
    CHECK_STR(order, "Rr");
    CHECK_EQ(f.coalesced, 100);
    CHECK_EQ(g.coalesced, 99);
    CHECK_EQ(f.nmissed + g.nmissed, 0);
    CHECK_EQ(unregister_kretprobe(&g), 0);
    CHECK_EQ(unregister_kretprobe(&f), 0);
}

/* ---- frames that never return ---- */

UNIT_TEST(what_was_left_by_a_jump_is_dropped_by_a_shallower_call)
{
    struct kretprobe rp = { 0 };
    struct pt_regs regs;

    probed(&rp, "f");
    for (unsigned i = 1; i <= 3; i++) {
        regs = regs_below(32 * i);
        call(&regs, rp.kp.addr, RETURN_ADDR + i);
    }
    regs = regs_below(32);
    call(&regs, rp.kp.addr, RETURN_ADDR + 9);
    CHECK_EQ(rp.dropped, 3);
    CHECK(fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR + 9);
    CHECK_STR(order, "r");
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

UNIT_TEST(what_was_left_by_a_jump_is_dropped_by_a_shallower_return)
{
    struct kretprobe rp = { 0 };
    struct pt_regs outer, inner;

    probed(&rp, "f");
    outer = fake_regs();
    call(&outer, rp.kp.addr, RETURN_ADDR);
    inner = regs_below(64);
    call(&inner, rp.kp.addr, RETURN_ADDR + 1);
    CHECK(fake_return(&outer));
    CHECK_EQ(outer.ip, RETURN_ADDR);
    CHECK_EQ(rp.dropped, 1);
    CHECK_STR(order, "r");
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

UNIT_TEST(a_return_without_its_call_is_a_bug)
{
    struct kretprobe rp = { 0 };
    struct pt_regs regs;

    probed(&rp, "f");
    regs = regs_below(64);
    *(uintptr_t *)regs.sp = (uintptr_t)kretprobe_trampoline;
    CHECK(FAKE_BUG(fake_return(&regs)));
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

/* ---- what the entry decides ---- */

UNIT_TEST(an_entry_handler_may_skip_the_return)
{
    struct kretprobe rp = { .entry_handler = on_entry };
    struct pt_regs regs;

    entry_skips = 1;
    probed(&rp, "f");
    regs = fake_regs();
    call(&regs, rp.kp.addr, RETURN_ADDR);
    CHECK(!fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR);
    CHECK_STR(order, "e");
    CHECK_EQ(rp.nmissed, 0);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

static int keep_depth(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    *(uint64_t *)ri->data = regs->sp;
    return 0;
}

static unsigned right;

static int check_depth(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    right += *(uint64_t *)ri->data == regs->sp - 8;
    return 0;
}

UNIT_TEST(each_instance_has_data_of_its_own)
{
    struct kretprobe rp = { .entry_handler = keep_depth,
                            .handler = check_depth,
                            .data_size = sizeof(uint64_t) };
    struct pt_regs regs;

    right = 0;
    probed(&rp, "f");
    for (unsigned i = 0; i < 20; i++) {
        regs = regs_below(16 * i);
        call(&regs, rp.kp.addr, RETURN_ADDR);
    }
    for (unsigned i = 20; i-- > 0;) {
        regs = regs_below(16 * i);
        CHECK(fake_return(&regs));
    }
    CHECK_EQ(right, 20);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

static void followed_with_data(size_t size, unsigned most)
{
    struct kretprobe rp = { .data_size = size };
    struct pt_regs regs;
    unsigned followed = 0;

    probed(&rp, "f");
    for (unsigned i = 0; i < 4; i++) {
        regs = regs_below(16 * i);
        call(&regs, rp.kp.addr, RETURN_ADDR);
    }
    for (unsigned i = 4; i-- > 0;) {
        regs = regs_below(16 * i);
        followed += fake_return(&regs);
        CHECK_EQ(regs.ip, RETURN_ADDR);
    }
    CHECK_EQ(followed, most);
    CHECK_EQ(rp.missed[KRETPROBE_MISS_DATA], 4 - most);
    CHECK_EQ(rp.nmissed, 4 - most);
    CHECK_EQ(rp.kp.nmissed, 0);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

/* Of 8 KiB for data the largest instance takes more than a half, and the other one exactly
 * a half.
 */
UNIT_TEST(without_room_for_data_the_return_is_missed)
{
    static const size_t sizes[] = { KRETPROBE_DATA_MAX,
                                    4096 - sizeof(struct kretprobe_instance) };

    for (unsigned most = 1; most <= 2; most++)
        followed_with_data(sizes[most - 1], most);
}

UNIT_TEST(maxactive_limits_the_instances)
{
    struct kretprobe rp = { .maxactive = 2 };
    struct pt_regs regs;

    probed(&rp, "f");
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 3; i++) {
            regs = regs_below(16 * i);
            call(&regs, rp.kp.addr, RETURN_ADDR);
        }
        for (unsigned i = 3; i-- > 0;) {
            regs = regs_below(16 * i);
            CHECK_EQ(fake_return(&regs), i < 2);
        }
    }
    CHECK_EQ(rp.missed[KRETPROBE_MISS_MAXACTIVE], 3);
    CHECK_STR(order, "rrrrrr");
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

UNIT_TEST(another_stack_is_not_touched)
{
    uint64_t elsewhere[2] = { 0 };
    struct kretprobe rp = { 0 };
    struct pt_regs regs;

    probed(&rp, "f");
    regs = fake_regs();
    regs.sp = (uintptr_t)elsewhere;
    call(&regs, rp.kp.addr, RETURN_ADDR);
    CHECK(!fake_return(&regs));
    CHECK_EQ(rp.missed[KRETPROBE_MISS_STACK], 1);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

UNIT_TEST(a_return_address_out_of_reach_is_left_alone)
{
    struct kretprobe rp = { 0 };
    struct pt_regs regs;

    probed(&rp, "f");
    regs = fake_regs();
    call(&regs, rp.kp.addr, RETURN_ADDR + (1ul << 32));
    CHECK(!fake_return(&regs));
    CHECK_EQ(rp.missed[KRETPROBE_MISS_FAR], 1);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

static int ignore(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

UNIT_TEST(the_shadow_holds_an_entry_for_every_16_bytes)
{
    struct kretprobe rp = { .handler = ignore };
    struct pt_regs regs;
    uintptr_t top;
    size_t len = fake_stack_area(0, &top), calls = 0;

    probed(&rp, "f");
    for (uintptr_t sp = top - 16; sp >= top - len; sp -= 16, calls++) {
        regs = fake_regs();
        regs.sp = sp;
        call(&regs, rp.kp.addr, RETURN_ADDR);
    }
    CHECK_EQ(rp.nmissed, 0);
    for (; calls > 0; calls--) {
        regs.sp = top - 16 * calls;
        CHECK(fake_return(&regs));
    }
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

UNIT_TEST(closer_calls_than_that_are_missed_and_counted)
{
    struct kretprobe rp = { .handler = ignore };
    struct pt_regs regs;
    uintptr_t top;
    size_t len = fake_stack_area(0, &top);

    probed(&rp, "f");
    for (uintptr_t sp = top - 8; sp >= top - len; sp -= 8) {
        regs = fake_regs();
        regs.sp = sp;
        call(&regs, rp.kp.addr, RETURN_ADDR);
    }
    CHECK_EQ(rp.missed[KRETPROBE_MISS_FULL], len / 16);
    for (uintptr_t sp = top - len; sp < top; sp += 8) {
        regs.sp = sp;
        CHECK_EQ(fake_return(&regs), top - sp <= len / 2);
        CHECK_EQ(regs.ip, RETURN_ADDR);
    }
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

UNIT_TEST(an_nmi_has_a_shadow_of_its_own)
{
    struct kretprobe rp = { 0 };
    struct pt_regs regs, nmi;
    uintptr_t top;

    probed(&rp, "f");
    regs = fake_regs();
    call(&regs, rp.kp.addr, RETURN_ADDR);
    FAKE_DEPTHS.nmi = 1;
    fake_stack_area(1, &top);
    nmi = fake_regs();
    nmi.sp = top - 64;
    call(&nmi, rp.kp.addr, RETURN_ADDR + 1);
    CHECK(fake_return(&nmi));
    CHECK_EQ(nmi.ip, RETURN_ADDR + 1);
    FAKE_DEPTHS.nmi = 0;
    CHECK(fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR);
    CHECK_STR(order, "rr");
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

/* ---- coming and going ---- */

UNIT_TEST(calls_under_way_outlive_their_probe)
{
    struct kretprobe rp = { 0 }, other = { 0 };
    struct pt_regs regs;
    size_t blocks;

    probed(&other, "g");
    probed(&rp, "f");
    regs = fake_regs();
    call(&regs, rp.kp.addr, RETURN_ADDR);
    blocks = fake.blocks;
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    memset(&rp, 0xa5, sizeof(rp)); /* a call of its handler would crash from now on */
    CHECK(fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR);
    CHECK_STR(order, "");
    CHECK(fake.blocks < blocks);
    CHECK_EQ(unregister_kretprobe(&other),
             0); /* this unregistration frees the holder that the call needed */
}

UNIT_TEST(a_thread_that_ends_leaves_nothing)
{
    struct kretprobe rp = { 0 };
    struct pt_regs regs;

    probed(&rp, "f");
    regs = fake_regs();
    call(&regs, rp.kp.addr, RETURN_ADDR);
    fake_shadow_end();
    CHECK_EQ(fake.irqs_off, 0);
    CHECK_STR(order, "");
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

static int with_irqs_off(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    CHECK_EQ(fake.irqs_off, 1);
    return on_return(ri, regs);
}

UNIT_TEST(a_handler_runs_with_interrupts_off_on_request)
{
    struct kretprobe rp = { .kp.flags = KPROBE_FLAG_IRQS_OFF, .handler = with_irqs_off };
    struct pt_regs regs;

    probed(&rp, "f");
    regs = fake_regs();
    call(&regs, rp.kp.addr, RETURN_ADDR);
    CHECK(fake_return(&regs));
    CHECK_STR(order, "r");
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

UNIT_TEST(a_disabled_one_sees_nothing)
{
    struct kretprobe rp = { .entry_handler = on_entry };
    struct pt_regs regs;

    probed(&rp, "f");
    regs = fake_regs();
    call(&regs, rp.kp.addr, RETURN_ADDR);
    CHECK_EQ(disable_kretprobe(&rp), 0);
    CHECK(fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR);
    CHECK_STR(order, "e");
    CHECK_EQ(rp.missed[KRETPROBE_MISS_RETURN], 1);
    CHECK_EQ(enable_kretprobe(&rp), 0);
    regs = fake_regs();
    call(&regs, rp.kp.addr, RETURN_ADDR);
    CHECK(fake_return(&regs));
    CHECK_STR(order, "eer");
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

static int fault_here(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    struct pt_regs here = fake_regs();

    note('f', 0);
    fake_fault(&here, 14, 0x1234);
    note('!', 0); /* not reached */
    return 0;
}

UNIT_TEST(a_handler_that_faults_has_had_its_last_return)
{
    struct kretprobe outer = { 0 }, inner = { .handler = fault_here };
    struct pt_regs regs;

    probed(&outer, "f");
    probed(&inner, "g");
    for (unsigned round = 0; round < 2; round++) {
        regs = fake_regs();
        call(&regs, outer.kp.addr, RETURN_ADDR);
        enter(&regs, inner.kp.addr);
        CHECK(fake_return(&regs));
        CHECK_EQ(regs.ip, RETURN_ADDR);
    }
    CHECK_STR(order, "frr");
    CHECK_EQ(fake.preempt_enables, 1);
    CHECK(inner.kp.flags & KPROBE_FLAG_TRIPPED);
    CHECK_EQ(unregister_kretprobe(&inner), 0);
    CHECK_EQ(unregister_kretprobe(&outer), 0);
}

UNIT_TEST(an_entry_handler_that_faults_leaves_the_return_alone)
{
    struct kretprobe rp = { .entry_handler = fault_here };
    struct pt_regs regs;

    probed(&rp, "f");
    regs = fake_regs();
    call(&regs, rp.kp.addr, RETURN_ADDR);
    CHECK(!fake_return(&regs));
    CHECK_STR(order, "f");
    CHECK_EQ(enable_kretprobe(&rp), 0);
    rp.entry_handler = NULL;
    regs = fake_regs();
    call(&regs, rp.kp.addr, RETURN_ADDR + 1);
    CHECK(fake_return(&regs));
    CHECK_EQ(regs.ip, RETURN_ADDR + 1);
    CHECK_STR(order, "fr");
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

/* ---- refusals ---- */

static void refused(struct kretprobe *rp, int err, enum probe_reason reason)
{
    struct probe_reject why;

    CHECK_EQ(register_kretprobe_why(rp, &why), err);
    CHECK_EQ(why.reason, reason);
    CHECK(!rp->holder);
}

UNIT_TEST(only_entries_are_accepted)
{
    struct kretprobe rp = { .handler = on_return };

    rp.kp.addr = fake_function("f", LEA) + 4;
    refused(&rp, -EINVAL, PROBE_NOT_ENTRY);
    rp.kp.addr = 0;
    rp.kp.symbol_name = "nowhere";
    refused(&rp, -ENOENT, PROBE_NO_SYMBOL);
    rp.kp.symbol_name = "f";
    rp.kp.offset = 4;
    refused(&rp, -EINVAL, PROBE_NOT_ENTRY);
}

UNIT_TEST(a_function_that_switches_stacks_is_refused)
{
    struct kretprobe rp = { .handler = on_return };

    rp.kp.addr = fake_function("f", LEA);
    fake_switches_stack(rp.kp.addr);
    refused(&rp, -EOPNOTSUPP, PROBE_SWITCHES_STACK);
}

UNIT_TEST(too_much_data_is_refused)
{
    struct kretprobe rp = { .data_size = KRETPROBE_DATA_MAX + 1 };

    rp.kp.addr = fake_function("f", LEA);
    refused(&rp, -E2BIG, PROBE_DATA_TOO_BIG);
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
    struct kretprobe rp = { 0 };

    probed(&rp, "f");
    CHECK_EQ(kprobe_kind(&rp.kp), 'r');
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    CHECK_EQ(kprobe_kind(&rp.kp), 'k');
}

/* ---- code that looks at stacks ---- */

UNIT_TEST(the_real_address_is_found_by_its_slot)
{
    struct kretprobe rp = { 0 };
    struct pt_regs regs[2];

    probed(&rp, "f");
    for (unsigned i = 0; i < 2; i++) {
        regs[i] = regs_below(64 * i);
        call(&regs[i], rp.kp.addr, RETURN_ADDR + i);
    }
    CHECK_EQ(kretprobe_find_ret(fake_stack()), RETURN_ADDR);
    CHECK_EQ(kretprobe_find_ret((uintptr_t *)regs[1].sp), RETURN_ADDR + 1);
    CHECK_EQ(kretprobe_find_ret(fake_stack() - 1), 0);
    CHECK_EQ(kretprobe_find_ret_above(regs[1].sp), RETURN_ADDR + 1);
    CHECK_EQ(kretprobe_find_ret_above(regs[1].sp + 8), RETURN_ADDR);
    CHECK_EQ(kretprobe_find_ret_above((uintptr_t)fake_stack() + 8), 0);
    CHECK(fake_return(&regs[1]));
    CHECK(fake_return(&regs[0]));
    CHECK_EQ(kretprobe_find_ret(fake_stack()), 0);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
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
    struct kretprobe rp = { 0 }, other = { 0 };
    struct pt_regs regs;
    const struct kretprobe_holder *gone;

    probed(&rp, "f");
    probed(&other, "g");
    regs = fake_regs();
    call(&regs, other.kp.addr, RETURN_ADDR);
    regs = regs_below(64);
    call(&regs, rp.kp.addr, RETURN_ADDR);
    CHECK(fake_return(&regs));
    gone = rp.holder;
    CHECK(points_at(plat_shadow_running(0, false), gone));
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    CHECK(!points_at(plat_shadow_running(0, false), gone));
    CHECK(points_at(plat_shadow_running(0, false), other.holder));
    regs = fake_regs();
    CHECK(fake_return(&regs));
    CHECK_EQ(unregister_kretprobe(&other), 0);
}

UNIT_TESTS_BETWEEN(start, fake_end)
