/* test_quiesce.c - quiesce() waits for the threads it must wait for, and
 * for no other threads.
 *
 * The function loiter() plays the part of code that is about to be removed. A helper
 * thread calls quiesce(), and sets came_back when quiesce() has returned.
 */
#include "kernel/debug/ksyms.h"
#include "kernel/sync/quiesce.h"
#include "probes/jump/optimize.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/logged.h"
#include "tests/kernel/watched.h"

#define MS UINT64_C(1000000)
#define LONG_ENOUGH (60 * MS)

static quiesce_inside_t others_inside; /* the predicate of the running kernel */
static struct ksym loiter_sym;

/* Places of the thread under test. at: where it is. leave_to: where it shall go. */
enum place { NOWHERE, INSIDE, OUTSIDE, DONE };
static enum place at, leave_to;

static NOINLINE void loiter(void)
{
    do {
        WRITE_ONCE(at, INSIDE);
        pause();
    } while (READ_ONCE(leave_to) == INSIDE);
}

static NOINLINE void spin_outside(void)
{
    WRITE_ONCE(at, OUTSIDE);
    while (READ_ONCE(leave_to) == OUTSIDE)
        pause();
}

static bool inside(uintptr_t ip)
{
    if (ip >= loiter_sym.start && ip < loiter_sym.start + loiter_sym.size)
        return true;
    return others_inside && others_inside(ip);
}

static void predicate_set(void)
{
    ksyms_at((uintptr_t)loiter, &loiter_sym);
    others_inside = quiesce_set_inside(NULL);
    quiesce_set_inside(inside);
}

static void predicate_restore(void)
{
    quiesce_set_inside(others_inside);
}

static int wander(void *arg UNUSED)
{
    loiter();
    spin_outside();
    WRITE_ONCE(at, DONE);
    return 0;
}

static void go_to(enum place where)
{
    WRITE_ONCE(leave_to, where);
}

/* sleep_until - wait for up to two seconds for *@value to be @wanted. */
#define sleep_until(value, wanted)                                                       \
    ({                                                                                   \
        for (unsigned n_ = 0; n_ < 400 && READ_ONCE(value) != (wanted); n_++)            \
            thread_sleep_ns(5 * MS);                                                     \
        READ_ONCE(value) == (wanted);                                                    \
    })

static bool came_back;

static int quiesce_and_tell(void *arg UNUSED)
{
    quiesce();
    WRITE_ONCE(came_back, true);
    return 0;
}

static int helper_start(uint64_t cpus)
{
    WRITE_ONCE(came_back, false);
    return ktest_thread(quiesce_and_tell, NULL, cpus);
}

static int wanderer_start(uint64_t cpus)
{
    WRITE_ONCE(at, NOWHERE);
    go_to(INSIDE);
    return ktest_thread(wander, NULL, cpus);
}

KTEST(quiesce, returns_when_no_thread_is_inside)
{
    predicate_set();
    quiesce();
    quiesce();
    predicate_restore();
    ktest_report(true, "two in a row came back");
}

/* ---- one thread inside ----------------------------------------------------------------- */

/* waits_for_wanderer - check that quiesce(), called on @helper_cpus, waits for a thread
 * inside of loiter() that runs on @cpus. The thread leaves loiter() without ever
 * switching voluntarily, and goes on running outside.
 */
static void waits_for_wanderer(uint64_t cpus, uint64_t helper_cpus)
{
    unsigned reports = logged("quiesce: waiting", "");
    int wanderer, helper;

    predicate_set();
    wanderer = wanderer_start(cpus);
    ktest_report(sleep_until(at, INSIDE), "a thread is in the code");
    helper = helper_start(helper_cpus);
    thread_sleep_ns(LONG_ENOUGH);
    ktest_clock_jump(20000);
    thread_sleep_ns(LONG_ENOUGH);
    ktest_report(!READ_ONCE(came_back) && logged("quiesce: waiting", "") == reports,
                 "quiesce() waits, and a jump of the clock makes no report");
    go_to(OUTSIDE);
    ktest_report(sleep_until(came_back, true), "it returns when the thread has left");
    ktest_report(READ_ONCE(at) == OUTSIDE,
                 "which still runs, and never switched willingly");
    go_to(DONE);
    thread_join(helper, NULL);
    thread_join(wanderer, NULL);
    predicate_restore();
}

KTEST(quiesce, waits_for_a_running_thread_inside)
{
    if (ktest_lacks_cpus(2))
        return;
    thread_set_affinity(BIT(0));
    waits_for_wanderer(BIT(1), BIT(0));
}

/* Each store of the thread is a #DB, which ends with its ip inside. */
KTEST(quiesce, waits_for_a_thread_with_watch_hits_inside)
{
    struct watch w = watch_of(&at, WATCH_WRITE, sizeof(at), note_hit);

    if (ktest_lacks_cpus(2))
        return;
    thread_set_affinity(BIT(0));
    noted.calls = 0;
    ktest_report(!register_watch(&w), "what a thread stores to is watched");
    waits_for_wanderer(BIT(1), BIT(0));
    unregister_watch(&w);
    ktest_report(noted.calls > 3, "it has stored often");
}

struct parked {
    unsigned inside;
};

static void find_parked(struct thread *t, void *arg)
{
    struct parked *p = arg;

    if (t->preempted_regs && inside(t->preempted_regs->ip) && t->left_by == SWITCH_IRQ)
        p->inside++;
}

/* All threads are on one CPU. So whenever this thread runs, the other
 * thread is preempted.
 */
KTEST(quiesce, waits_for_a_thread_preempted_inside)
{
    struct parked p = { 0 };
    int wanderer, helper;

    thread_set_affinity(BIT(0));
    predicate_set();
    wanderer = wanderer_start(BIT(0));
    ktest_report(sleep_until(at, INSIDE), "a thread is in the code, on this CPU");
    preempt_disable();
    thread_for_each(find_parked, &p);
    preempt_enable();
    ktest_report(p.inside == 1, "it is preempted there, by an interrupt");
    helper = helper_start(BIT(0));
    thread_sleep_ns(LONG_ENOUGH);
    ktest_report(!READ_ONCE(came_back), "quiesce() waits");
    go_to(OUTSIDE);
    ktest_report(sleep_until(came_back, true), "it returns when the thread has left");
    go_to(DONE);
    thread_join(helper, NULL);
    thread_join(wanderer, NULL);
    predicate_restore();
}

KTEST(quiesce, does_not_wait_for_those_outside)
{
    int wanderer, helper;

    predicate_set();
    wanderer = wanderer_start(0);
    go_to(OUTSIDE);
    ktest_report(sleep_until(at, OUTSIDE), "a thread spins outside the code");
    helper = helper_start(0);
    ktest_report(sleep_until(came_back, true), "quiesce() returns while it spins");
    ktest_report(READ_ONCE(at) == OUTSIDE, "and it does still spin");
    go_to(DONE);
    thread_join(helper, NULL);
    thread_join(wanderer, NULL);
    predicate_restore();
}

/* ---- preemption off -------------------------------------------------------------------- */

static int spin_unpreemptible(void *arg UNUSED)
{
    preempt_disable();
    spin_outside();
    preempt_enable();
    WRITE_ONCE(at, INSIDE); /* only a name for the next place, with preemption on */
    while (READ_ONCE(leave_to) == INSIDE)
        pause();
    return 0;
}

KTEST(quiesce, waits_for_a_thread_with_preemption_off)
{
    int spinner, helper;

    if (ktest_lacks_cpus(2))
        return;
    thread_set_affinity(BIT(0));
    predicate_set();
    go_to(OUTSIDE);
    spinner = ktest_thread(spin_unpreemptible, NULL, BIT(1));
    ktest_report(sleep_until(at, OUTSIDE), "a thread spins outside, preemption off");
    helper = helper_start(BIT(0));
    thread_sleep_ns(LONG_ENOUGH);
    ktest_report(!READ_ONCE(came_back), "quiesce() waits: it may be a handler");
    go_to(INSIDE);
    ktest_report(sleep_until(came_back, true), "it returns once preemption is on");
    go_to(DONE);
    thread_join(helper, NULL);
    thread_join(spinner, NULL);
    predicate_restore();
}

/* ---- switched out by preempt_enable() -------------------------------------------------- */

static bool blocking;

static int yield_at_preempt_enable(void *arg UNUSED)
{
    while (READ_ONCE(leave_to) == INSIDE) {
        preempt_disable();
        while (!READ_ONCE(this_cpu()->need_resched) && READ_ONCE(leave_to) == INSIDE)
            pause();
        preempt_enable();
    }
    WRITE_ONCE(at, DONE);
    return 0;
}

static int share_the_cpu(void *arg UNUSED)
{
    while (READ_ONCE(blocking))
        pause();
    return 0;
}

struct seized {
    int tid;
    struct thread *thread;
};

/* seize - if @t is the thread under test, and preempt_enable() has switched it out, let
 * no CPU run it any more. thread_for_each() has pinned the thread, so it is not freed
 * meanwhile; the test joins it later.
 */
static void seize(struct thread *t, void *arg)
{
    struct seized *s = arg;

    if (t->tid != s->tid || t->state != THREAD_READY || t->left_by != SWITCH_PREEMPT)
        return;
    WRITE_ONCE(t->cpus, BIT(MAX_CPUS - 1));
    thread_sleep_ns(20 * MS); /* a CPU that had already chosen it runs it now */
    if (t->state == THREAD_READY && t->left_by == SWITCH_PREEMPT)
        s->thread = t;
    else
        WRITE_ONCE(t->cpus, BIT(1));
}

KTEST(quiesce, waits_for_a_thread_switched_out_by_preempt_enable)
{
    struct seized s = { 0 };
    int block, helper;

    if (cpu_count() < 2 || cpu_count() == MAX_CPUS) {
        ktest_skip("needs two CPUs, and not all that there can be");
        return;
    }
    thread_set_affinity(BIT(0));
    predicate_set();
    WRITE_ONCE(blocking, true);
    go_to(INSIDE);
    s.tid = ktest_thread(yield_at_preempt_enable, NULL, BIT(1));
    block = ktest_thread(share_the_cpu, NULL, BIT(1));
    for (unsigned n = 0; n < 1000 && !s.thread; n++) {
        thread_sleep_ns(MS);
        thread_for_each(seize, &s);
    }
    ktest_report(s.thread != NULL, "a thread is off its CPU, by preempt_enable()");
    helper = helper_start(BIT(0));
    thread_sleep_ns(LONG_ENOUGH);
    ktest_report(!READ_ONCE(came_back), "quiesce() waits: its caller is not known");
    WRITE_ONCE(blocking, false);
    if (s.thread)
        WRITE_ONCE(s.thread->cpus, BIT(0) | BIT(1));
    go_to(DONE);
    ktest_report(sleep_until(came_back, true), "it returns when the thread has run on");
    thread_join(helper, NULL);
    thread_join(block, NULL);
    thread_join(s.tid, NULL);
    predicate_restore();
}

/* ---- without a predicate --------------------------------------------------------------- */

static int spin_then_yield(void *arg UNUSED)
{
    spin_outside();
    thread_yield();
    WRITE_ONCE(at, INSIDE);
    while (READ_ONCE(leave_to) == INSIDE)
        pause();
    return 0;
}

KTEST(quiesce, without_a_predicate_everybody_must_switch_willingly)
{
    int spinner, helper;

    others_inside = quiesce_set_inside(NULL);
    go_to(OUTSIDE);
    spinner = ktest_thread(spin_then_yield, NULL, 0);
    ktest_report(sleep_until(at, OUTSIDE), "a thread spins");
    helper = helper_start(0);
    thread_sleep_ns(LONG_ENOUGH);
    ktest_report(!READ_ONCE(came_back), "quiesce() waits");
    go_to(INSIDE);
    ktest_report(sleep_until(came_back, true), "it returns after the thread has yielded");
    ktest_report(READ_ONCE(at) == INSIDE, "which spins again");
    go_to(DONE);
    thread_join(helper, NULL);
    thread_join(spinner, NULL);
    predicate_restore();
}

KTEST(quiesce, several_callers_at_once)
{
    int tids[4];

    predicate_set();
    for (unsigned i = 0; i < 4; i++)
        tids[i] = helper_start(0);
    for (unsigned i = 0; i < 4; i++)
        thread_join(tids[i], NULL);
    predicate_restore();
    ktest_report(READ_ONCE(came_back), "four callers all came back");
}

/* ---- threads that are hardly ever outside ---------------------------------------------- */

static uint64_t hits_begun;
static volatile bool hitters_stop;

KTEST_TARGET(hit_me, x, x + 1)

/* This handler takes half a millisecond, and the rest of the loop less than a thousandth
 * of that. So the threads are nearly always in hits.
 */
static int take_long(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    __atomic_add_fetch(&hits_begun, 1, __ATOMIC_RELAXED);
    clock_spin_ns(MS / 2);
    return 0;
}

static int hit_on(void *arg UNUSED)
{
    while (!hitters_stop)
        hit_me(1);
    return 0;
}

static void ends_among_hitters(enum optimize_method method, const char *how)
{
    struct kprobe p = { .addr = (uintptr_t)hit_me, .pre_handler = take_long };
    int tids[2 * MAX_CPUS];
    unsigned count = 2 * cpu_count();
    uint64_t before;

    hitters_stop = false;
    jumps_by(method);
    register_kprobe(&p);
    optimize_run();
    for (unsigned n = 0; n < count; n++)
        tids[n] = ktest_thread(hit_on, NULL, 0);
    thread_sleep_ns(20 * MS);
    before = __atomic_load_n(&hits_begun, __ATOMIC_RELAXED);
    for (unsigned n = 0; n < 3; n++)
        quiesce();
    before = __atomic_load_n(&hits_begun, __ATOMIC_RELAXED) - before;
    hitters_stop = true;
    for (unsigned n = 0; n < count; n++)
        thread_join(tids[n], NULL);
    unregister_kprobe(&p);
    jumps_as_before();
    ktest_report(before < 1000 * count, "%s: within %lu hits of %u threads", how, before,
                 count);
}

KTEST(quiesce, ends_among_threads_that_are_always_in_hits)
{
    ends_among_hitters(OPTIMIZE_OFF, "by traps");
    ends_among_hitters(OPTIMIZE_PUN, "by jumps");
}

/* ---- what counts as an end of a hit ---------------------------------------------------- */

/* ask - let quiesce() ask for the end of this hit. No earlier end has counted. */
static void ask(void)
{
    thread_current()->quiesce_hit = 0;
    this_cpu()->need_hit_end = true;
}

static int ask_before(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    ask();
    return 0;
}

static void ask_behind(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                       unsigned long flags UNUSED)
{
    ask();
}

/* counts - does the end count behind which the handler of @p asks? */
static bool counts(struct kprobe *p, enum optimize_method method)
{
    uint64_t noted_end = 0;

    p->addr = (uintptr_t)hit_me;
    jumps_by(method);
    register_kprobe(p);
    optimize_run();
    for (unsigned i = 0; i < 3 && !noted_end; i++) { /* a tick right in front of an end */
        hit_me(1);                                   /* takes the question back */
        noted_end = thread_current()->quiesce_hit;
    }
    unregister_kprobe(p);
    jumps_as_before();
    return noted_end;
}

static void one_end(enum optimize_method method, const char *how)
{
    ktest_report(counts(&(struct kprobe){ .pre_handler = ask_before }, method),
                 "%s: the end in front of the copy counts", how);
    ktest_report(!counts(&(struct kprobe){ .post_handler = ask_behind }, method),
                 "%s: no second end counts behind the copy", how);
}

KTEST(quiesce, a_hit_has_one_end)
{
    quiesce();
    one_end(OPTIMIZE_OFF, "by traps");
    one_end(OPTIMIZE_PUN, "by jumps");
}
