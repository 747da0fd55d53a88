/* test_return_point.c - functions that are called by the detour of a return probe. They
 * return to a cell, which may have been freed by then.
 */
#include "probes/returns/return_point.h"

#include "kernel/debug/backtrace.h"
#include "kernel/debug/ksyms.h"
#include "kernel/mm/extable.h"
#include "probes/core/insn_slot.h"
#include "probes/insn/encode.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/region/region.h"
#include "probes/returns/platform_returns.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/own_steps.h"
#include "tests/kernel/return_targets.h"
#include "tests/kernel/sleepers.h"

/* probe - register @rp as a return probe at @fn. Return: has it a detour that calls @fn?
 */
static bool probe(struct kretprobe *rp, const void *fn)
{
    if (return_probe(rp, fn))
        return false;
    optimize_run();
    return rp->kp.flags & KPROBE_FLAG_OPTIMIZED &&
           jump_site(rp->kp.site)->kind == DETOUR_RETURN;
}

static uintptr_t return_point(const struct kretprobe *rp)
{
    return (uintptr_t)detour_cell(rp->kp.site) + RETURN_POINT_OFF;
}

/* ---- simple calls ---- */

static NOINLINE uintptr_t return_address_seen(long *sum, long a, long b, long c, long d,
                                              long e, long f, long g, long h)
{
    *sum = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
    __asm__ volatile("" : "+r"(sum));
    return (uintptr_t)__builtin_return_address(0);
}

KTEST(return_point, a_function_with_arguments_on_its_stack)
{
    struct kretprobe rp = { 0 };
    unsigned right = 0;
    uintptr_t ret = 0;
    long sum;

    jumps_by(OPTIMIZE_PUN);
    ktest_report(probe(&rp, return_address_seen), "a jump");
    return_counts_start();
    for (long i = 0; i < 100; i++) {
        ret = return_address_seen(&sum, i, 2, 3, 4, 5, 6, 7, 8);
        right += sum == i + 203;
    }
    ktest_report(right == 100, "it finds them");
    ktest_report(ret == return_point(&rp) && return_point_is(ret),
                 "it was called by the detour");
    ktest_report(return_counts.returned == 100 && !return_counts.wrong &&
                     kprobe_hits(&rp.kp) == 100 && !rp.nmissed,
                 "100 calls, 100 returns");
    unregister_kretprobe(&rp);
    ktest_report(return_address_seen(&sum, 1, 0, 0, 0, 0, 0, 0, 1) != ret && sum == 9,
                 "and by others when the probe has gone");
}

/* The jump displaces a region. So the detour runs the copies of all instructions of the
 * region, and not the copy of the first instruction alone.
 */
KTEST(return_point, a_region_is_called)
{
    struct kretprobe rp = { 0 };
    const struct site *site;
    bool is_region;

    jumps_by(OPTIMIZE_REGION);
    ktest_report(probe(&rp, return_recurse), "a jump");
    site = rp.kp.site;
    plat_lock(PLAT_PROBES);
    is_region =
        region_is_open(site) && region_boosted(site) == jump_site(site)->region->cell;
    plat_unlock(PLAT_PROBES);
    ktest_report(is_region, "in place of two instructions");
    return_counts_start();
    ktest_report(return_recurse(100) == 100 && return_counts.returned == 101 &&
                     !return_counts.wrong && !rp.nmissed,
                 "all returns were seen");
    unregister_kretprobe(&rp);
    ktest_report(return_recurse(3) == 3 && return_counts.returned == 101,
                 "until it has gone");
}

/* ---- tail calls ---- */

KTEST(return_point, functions_that_jump_to_each_other)
{
    struct kretprobe rps[4] = { [0] = { .maxactive = 0 } };

    jumps_by(OPTIMIZE_PUN);
    ktest_report(probe(&rps[0], return_outer) && probe(&rps[1], return_inner) &&
                     probe(&rps[2], return_circle),
                 "three jumps");
    ktest_report(!probe(&rps[3], return_circle_back),
                 "a function that begins with a branch is not called");
    return_counts_start();
    ktest_report(return_outer(20) == 42 && return_counts.returned == 2,
                 "both return at once");
    ktest_report(return_inner(4) == 8 && return_counts.returned == 3, "one by itself");
    ktest_report(return_circle(10) == 42 && return_counts.returned == 5,
                 "a circle returns once for each");
    ktest_report(rps[2].coalesced == 10 && rps[3].coalesced == 9 && !return_counts.wrong,
                 "its other rounds are counted");
    for (size_t i = 0; i < ARRAY_LEN(rps); i++)
        unregister_kretprobe(&rps[i]);
}

/* ---- calls that outlive the cell ---- */

/* is_poisoned - is nothing mapped at @at, or an int3 there? Then a thread that goes on at
 * @at traps.
 */
static bool is_poisoned(uintptr_t at)
{
    uint8_t byte;

    return copy_nofault(&byte, (const void *)at, 1) || byte == INSN_INT3;
}

KTEST(return_point, h91_the_cell_is_gone_and_1000_threads_return)
{
    int *tids = kzalloc(SLEEPERS * sizeof(*tids));
    struct kretprobe *rp = kzalloc(sizeof(*rp)), again = { 0 };
    uintptr_t point;
    unsigned made;

    jumps_by(OPTIMIZE_PUN);
    ktest_report(probe(rp, sleep_inside), "a jump");
    point = return_point(rp);
    return_counts_start();
    made = sleepers_start(tids, SLEEPERS);
    ktest_report(made == SLEEPERS && kprobe_hits(&rp->kp) == made,
                 "%u threads were called by the detour", made);
    ktest_report(return_point_is(point) && point != (uintptr_t)kretprobe_trampoline,
                 "and will return to its cell");
    ktest_report(unregister_kretprobe(rp) == 0 && !sleepers.came_back, "none has to");
    memset(rp, 0xa5, sizeof(*rp));
    ktest_report(is_poisoned(point) && !return_point_is(point), "the cell is gone");
    ktest_report(probe(&again, sleep_inside), "another probe may come");
    sleepers_end(tids, SLEEPERS);
    ktest_report(sleepers.came_back == made, "all of them came back");
    ktest_report(return_counts.returned == 0, "unseen by either");
    unregister_kretprobe(&again);
    kfree(rp);
    kfree(tids);
}

/* With a second probe the site needs a detour of another kind. So the optimizer releases
 * the first detour, although calls that it has made have not yet returned.
 */
KTEST(return_point, a_detour_of_another_kind_comes)
{
    struct kretprobe rp = { 0 }, second = { 0 };
    uintptr_t point;
    int tids[10];

    jumps_by(OPTIMIZE_PUN);
    ktest_report(probe(&rp, sleep_inside), "a jump");
    point = return_point(&rp);
    return_counts_start();
    sleepers_start(tids, 10);
    return_probe(&second, sleep_inside);
    optimize_run();
    /* The new detour may have the old one's cell. */
    ktest_report(jump_site(rp.kp.site)->kind == DETOUR_CALL && !return_point_is(point) &&
                     (is_poisoned(point) || return_point(&rp) == point),
                 "one for two probes, and the cell is gone");
    sleepers_end(tids, 10);
    ktest_report(sleepers.came_back == 10 && return_counts.returned == 10 &&
                     !return_counts.wrong,
                 "ten calls that the first has made return, and are seen");
    unregister_kretprobe(&second);
    unregister_kretprobe(&rp);
}

/* ---- backtraces ---- */

#define FRAMES 12

struct trace {
    uintptr_t at[FRAMES];
    size_t count;
};

static struct trace seen, in_cell[5];
static const struct kretprobe *observed;

/* from_cell - collect the backtrace of an interrupt at offset @off in the cell
 * of observed, from which the caller was called. @sp, @bp: those that the
 * interrupt would find
 */
static void from_cell(struct trace *trace, size_t off, uintptr_t sp, uintptr_t bp)
{
    struct pt_regs regs = { .ip = return_point(observed) - RETURN_POINT_OFF + off,
                            .sp = sp,
                            .bp = bp };

    trace->count = backtrace_collect(&regs, trace->at, FRAMES);
}

static NOINLINE long inner(long x)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    uintptr_t slot = (uintptr_t)(frame + 1);

    seen.count = backtrace_collect(NULL, seen.at, FRAMES);
    if (observed) {
        from_cell(&in_cell[0], 0, slot, frame[0]);
        from_cell(&in_cell[1], INSN_CALL32_LEN, slot + 8, frame[0]);
        from_cell(&in_cell[2], RETURN_POINT_OFF, slot + 8, frame[0]);
        from_cell(&in_cell[3], RETURN_POINT_OFF + INSN_JMP32_LEN, slot, frame[0]);
    }
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

static NOINLINE long middle(long x)
{
    return inner(x) + 1;
}

static NOINLINE long outer(long x)
{
    return middle(x) + 1;
}

static bool is_traced(const struct trace *t, size_t from, const struct trace *expected)
{
    return t->count == expected->count - 1 + from &&
           memcmp(t->at + from, expected->at + 1,
                  (expected->count - 1) * sizeof(t->at[0])) == 0;
}

KTEST(return_point, h86_backtraces_show_the_real_callers)
{
    struct kretprobe rps[3] = { [0] = { .maxactive = 0 } };
    struct trace without = { .count = 0 };

    jumps_by(OPTIMIZE_PUN);
    for (volatile int round = 0; round < 2; round++) { /* calls from one place */
        observed = round ? &rps[2] : NULL;
        outer(1);
        if (round)
            continue;
        without = seen;
        ktest_report(probe(&rps[0], outer) && probe(&rps[1], middle) &&
                         probe(&rps[2], inner),
                     "three jumps");
    }
    observed = NULL;
    ktest_report(without.count >= 5 && seen.count == without.count &&
                     is_traced(&seen, 1, &without),
                 "inside three functions: as without probes");
    ktest_report(is_traced(&in_cell[0], 1, &without) &&
                     in_cell[0].at[0] == (uintptr_t)inner,
                 "where the cell begins: the function, and its callers");
    ktest_report(is_traced(&in_cell[1], 0, &without), "about to call: the caller");
    ktest_report(is_traced(&in_cell[2], 0, &without), "at the return point: the caller");
    ktest_report(is_traced(&in_cell[3], 1, &without) &&
                     in_cell[3].at[0] == (uintptr_t)inner,
                 "not called: the function, and its callers");
    for (size_t i = 0; i < ARRAY_LEN(rps); i++)
        unregister_kretprobe(&rps[i]);
}

static volatile uint64_t in_the_cell, misread;

static bool is_in(uintptr_t ip, const void *fn)
{
    return ip - (uintptr_t)fn < 64;
}

/* look - if @regs was interrupted in the cell, check that a backtrace begins in return_both()
 * or in its caller.
 */
static void look(const struct pt_regs *regs)
{
    uintptr_t at[1] = { 0 };

    if (regs->ip - (return_point(observed) - RETURN_POINT_OFF) >= INSN_SLOT_CODE_MAX)
        return;
    in_the_cell++;
    backtrace_collect(regs, at, 1);
    misread += !is_in(at[0], (const void *)return_both) &&
               !is_in(at[0], (const void *)return_call_both);
}

KTEST(return_point, h90_nmis_at_every_instruction)
{
    uint64_t wrong, count = ktest_count(600, 30000);
    struct kretprobe rp = { 0 };

    jumps_by(OPTIMIZE_PUN);
    in_the_cell = misread = 0;
    return_counts_start();
    ktest_report(probe(&rp, return_both), "a jump");
    observed = &rp;
    wrong = return_storm(count, look);
    observed = NULL;
    unregister_kretprobe(&rp);
    ktest_report(!wrong && !return_counts.wrong && !rp.dropped,
                 "%lu NMIs, every return went where it should", count);
    ktest_report(return_counts.returned + rp.nmissed == kprobe_hits(&rp.kp),
                 "every call seen at its entry is seen at its return, or counted");
    ktest_report(!misread, "%lu came in the cell; the real callers were shown",
                 (unsigned long)in_the_cell);
}

/* ---- single steps ---- */

static uint64_t step_through(struct own_steps *steps)
{
    uint64_t value;

    own_steps_begin(steps);
    value = return_steps_call(20);
    own_steps_end();
    return value;
}

/* The function is called without steps, and sets TF before it returns. */
KTEST(return_point, a_step_that_ends_at_the_return_point)
{
    static struct own_steps without, with;
    struct kretprobe rp = { 0 };

    jumps_by(OPTIMIZE_PUN);
    step_through(&without);
    ktest_report(probe(&rp, return_steps), "a jump");
    return_counts_start();
    ktest_report(step_through(&with) == 40 && return_counts.returned == 1 &&
                     !return_counts.wrong && kprobe_hits(&rp.kp) == 1,
                 "it returns");
    ktest_report(own_steps_same(&with, &without, 2),
                 "%zu steps, %zu with the probe, the same", without.count, with.count);
    unregister_kretprobe(&rp);
}
