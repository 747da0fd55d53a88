/* test_watch.c - tests of watches: refusals, registration, hits and misses, alone and
 * together with a step.
 */
#include "probes/watch/watch.h"

#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/jump/jump_site.h"
#include "probes/region/region.h"
#include "probes/watch/platform_watch.h"
#include "tests/unit/fake_watch.h"

#include <stdalign.h>
#include <string.h>

#define DR6_BS (1ul << 14)

static alignas(8) uint64_t bytes[8];
static unsigned calls;
static uintptr_t ip_seen;
static struct pt_regs regs;

static void note(struct watch *hit UNUSED, struct pt_regs *r)
{
    calls++;
    ip_seen = r->ip;
    r->ax = 77;
}

static struct watch w; /* end() unregisters it */

static struct watch watch_of(unsigned i, watch_handler_t handler)
{
    return (struct watch){
        .name = "w", .addr = (uintptr_t)&bytes[i], .len = 8, .handler = handler
    };
}

static void begin(void)
{
    fake_start();
    memset(&fake_watch, 0, sizeof(fake_watch));
    calls = 0;
    ip_seen = 0;
    regs = fake_regs();
    w = watch_of(0, note);
}

static void end(void)
{
    if (w.is_registered)
        CHECK_EQ(unregister_watch(&w), 0);
    fake_end();
}

static enum watch_reason reason_of(struct watch copy)
{
    enum watch_reason why;
    int err = register_watch_why(&copy, &why);

    CHECK_EQ(err, watch_reason_errno(why));
    if (!err)
        CHECK_EQ(unregister_watch(&copy), 0);
    return why;
}

UNIT_TEST(each_reason_has_its_errno_and_text)
{
    for (unsigned i = 0; i < WATCH_REASONS; i++)
        CHECK(strlen(watch_reason_text(i)) > 5 && (watch_reason_errno(i) < 0) == (i > 0));
}

UNIT_TEST(what_cannot_be_watched_is_refused)
{
    uintptr_t fn = fake_function("fn", "55 48 89 e5 c3");

    w.len = 3;
    CHECK_EQ(reason_of(w), WATCH_LENGTH);
    w.len = 8;
    w.addr += 4;
    CHECK_EQ(reason_of(w), WATCH_UNALIGNED);
    w.len = 4;
    CHECK_EQ(reason_of(w), WATCH_OK);
    w.kind = WATCH_KINDS;
    CHECK_EQ(reason_of(w), WATCH_READ_ALONE);
    w.kind = WATCH_ACCESS;
    fake_watch.own = w.addr + 3;
    CHECK_EQ(reason_of(w), WATCH_OWN);
    w.addr = 8;
    CHECK_EQ(reason_of(w), WATCH_NOT_KERNEL);
    w.addr = 0;
    CHECK_EQ(reason_of(w), WATCH_OK);
    w.kind = WATCH_EXECUTE;
    CHECK_EQ(reason_of(w), WATCH_EXECUTE_LEN);
    w.len = 1;
    CHECK_EQ(reason_of(w), WATCH_NO_CODE);
    w.addr = fn + 2;
    CHECK_EQ(reason_of(w), WATCH_NO_CODE);
    w.addr = fn + 1;
    CHECK_EQ(reason_of(w), WATCH_OK);
    fake_entry(fn, fn + 5);
    CHECK_EQ(reason_of(w), WATCH_BLACKLISTED);
    CHECK_EQ(watch_check(&w), WATCH_BLACKLISTED);
}

UNIT_TEST(a_fifth_is_refused)
{
    struct watch w[5];

    for (unsigned i = 0; i < 5; i++)
        w[i] = watch_of(i, NULL);
    for (unsigned i = 0; i < 4; i++)
        CHECK_EQ(register_watch(&w[i]), 0);
    CHECK_EQ(reason_of(w[4]), WATCH_ALL_TAKEN);
    CHECK_EQ(register_watch(&w[0]), -EEXIST);
    w[4] = w[0]; /* a copy of a registered watch is not registered */
    CHECK_EQ(unregister_watch(&w[4]), -EINVAL);
    for (unsigned i = 0; i < 4; i++)
        CHECK_EQ(unregister_watch(&w[i]), 0);
    CHECK_EQ(unregister_watch(&w[0]), -EINVAL);
}

UNIT_TEST(without_memory_nothing_is_taken)
{
    uintptr_t fn = fake_function("fn", "55 48 89 e5 c3");
    unsigned n = 0;

    w.kind = WATCH_EXECUTE;
    w.len = 1;
    w.addr = fn;
    do {
        fake_fail_at(++n);
        if (register_watch(&w) == 0)
            break;
        CHECK(!fake_watch.owner[0] && !fake_watch.executes);
    } while (n < 10);
    fake_fail_at(0);
    CHECK(n > 1 && n < 10);
    CHECK_EQ(fake_watch.executes, fn);
    CHECK_EQ(disable_watch(&w), 0);
    CHECK(!fake_watch.executes);
    CHECK_EQ(enable_watch(&w), 0);
    CHECK_EQ(fake_watch.executes, fn);
    CHECK_EQ(unregister_watch(&w), 0);
    CHECK(!fake_watch.executes && !fake_watch.owner[0]);
}

UNIT_TEST(a_hit_is_counted_and_its_handler_called)
{
    CHECK_EQ(register_watch(&w), 0);
    regs.ip = 0x5000;
    CHECK(fake_debug(&regs, 1));
    CHECK_EQ(calls, 1);
    CHECK_EQ(watch_hits(&w), 1);
    CHECK_EQ(watch_misses(&w), 0);
    CHECK_EQ(regs.ip, 0x5000);
    CHECK_EQ(regs.ax, 77);
    CHECK(!(regs.flags & FLAGS_RF));
    CHECK_EQ(unregister_watch(&w), 0);
    CHECK_EQ(watch_hits(&w), 1);
    CHECK_EQ(watch_misses(&w), 0);
}

static uintptr_t go_to;

static void redirect(struct watch *hit UNUSED, struct pt_regs *r)
{
    r->ip = go_to;
}

UNIT_TEST(a_handler_may_send_the_program_elsewhere)
{
    w = watch_of(0, redirect);
    CHECK_EQ(register_watch(&w), 0);
    regs.ip = 0x9003;
    fake_watch.program = 0x5003;
    go_to = 0x7000;
    regs.flags |= FLAGS_RF;
    CHECK(fake_debug(&regs, 1));
    CHECK_EQ(regs.ip, 0x7000);
    CHECK(!(regs.flags & FLAGS_RF)); /* the CPU may stop at the instruction there */
}

UNIT_TEST(in_a_region_it_is_sent_to_the_copies)
{
    struct kprobe p = { .addr = fake_function("fn", "55 48 8b 07 41 57 90 c3") };
    struct probe_reject why;

    w = watch_of(0, redirect);
    CHECK_EQ(register_watch(&w), 0);
    CHECK_EQ(register_kprobe(&p), 0);
    plat_lock(PLAT_PROBES);
    CHECK_EQ(region_prepare(p.site, &why), 0);
    region_open(p.site);
    go_to = p.addr + 1;
    CHECK(fake_debug(&regs, 1));
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell + 1);
    region_close(p.site);
    plat_quiesce();
    region_release(p.site);
    plat_unlock(PLAT_PROBES);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

/* begin_beside_another - begin with w in register 1, and another owner in register 0. */
static void begin_beside_another(void)
{
    begin();
    fake_watch.owner[0] = "gdb";
    fake_watch.addr[0] = 0x1234;
    CHECK_EQ(register_watch(&w), 0);
    CHECK_EQ(w.reg, 1);
}

static void end_beside_another(void)
{
    CHECK_EQ(unregister_watch(&w), 0);
    fake_watch.addr[0] = 0;
}

UNIT_TEST(other_owners_are_told)
{
    begin_beside_another();
    CHECK(fake_debug(&regs, 3)); /* one of the two bits is another owner's */
    CHECK_EQ(regs.dr6 & 15, 0);
    CHECK_EQ(calls, 1);
    CHECK_EQ(fake_watch.told, 1);
    fake_watch.told = 0;
    CHECK(fake_debug(&regs, 4)); /* the bit of a register that is not in use */
    CHECK_EQ(calls, 1);
    CHECK_EQ(fake_watch.told, 0);
    CHECK(!fake_debug(&regs, DR6_BS | 1)); /* a step that is not the engine's */
    CHECK_EQ(fake_watch.told, 1);
    CHECK_EQ(fake_watch.missed, 0);
    end_beside_another();
}

UNIT_TEST(a_trap_without_a_cause_is_over)
{
    CHECK(fake_debug(&regs, 0));
    CHECK(!fake_debug(&regs, DR6_BS));
    CHECK_EQ(fake_watch.told, 0);
}

static void hit_both(struct pt_regs *r)
{
    struct pt_regs inner = *r;

    CHECK(fake_debug(&inner, 3));
}

UNIT_TEST(what_another_owner_touches_is_a_miss)
{
    begin_beside_another();
    fake_watch.on_tell = hit_both;
    CHECK(fake_debug(&regs, 1));
    CHECK_EQ(fake_watch.told, 1);
    CHECK_EQ(fake_watch.missed, 1);
    CHECK_EQ(calls, 0);
    CHECK_EQ(watch_misses(&w), 1);
    CHECK(!plat_this_cpu()->watch_busy);
    fake_watch.on_tell = NULL;
    CHECK(fake_debug(&regs, 3));
    CHECK_EQ(calls, 1);
    end_beside_another();
}

static void touch_own(struct watch *hit, struct pt_regs *r)
{
    struct pt_regs inner = *r;

    calls++;
    CHECK(fake_debug(&inner, 1u << hit->reg));
}

UNIT_TEST(what_its_own_handler_touches_is_a_miss)
{
    w = watch_of(0, touch_own);
    CHECK_EQ(register_watch(&w), 0);
    CHECK(fake_debug(&regs, 1));
    CHECK_EQ(calls, 1);
    CHECK_EQ(watch_hits(&w), 1);
    CHECK_EQ(watch_misses(&w), 1);
    CHECK_EQ(unregister_watch(&w), 0);
    CHECK_EQ(watch_misses(&w), 1);
    CHECK_EQ(register_watch(&w), 0); /* it has the same register again */
    CHECK_EQ(watch_hits(&w) + watch_misses(&w), 0);
}

UNIT_TEST(a_trap_inside_the_entry_of_another_is_left_to_it)
{
    CHECK_EQ(register_watch(&w), 0);
    fake_watch.inner = regs.ip = 0x6000;
    CHECK(fake_debug(&regs, DR6_BS | 1));
    CHECK_EQ(calls, 0);
    CHECK_EQ(watch_hits(&w) + watch_misses(&w), 0);
}

UNIT_TEST(what_the_way_to_a_handler_touches_is_a_miss)
{
    CHECK_EQ(register_watch(&w), 0);
    plat_this_cpu()->watch_busy = true;
    CHECK(fake_debug(&regs, 1));
    CHECK_EQ(calls, 0);
    CHECK_EQ(watch_misses(&w), 1);
    plat_this_cpu()->watch_busy = false;
    CHECK(fake_debug(&regs, 1));
    CHECK_EQ(calls, 1);
    CHECK(!plat_this_cpu()->watch_busy);
}

UNIT_TEST(a_stack_that_is_full_is_a_miss)
{
    CHECK_EQ(register_watch(&w), 0);
    fake.stack_left = 100;
    CHECK(fake_debug(&regs, 1));
    CHECK_EQ(calls, 0);
    CHECK_EQ(watch_misses(&w), 1);
}

static void crash(struct watch *hit UNUSED, struct pt_regs *r UNUSED)
{
    struct pt_regs fault = fake_regs();

    calls++;
    fake_fault(&fault, 6, 0x1234);
    calls += 100;
}

UNIT_TEST(a_handler_that_faults_is_given_up)
{
    struct watch second = watch_of(1, note);

    w = watch_of(0, crash);
    CHECK_EQ(register_watch(&w), 0);
    CHECK_EQ(register_watch(&second), 0);
    regs.ip = 0x9003;
    fake_watch.program = 0x5003;
    CHECK(fake_debug(&regs, 3 | DR6_BS));
    CHECK_EQ(calls, 1);
    CHECK_EQ(fake.raised_steps, 1); /* the step of the program, which is still due */
    CHECK_EQ(regs.ip, 0x9003);
    CHECK_EQ(w.kp.flags, KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED);
    CHECK_EQ(watch_hits(&w), 1);
    CHECK_EQ(watch_hits(&second), 0);
    CHECK_EQ(watch_misses(&second), 1);
    CHECK(fake_debug(&regs, 1)); /* a disabled watch counts neither hit nor miss */
    CHECK_EQ(watch_hits(&w) + watch_misses(&w), 1);
    CHECK_EQ(enable_watch(&w), 0);
    CHECK_EQ(w.kp.flags, 0);
    CHECK_EQ(unregister_watch(&second), 0);
}

static void after(struct kprobe *p UNUSED, struct pt_regs *r UNUSED,
                  unsigned long flags UNUSED)
{
    calls += 10;
}

UNIT_TEST(a_step_ends_with_the_same_trap)
{
    struct kprobe p = { .pre_handler = no_pre, .post_handler = after };

    step_set_engine(STEP_TF);
    p.addr = fake_function("fn", "48 89 07 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    CHECK_EQ(register_watch(&w), 0);
    CHECK(fake_int3(&regs, p.addr));
    regs.ip += 3; /* the copy has stored to the watched bytes */
    fake_watch.program = p.addr + 3;
    CHECK(fake_debug(&regs, DR6_BS | 1));
    CHECK_EQ(calls, 11);
    CHECK_EQ(ip_seen, p.addr + 3);
    CHECK_EQ(regs.ip, p.addr + 3);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

UNIT_TEST(an_instruction_passes_once)
{
    w.addr = fake_function("fn", "55 48 89 e5 c3");
    w.kind = WATCH_EXECUTE;
    w.len = 1;
    CHECK_EQ(register_watch(&w), 0);
    regs.ip = w.addr;
    CHECK(fake_debug(&regs, 1));
    CHECK(regs.flags & FLAGS_RF);
    CHECK_EQ(fake_watch.rests, 0);
    plat_depths(plat_this_cpu())->nmi = 1;
    CHECK(fake_debug(&regs, 1));
    CHECK_EQ(fake_watch.rests, 1); /* in an NMI the register rests in place of RF */
    plat_depths(plat_this_cpu())->nmi = 0;
    CHECK_EQ(watch_move(&w, 0), -EINVAL);
}

UNIT_TEST(it_moves_and_is_switched)
{
    w.addr = 0;
    CHECK_EQ(register_watch(&w), 0);
    CHECK_EQ(watch_addr(&w), 0);
    CHECK_EQ(watch_move(&w, (uintptr_t)&bytes[1]), 0);
    CHECK_EQ(watch_addr(&w), (uintptr_t)&bytes[1]);
    CHECK_EQ(watch_move(&w, (uintptr_t)&bytes[1] + 1), -EINVAL);
    CHECK_EQ(disable_watch(&w), 0);
    CHECK_EQ(watch_addr(&w), 0);
    CHECK_EQ(watch_move(&w, (uintptr_t)&bytes[2]), 0);
    CHECK_EQ(watch_addr(&w), 0); /* a disabled watch has no address */
    CHECK_EQ(enable_watch(&w), 0);
    CHECK_EQ(watch_addr(&w), (uintptr_t)&bytes[2]);
    CHECK_EQ(unregister_watch(&w), 0);
    CHECK_EQ(disable_watch(&w), -EINVAL);
}

UNIT_TESTS_BETWEEN(begin, end)
