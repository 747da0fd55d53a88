/* test_detour_return.c - return probes whose entry is a jump to a detour that
 * builds no image. The test writes the jumps itself, over the NOP at the
 * beginning of each function.
 */
#include "probes/explain/totals.h"
#include "probes/insn/encode.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/platform_jump.h"
#include "probes/jump/retired.h"
#include "probes/returns/shadow.h"
#include "tests/kernel/by_hand.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/own_steps.h"
#include "tests/kernel/return_targets.h"

#define CALLS 1000

/* ---- by hand ---- */

struct jumped {
    struct kretprobe rp;
    uint8_t under[INSN_JMP32_LEN]; /* the bytes that the jump replaces */
};

static void text_put(uintptr_t addr, const uint8_t *bytes)
{
    plat_lock(PLAT_TEXT);
    plat_text_write(addr, bytes, INSN_JMP32_LEN);
    plat_sync_cores();
    plat_unlock(PLAT_TEXT);
}

/* has_no_image - does the detour of @site call the code that builds no image? */
static bool has_no_image(const struct site *site)
{
    uintptr_t called;
    int32_t disp;

    memcpy(&disp, site_detour(site) + 1, sizeof(disp));
    called = (uintptr_t)site_detour(site) + INSN_CALL32_LEN + (uintptr_t)(intptr_t)disp;
    return jump_site(site)->kind == DETOUR_RETURN &&
           called == plat_detour(PLAT_DETOUR_RETURN);
}

/* jump_in - register @j as a return probe on @fn, which begins with a NOP of
 * five bytes, and replace the NOP by a jump. Return: is the jump there, and its
 * detour without an image?
 * jump_out - remove the jump and the probe.
 */
static bool jump_in(struct jumped *j, const void *fn)
{
    uint8_t jump[INSN_JMP32_LEN];
    struct site *site;
    int err;

    by_hand_begin();
    err = return_probe(&j->rp, fn);
    if (err)
        return false;
    site = j->rp.kp.site;
    plat_lock(PLAT_PROBES);
    err = detour_prepare(site, NULL);
    plat_unlock(PLAT_PROBES);
    memcpy(j->under, fn, sizeof(j->under));
    insn_encode_jmp32(jump, site->addr, (uintptr_t)site_detour(site));
    if (!err)
        text_put(site->addr, jump);
    return !err && has_no_image(site);
}

static void jump_out(struct jumped *j)
{
    text_put(j->rp.kp.addr, j->under);
    plat_lock(PLAT_PROBES);
    plat_quiesce();
    retired_release(&j->rp.kp.site, 1);
    plat_unlock(PLAT_PROBES);
    unregister_kretprobe(&j->rp);
}

/* ---- the common case ---- */

static int call_often(void *unused UNUSED)
{
    long wrong = 0;

    for (long i = 0; i < CALLS; i++)
        wrong += return_target(i, 7) != i * 3 + 7;
    return wrong != 0;
}

KTEST(detour_return, every_return_is_seen)
{
    struct jumped j = { 0 };
    struct probe_totals before, after;

    return_counts_start();
    ktest_report(jump_in(&j, return_target), "the probe has a detour without an image");
    account_totals(&before);
    ktest_report(each_cpu_run(call_often, NULL) == 0, "the function does what it did");
    account_totals(&after);
    ktest_report(return_counts.returned == (uint64_t)CALLS * cpu_count() &&
                     !return_counts.wrong,
                 "%lu returns", return_counts.returned);
    ktest_report(kprobe_hits(&j.rp.kp) == return_counts.returned && !j.rp.nmissed,
                 "as many hits, none missed");
    ktest_report(after.ran[WAY_JUMP] - before.ran[WAY_JUMP] == return_counts.returned,
                 "all by the jump");
    ktest_report(preempt_count() == 0, "nothing is left behind");
    jump_out(&j);
}

/* echo_differs - call return_echo() with each combination of the status flags.
 * @without: what return_echo() finds without a probe; filled if @probed is false
 * Return: if @probed is true, for how many combinations it finds something else.
 */
static unsigned echo_differs(uint64_t without[64][16], bool probed)
{
    static const uint64_t status[] = { FLAGS_CF, FLAGS_PF, FLAGS_AF,
                                       FLAGS_ZF, FLAGS_SF, FLAGS_OF };
    unsigned differ = 0;

    for (unsigned i = 0; i < 64; i++) {
        uint64_t flags = FLAGS_FIXED | FLAGS_IF, with[16];

        for (unsigned bit = 0; bit < ARRAY_LEN(status); bit++)
            flags |= i >> bit & 1 ? status[bit] : 0;
        return_echo_call(probed ? with : without[i], flags);
        differ += probed && memcmp(without[i], with, sizeof(with)) != 0;
    }
    return differ;
}

/* An assembly routine may read the flags of its caller, and the engine cannot know
 * whether it does. So the engine must keep them.
 */
KTEST(detour_return, registers_and_flags_are_as_they_were)
{
    static uint64_t without[64][16];
    struct jumped j = { 0 };
    unsigned differ;

    echo_differs(without, false);
    ktest_report(jump_in(&j, return_echo), "a jump");
    return_counts_start();
    differ = echo_differs(without, true);
    ktest_report(return_counts.returned == 64, "its returns are seen");
    jump_out(&j);
    ktest_report(differ == 0, "the function finds the same");
}

/* ---- what is not simple ---- */

KTEST_TARGET(tail_inner, x, 2 * x)

/* The engine first looks at an entry of the shadow, and then drops it. An interrupt in
 * between could drop the same entry, and then the engine would drop the entry of a call
 * that has not ended. So interrupts must be off. The program steps itself here: at the
 * first single-step trap after the drop, see_drop() looks whether they are.
 */
static struct {
    const struct kretprobe *rp;
    uint64_t dropped;
    unsigned interruptible;
} drops;

static void see_drop(struct pt_regs *regs)
{
    if (drops.rp->dropped == drops.dropped)
        return;
    drops.dropped = drops.rp->dropped;
    drops.interruptible += (regs->flags & FLAGS_IF) != 0;
}

static uint64_t come_back(uint64_t unused UNUSED)
{
    return (uint64_t)return_come_back();
}

static void drop_stepped(struct jumped *left, const char *what)
{
    uint64_t before = left->rp.dropped, result;

    drops.rp = &left->rp;
    drops.dropped = before;
    drops.interruptible = 0;
    own_steps_watch(see_drop);
    result = return_stepped(come_back, 0);
    own_steps_unwatch();
    ktest_report(result == 5 && left->rp.dropped == before + 1, "%s: one is dropped",
                 what);
    ktest_report(!drops.interruptible, "%s: with interrupts off", what);
}

/* An interrupt, or another CPU that prints a backtrace, may read the shadow between any
 * two instructions of the engine. At each moment an entry with a place on the stack must
 * have a holder, and a dropped entry must have no place. The program steps itself, so
 * see_entries() looks after each instruction.
 */
static struct {
    const struct shadow *shadow;
    unsigned claims, unfilled, unemptied;
    const struct shadow_entry *last;
} looks;

static void see_entries(struct pt_regs *regs UNUSED)
{
    const struct shadow *s = looks.shadow;
    const struct shadow_entry *e = s->last;

    looks.claims += e > looks.last;
    looks.last = e;
    looks.unfilled += e > s->entries && e->below && !e->holder;
    looks.unemptied += e < s->limit && e[1].below;
}

/* look_at_entries - let see_entries() look at @s. The free entries are cleared first, so
 * that nothing of earlier calls is left in them.
 */
static void look_at_entries(struct shadow *s)
{
    looks.shadow = s;
    looks.last = s->last;
    looks.claims = looks.unfilled = looks.unemptied = 0;
    for (struct shadow_entry *e = s->last + 1; e <= s->limit; e++)
        *e = (struct shadow_entry){ 0 };
}

static uint64_t target_stepped(uint64_t x)
{
    return (uint64_t)return_target((long)x, 7);
}

static void entries_are_whole(const char *how)
{
    struct shadow *s = *plat_this_cpu()->plat.shadow;

    look_at_entries(s);
    own_steps_watch(see_entries);
    return_stepped(target_stepped, 5);
    own_steps_unwatch();
    ktest_report(looks.claims == 1, "%s: one entry", how);
    ktest_report(!looks.unfilled, "%s: it has no place before it has a holder", how);
    ktest_report(!looks.unemptied, "%s: nor when it is given up", how);
}

KTEST(detour_return, an_entry_is_whole_at_any_moment)
{
    struct kretprobe limited = { .maxactive = 4 };
    struct jumped plain = { 0 };

    ktest_report(jump_in(&plain, return_target), "a jump that builds no image");
    return_counts_start();
    entries_are_whole("without an image");
    jump_out(&plain);
    ktest_report(return_probe(&limited, return_target) == 0 && by_hand_jump(&limited.kp),
                 "one whose handler makes the entry");
    entries_are_whole("with one");
    by_hand_int3(&limited.kp);
    unregister_kretprobe(&limited);
    ktest_report(return_counts.returned == 2 && !return_counts.wrong, "both return");
}

KTEST(detour_return, none_is_dropped_with_interrupts_on)
{
    struct jumped left = { 0 }, other = { 0 }, around = { 0 };

    ktest_report(jump_in(&left, return_leave) && jump_in(&other, return_target) &&
                     jump_in(&around, return_come_back),
                 "three jumps");
    return_counts_start();
    drop_stepped(&left, "by the next call");
    jump_out(&other);
    drop_stepped(&left, "by the return of its caller");
    jump_out(&around);
    jump_out(&left);
}

static NOINLINE uint64_t elsewhere(uint64_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x + 5;
}

static volatile uint64_t dug;

/* dig - call itself, and return_target() at each level, until less than 3000 bytes of the
 * stack are left. That is enough for an interrupt.
 */
static NOINLINE long dig(uintptr_t base)
{
    volatile long kept = (long)++dug;

    return_target(1, 0);
    if ((uintptr_t)&kept - base < 3000)
        return kept;
    return dig(base) + (kept == 0);
}

static int dig_deep(void *unused UNUSED)
{
    const struct thread *self = thread_current();

    return dig((uintptr_t)self->stack_top - self->stack_len) == (long)dug ? 0 : 1;
}

KTEST(detour_return, stacks_of_others_and_full_ones)
{
    static uint8_t stack[8192];
    struct jumped j = { 0 }, deep = { 0 };
    int tid, code = 1;

    ktest_report(jump_in(&j, elsewhere) && jump_in(&deep, return_target), "two jumps");
    return_counts_start();
    dug = 0;
    ktest_report(return_elsewhere(elsewhere, 1, stack + sizeof(stack)) == 6,
                 "a stack that belongs to no thread");
    ktest_report(j.rp.missed[KRETPROBE_MISS_STACK] == 1 && return_counts.returned == 0,
                 "the return is missed, and counted");
    tid = ktest_thread(dig_deep, NULL, 0);
    thread_join(tid, &code);
    ktest_report(code == 0, "a stack that is used to its end");
    ktest_report(deep.rp.kp.missed[MISS_STACK] > 0 && !deep.rp.nmissed &&
                     kprobe_hits(&deep.rp.kp) + deep.rp.kp.nmissed == dug &&
                     return_counts.returned == kprobe_hits(&deep.rp.kp),
                 "%lu returns, %lu entries missed where little was left",
                 return_counts.returned, deep.rp.kp.nmissed);
    jump_out(&deep);
    jump_out(&j);
}

static volatile uint64_t from_handler; /* volatile: changed by a probe's handler */

static int call_target(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    from_handler += return_target(1, 2) == 5;
    return 0;
}

KTEST(detour_return, calls_from_handlers)
{
    struct kprobe p = { .addr = (uintptr_t)tail_inner, .pre_handler = call_target };
    struct jumped j = { 0 };

    ktest_report(jump_in(&j, return_target), "a jump");
    register_kprobe(&p);
    return_counts_start();
    from_handler = 0;
    for (int i = 0; i < 100; i++)
        tail_inner(i);
    barrier();
    ktest_report(from_handler == 100 && return_counts.returned == 100,
                 "100 calls from a handler, their returns are seen");
    unregister_kprobe(&p);
    jump_out(&j);
}

static volatile bool running;

static int call_until_stopped(void *arg)
{
    uint64_t *wrong = arg;

    while (running)
        for (long i = 0; i < 100; i++)
            *wrong += return_target(i, 7) != i * 3 + 7;
    return 0;
}

/* There are more threads than CPUs, so ticks switch threads at any instruction. */
KTEST(detour_return, threads_are_switched_inside)
{
    struct jumped j = { 0 };
    uint64_t wrong[8] = { 0 }, sum = 0, end = clock_ns() + 400000000;
    int tids[8];

    ktest_report(jump_in(&j, return_target), "a jump");
    return_counts_start();
    running = true;
    for (unsigned i = 0; i < 8; i++)
        tids[i] = ktest_thread(call_until_stopped, &wrong[i], 0);
    while (clock_ns() < end)
        thread_sleep_ns(1000000);
    running = false;
    for (unsigned i = 0; i < 8; i++) {
        thread_join(tids[i], NULL);
        sum += wrong[i];
    }
    ktest_report(!sum && !return_counts.wrong, "every return went where it should");
    ktest_report(kprobe_hits(&j.rp.kp) == return_counts.returned && !j.rp.nmissed &&
                     !j.rp.dropped,
                 "%lu entries, as many returns", return_counts.returned);
    jump_out(&j);
}
