/* test_handlers.c - handlers that do what a handler must not do, or that take long. */
#include "kernel/sync/mutex.h"
#include "kernel/sync/spinlock.h"
#include "probes/jump/optimize.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/logged.h"

#define MS UINT64_C(1000000)

KTEST_TARGET(target, x, x * 9 + 2)

static bool target_is_right(void)
{
    return target(3) == 29;
}

static volatile uint64_t entered, left;

/* ---- handlers that sleep --------------------------------------------------------------- */

static struct mutex free_mutex = MUTEX_INIT(free_mutex);
static struct mutex held_mutex = MUTEX_INIT(held_mutex);
static struct wait_queue wakes_no_thread = WAIT_QUEUE_INIT(wakes_no_thread);
static volatile bool never;

static void lock_free(void)
{
    mutex_lock(&free_mutex);
}

static void lock_held(void)
{
    mutex_lock(&held_mutex);
}

static void doze(void)
{
    thread_sleep_ns(MS);
}

static void wait_for_ever(void)
{
    wait_event(&wakes_no_thread, never);
}

static void (*volatile sleeps)(void);

static int sleepy(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    entered++;
    sleeps();
    left++;
    return 0;
}

static void sleepy_after(struct kprobe *p, struct pt_regs *regs,
                         unsigned long flags UNUSED)
{
    sleepy(p, regs);
}

static bool is_logged_soon(const char *a, const char *b, unsigned before)
{
    for (unsigned n = 0; n < 1000; n++) {
        if (logged(a, b) > before)
            return true;
        thread_sleep_ns(MS);
    }
    return false;
}

static void sleeping_is_refused(void (*how)(void), const char *name, bool after)
{
    struct kprobe p = { .addr = (uintptr_t)target };
    unsigned before = logged("probe at target", "about to sleep"), right = 0;

    if (after)
        p.post_handler = sleepy_after;
    else
        p.pre_handler = sleepy;
    sleeps = how;
    entered = left = 0;
    register_kprobe(&p);
    for (int n = 0; n < 3; n++)
        right += target_is_right();
    unregister_kprobe(&p);
    ktest_report(entered == 1 && left == 0, "%s: the handler got no further", name);
    ktest_report(right == 3, "%s: the function returns what it should", name);
    ktest_report(p.flags & KPROBE_FLAG_TRIPPED, "%s: the probe is switched off", name);
    ktest_report(preempt_count() == 0 && irqs_enabled(), "%s: nothing is left behind",
                 name);
    ktest_report(is_logged_soon("probe at target", "about to sleep", before),
                 "%s: the log names the probe and the reason", name);
}

KTEST(handlers, one_that_sleeps_is_given_up)
{
    mutex_lock(&held_mutex);
    sleeping_is_refused(thread_yield, "thread_yield", false);
    sleeping_is_refused(doze, "thread_sleep_ns", false);
    sleeping_is_refused(lock_free, "mutex_lock, though it is free", false);
    sleeping_is_refused(lock_held, "mutex_lock, held by the thread", false);
    sleeping_is_refused(wait_for_ever, "wait_event", false);
    sleeping_is_refused(thread_yield, "thread_yield in a post-handler", true);
    mutex_unlock(&held_mutex);
    ktest_report(mutex_trylock(&free_mutex), "the mutex is as it was");
    mutex_unlock(&free_mutex);
    ktest_report(list_empty(&wakes_no_thread.waiters), "so is the queue");
}

static void hit_in_call(void *unused UNUSED)
{
    target(1);
}

KTEST(handlers, one_that_sleeps_in_an_interrupt_is_given_up)
{
    struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = sleepy };

    sleeps = thread_yield;
    entered = left = 0;
    register_kprobe(&p);
    smp_call_all(hit_in_call, NULL);
    unregister_kprobe(&p);
    ktest_report(entered >= 1 && left == 0 && p.flags & KPROBE_FLAG_TRIPPED,
                 "on each CPU that came in time (%lu)", entered);
}

/* ---- handlers that fault --------------------------------------------------------------- */

static volatile char *volatile nowhere = (volatile char *)0x10;

static NOINLINE int stumble(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    return *nowhere;
}

KTEST(handlers, one_that_faults_is_in_the_log)
{
    struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = stumble };
    unsigned before = logged("probe at target", "#PF page fault at stumble+");

    register_kprobe(&p);
    target(1);
    ktest_report(is_logged_soon("probe at target", "#PF page fault at stumble+", before),
                 "with its probe, the fault and the place");
    target(1);
    unregister_kprobe(&p);
    ktest_report(logged("probe at target", "stumble+") == before + 1, "once");
}

/* ---- handlers that take long ----------------------------------------------------------- */

static volatile uint64_t take_ns;

static int dawdle(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    entered++;
    clock_spin_ns(take_ns);
    left++;
    return 0;
}

static int hit_once(void *unused UNUSED)
{
    return !target_is_right();
}

static void answer(void *count)
{
    __atomic_add_fetch((unsigned *)count, 1, __ATOMIC_RELAXED);
}

KTEST(handlers, one_that_takes_a_second_does_no_harm)
{
    struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = dawdle };
    struct clone_args hit = { .fn = hit_once, .cpus = BIT(cpu_count() - 1) };
    unsigned answers = 0;
    int tid, code = 1;

    take_ns = ktest_count(200, 1000) * MS;
    entered = left = 0;
    register_kprobe(&p);
    tid = kernel_clone(&hit);
    while (!entered)
        thread_yield();
    smp_call_all(answer, &answers);
    ktest_report(answers == cpu_count(), "a call to all CPUs waits for its end");
    thread_join(tid, &code);
    ktest_report(code == 0 && left == 1, "the function returns what it should");
    ktest_report(unregister_kprobe(&p) == 0 && p.hits == 1, "the probe was hit once");
}

/* linger - take long, the first time until this is noticed: on a CPU that is alone, with
 * interrupts off, that is behind the hit.
 */
static int linger(struct kprobe *p, struct pt_regs *regs UNUSED)
{
    bool behind = cpu_count() == 1 && !irqs_enabled();
    uint64_t end = clock_ns() + (behind ? 400 : 5000) * MS;

    entered++;
    while (!p->site->told_long && clock_ns() < end)
        pause();
    if (entered > 1)
        clock_spin_ns(300 * MS);
    left += behind || p->site->told_long;
    return 0;
}

static void linger_light(struct kprobe *p, uintptr_t ip UNUSED)
{
    linger(p, NULL);
}

static uint64_t longest_ns; /* of hasten() */

/* A busy host may stop a CPU in here. */
static int hasten(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    uint64_t start = clock_ns(), took;

    entered++;
    clock_spin_ns(2 * MS);
    took = clock_ns() - start;
    if (took > longest_ns)
        longest_ns = took;
    return 0;
}

static void lingering_is_told(struct kprobe p, const char *handler, bool jump,
                              bool irqs_off)
{
    unsigned before = logged(handler, "of the probe at target");
    unsigned long flags = 0;
    bool right;

    p.addr = (uintptr_t)target;
    entered = left = 0;
    register_kprobe(&p);
    if (jump)
        optimize_run();
    right = !(p.flags & KPROBE_FLAG_OPTIMIZED) == !jump;
    for (int n = 0; n < 2; n++) {
        if (irqs_off)
            flags = irq_save();
        target(1);
        if (irqs_off)
            irq_restore(flags);
    }
    ktest_report(is_logged_soon(handler, "of the probe at target", before) && right &&
                     entered == 2 && left == 2,
                 "%s %s: it is in the log", handler, jump ? "by a jump" : "by a trap");
    unregister_kprobe(&p);
    ktest_report(logged(handler, "of the probe at target") == before + 1, "once");
}

KTEST(handlers, one_that_takes_long_is_named_once)
{
    struct kprobe quick = { .addr = (uintptr_t)target, .pre_handler = hasten };
    static const struct kprobe pre = { .pre_handler = linger },
                               light = { .light_handler = linger_light };
    uint64_t end;

    lingering_is_told(pre, " linger+", false, false);
    lingering_is_told(light, " linger_light+", false, false);
    jumps_by(OPTIMIZE_PUN);
    lingering_is_told(pre, " linger+", true, false);
    lingering_is_told(light, " linger_light+", true, false);
    if (cpu_count() > 1)
        lingering_is_told(pre, " linger+", true, true);
    entered = longest_ns = 0;
    register_kprobe(&quick);
    optimize_run();
    for (end = clock_ns() + 300 * MS; clock_ns() < end;)
        target(1);
    unregister_kprobe(&quick);
    jumps_as_before();
    ktest_report(entered > 2 && (!logged(" hasten+", "of the probe at target") ||
                                 longest_ns >= 100 * MS),
                 "many short ones are not");
}

static int dawdle_over_a_jump(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    uint64_t start = clock_ns();

    clock_spin_ns(30 * MS);
    ktest_clock_jump(1000);
    clock_spin_ns(30 * MS);
    longest_ns = clock_ns() - start - 1000 * MS;
    return 0;
}

KTEST(handlers, a_jump_of_the_clock_is_no_long_handler)
{
    struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = dawdle_over_a_jump };

    if (ktest_lacks_cpus(2))
        return;
    register_kprobe(&p);
    target(1);
    ktest_report(!p.site->told_long || longest_ns >= 75 * MS, "it is not reported");
    unregister_kprobe(&p);
}

/* ---- what is logged -------------------------------------------------------------------- */

KTEST(handlers, what_is_logged_of_one_is_own_work)
{
    static const struct kprobe_op ops[] = {
        KPROBE_GET(KPROBE_OWN), KPROBE_IF(KPROBE_VALUE, KPROBE_ANY, KPROBE_OWN_BITS, 2),
        KPROBE_COUNT(0),        KPROBE_END,
        KPROBE_COUNT(1),
    };
    static struct kprobe_program told = { .ops = ops, .count = 5, .words = 2 };
    static const kprobe_pre_handler_t handlers[] = { stumble, linger };

    for (size_t i = 0; i < ARRAY_LEN(handlers); i++) {
        struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = handlers[i] };
        struct kprobe log = { .symbol_name = "log_print", .program = &told };
        uint64_t end = clock_ns() + 10000 * MS;
        bool is_own;

        entered = 0;
        register_kprobe(&p);
        register_kprobe(&log);
        target(1);
        while (!program_sum(&told, 0) && !program_sum(&told, 1) && clock_ns() < end)
            thread_sleep_ns(MS);
        is_own = program_sum(&told, 0) == 1 && !program_sum(&told, 1);
        unregister_kprobe(&log);
        unregister_kprobe(&p);
        ktest_report(is_own, "%s", i ? "that it takes long" : "that it has faulted");
    }
}

/* ---- handlers that want a lock --------------------------------------------------------- */

static struct spinlock lock = SPINLOCK_INIT;
static volatile uint64_t got, refused;

static int try_to_lock(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    if (!spin_trylock(&lock)) {
        refused++;
        return 0;
    }
    got++;
    spin_unlock(&lock);
    return 0;
}

KTEST(handlers, one_that_tries_a_lock_its_function_holds)
{
    struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = try_to_lock };

    got = refused = 0;
    register_kprobe(&p);
    target(1);
    spin_lock(&lock);
    target(1);
    spin_unlock(&lock);
    target(1);
    unregister_kprobe(&p);
    ktest_report(got == 2 && refused == 1, "gets it when it is free, else not");
    ktest_report(!(p.flags & KPROBE_FLAG_TRIPPED), "and goes on");
}

/* The probes are on functions of the engine's locks, and on functions that the engine
 * calls while it holds these locks.
 */
KTEST(handlers, what_the_engine_itself_uses_carries_probes)
{
    static const char *const names[] = { "mutex_lock", "mutex_unlock", "kzalloc",
                                         "kfree",      "smp_call_all", "quiesce",
                                         "exec_alloc", "exec_free",    "plat_lock",
                                         "kprobe_arm", "kprobe_disarm" };
    struct kprobe p[ARRAY_LEN(names)] = { 0 };
    unsigned in = 0, good = 0;

    take_ns = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        p[i] = (struct kprobe){ .symbol_name = names[i], .pre_handler = try_to_lock };
        in += register_kprobe(&p[i]) == 0;
    }
    for (int n = 0; n < 10; n++) {
        struct kprobe q = { .addr = (uintptr_t)target };

        good += register_kprobe(&q) == 0;
        good += target_is_right() && q.hits == 1;
        good += unregister_kprobe(&q) == 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        good += unregister_kprobe(&p[i]) == 0;
    ktest_report(in == ARRAY_LEN(names), "%u probes are set", in);
    ktest_report(good == 30 + in, "and others come and go meanwhile");
    ktest_report(p[0].hits >= 40, "%lu times through mutex_lock", p[0].hits);
}

/* ---- probes that leave others ---------------------------------------------------------- */

static uint64_t light_calls;

static void count_light(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    light_calls++;
}

/* expect_left - of two probes as @like at a place, which is a jump, the second leaves or is
 * disabled. From then on nothing is done for it: its counter may belong to another probe.
 */
static void expect_left(const char *what, struct kprobe like, bool disabled)
{
    struct kprobe stays = like, leaves = like;
    struct kprobe *both[] = { &stays, &leaves };
    bool jumps, ok;

    stays.addr = leaves.addr = (uintptr_t)target;
    ok = !register_kprobes(both, 2);
    optimize_run();
    jumps = stays.flags & KPROBE_FLAG_OPTIMIZED;
    ok &= target_is_right();
    light_calls = 0;
    if (disabled) {
        ok &= !disable_kprobe(&leaves);
    } else {
        ok &= !unregister_kprobe(&leaves);
        leaves = like;
        leaves.addr = (uintptr_t)doze;
        ok &= !register_kprobe(&leaves);
    }
    ok &= target_is_right();
    optimize_run();
    ok &= target_is_right();
    ktest_report(ok && jumps, "%s: two probes are a jump", what);
    ktest_report(kprobe_hits(&stays) == 3, "%s: the other has each hit", what);
    ktest_report(kprobe_hits(&leaves) == disabled, "%s: none counts for it", what);
    ktest_report(light_calls == (like.light_handler ? 2 : 0), "%s: it is not called",
                 what);
    unregister_kprobes(both, 2);
}

KTEST(handlers, one_that_has_left_others_is_over)
{
    static const struct kprobe counts, calls = { .light_handler = count_light };

    jumps_by(OPTIMIZE_PUN);
    expect_left("a counter is unregistered", counts, false);
    expect_left("a counter is disabled", counts, true);
    expect_left("a light handler is unregistered", calls, false);
    expect_left("a light handler is disabled", calls, true);
}
