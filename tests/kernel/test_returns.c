/* test_returns.c - return probes in difficult cases: many threads, deep stacks, frames
 * that are left without a return, interrupts and NMIs at any instruction; and what
 * backtraces show.
 */
#include "kernel/cpu/trap.h"
#include "kernel/debug/backtrace.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/log.h"
#include "kernel/debug/panic.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop_machine.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/many/walk.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/shadow.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/return_targets.h"
#include "tests/kernel/sleepers.h"
#include "tests/kernel/workers.h"

/* probe_names - register a return probe at each function of @names, of which the compiler
 * may have inlined some. Return: how many could be probed.
 */
static unsigned probe_names(struct kretprobe *rps, const char *const *names, size_t count)
{
    unsigned probed = 0;

    for (size_t i = 0; i < count; i++) {
        rps[i] =
            (struct kretprobe){ .kp.symbol_name = names[i], .handler = return_count };
        if (register_kretprobe(&rps[i]))
            rps[i].handler = NULL;
        else
            probed++;
    }
    return probed;
}

/* What the probes of probe_names() have seen. */
static uint64_t names_hits, names_missed, names_dropped;

static void unprobe_names(struct kretprobe *rps, size_t count)
{
    names_hits = names_missed = names_dropped = 0;
    for (size_t i = 0; i < count; i++) {
        if (!rps[i].handler)
            continue;
        unregister_kretprobe(&rps[i]);
        names_hits += kprobe_hits(&rps[i].kp);
        names_missed += rps[i].nmissed;
        names_dropped += rps[i].dropped;
    }
}

/* ---- many threads asleep inside ---- */

KTEST(returns, h82_a_thousand_threads_asleep_inside)
{
    int *tids = kzalloc(SLEEPERS * sizeof(*tids));
    struct kretprobe rp = { .data_size = 64 };
    unsigned made;

    return_counts_start();
    return_probe(&rp, sleep_inside);
    made = sleepers_start(tids, SLEEPERS);
    ktest_report(made == SLEEPERS && sleepers.inside == SLEEPERS, "%u threads are inside",
                 made);
    ktest_report(return_counts.returned == 0, "none has returned");
    sleepers_end(tids, SLEEPERS);
    ktest_report(return_counts.returned == SLEEPERS && sleepers.came_back == SLEEPERS,
                 "%lu returns were seen, and went where they should",
                 return_counts.returned);
    ktest_report(!rp.nmissed && !rp.kp.nmissed && !rp.dropped, "none was missed");
    unregister_kretprobe(&rp);
    kfree(tids);
}

/* The test overwrites the memory of the unregistered probe, as if its module had
 * been unloaded. If the engine still used it, it would call a handler at an
 * address that faults.
 */
KTEST(returns, h91_unregistering_does_not_wait_for_calls)
{
    int *tids = kzalloc(SLEEPERS * sizeof(*tids));
    struct kretprobe *rp = kzalloc(sizeof(*rp)), again = { 0 };
    unsigned made;
    int err;

    return_counts_start();
    return_probe(rp, sleep_inside);
    made = sleepers_start(tids, SLEEPERS);
    err = unregister_kretprobe(rp);
    memset(rp, 0xa5, sizeof(*rp));
    ktest_report(err == 0 && sleepers.inside == made && !sleepers.came_back,
                 "it is gone, and %u threads are still inside", made);
    ktest_report(return_probe(&again, sleep_inside) == 0, "another one may come");
    sleepers_end(tids, SLEEPERS);
    ktest_report(sleepers.came_back == made, "all of them came back");
    ktest_report(return_counts.returned == 0, "unseen by either");
    unregister_kretprobe(&again);
    kfree(rp);
    kfree(tids);
}

KTEST(returns, with_kprobes_off_as_a_whole_no_handler_runs)
{
    struct kretprobe rp = { 0 };
    unsigned made;
    int tid;

    return_counts_start();
    return_probe(&rp, sleep_inside);
    made = sleepers_start(&tid, 1);
    kprobes_switch(false);
    sleepers_end(&tid, 1);
    ktest_report(made && sleepers.came_back && !return_counts.returned,
                 "a call from before returns unseen");
    ktest_report(rp.missed[KRETPROBE_MISS_RETURN] == 1, "and is counted as missed");
    kprobes_switch(true);
    sleepers_start(&tid, 1);
    sleepers_end(&tid, 1);
    ktest_report(return_counts.returned == 1, "with kprobes on again, one is seen");
    unregister_kretprobe(&rp);
}

KTEST(returns, h95_calls_from_before_are_never_reported)
{
    struct kretprobe rp = { 0 };
    int tids[10];

    return_counts_start();
    sleepers_start(tids, 10);
    return_probe(&rp, sleep_inside);
    sleepers_end(tids, 10);
    ktest_report(sleepers.came_back == 10 && return_counts.returned == 0 && !rp.nmissed,
                 "ten returns, none of them the probe's");
    sleepers_start(tids, 10);
    sleepers_end(tids, 10);
    ktest_report(return_counts.returned == 10, "ten that are");
    unregister_kretprobe(&rp);
}

/* ---- the scheduler ---- */

static int yield_often(void *unused UNUSED)
{
    for (int i = 0; i < 200; i++)
        thread_yield();
    return 0;
}

KTEST(returns, h43_h92_functions_that_switch_threads)
{
    static const char *const names[] = { "schedule",  "thread_yield", "leave_willingly",
                                         "leave_cpu", "sched_arrive", "queue_take",
                                         "choose",    "account",      "schedule_irq" };
    struct kretprobe rps[ARRAY_LEN(names)];
    int tids[16];
    unsigned probed;

    return_counts_start();
    probed = probe_names(rps, names, ARRAY_LEN(names));
    ktest_note("%u functions of the scheduler", probed);
    for (size_t i = 0; i < ARRAY_LEN(tids); i++)
        tids[i] = ktest_thread(yield_often, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(tids); i++)
        thread_join(tids[i], NULL);
    unprobe_names(rps, ARRAY_LEN(names));
    ktest_report(probed >= 3 && names_hits >= 16 * 200, "they were called %lu times",
                 names_hits);
    ktest_report(!names_missed && !return_counts.wrong, "no return was missed");
    ktest_report(return_counts.returned > 16 * 200, "%lu returns",
                 return_counts.returned);
}

/* ---- depth ---- */

#define DEPTH 10000
#define DEEP_STACK_LEN ((size_t)1 << 20)

static NOINLINE long recurse_deep(long n)
{
    volatile long kept = n; /* makes a larger frame, and prevents a tail call */

    return n ? recurse_deep(n - 1) + (kept == n) : 0;
}

static int go_deep(void *arg)
{
    uint64_t *results = arg;

    results[0] = (uint64_t)recurse_deep(DEPTH);
    results[1] = return_recurse(DEPTH);
    return 0;
}

KTEST(returns, h83_ten_thousand_calls_deep)
{
    struct kretprobe rps[2] = { [0] = { .data_size = 16 }, [1] = { .data_size = 0 } };
    uint64_t results[2] = { 0 };
    int tid;

    return_counts_start();
    return_probe(&rps[0], recurse_deep);
    return_probe(&rps[1], return_recurse);
    tid = kernel_clone(&(struct clone_args){
        .fn = go_deep, .arg = results, .stack_len = DEEP_STACK_LEN, .name = "deep" });
    ktest_report(tid > 0 && thread_join(tid, NULL) == 0,
                 "a thread with a stack of 1 MiB");
    ktest_report(results[0] == DEPTH && results[1] == DEPTH, "%d calls deep, twice",
                 DEPTH);
    ktest_report(return_counts.returned == 2 * (DEPTH + 1) && !return_counts.wrong,
                 "%lu returns were seen", return_counts.returned);
    for (unsigned i = 0; i < 2; i++) {
        ktest_report(!rps[i].nmissed && !rps[i].kp.nmissed && !rps[i].dropped,
                     "none was missed%s", i ? "" : ", all had data");
        unregister_kretprobe(&rps[i]);
    }
}

static int recurse_once(void *unused UNUSED)
{
    return (int)return_recurse(1);
}

/* Only in a boot without data of instances there is an allocation for it that can fail. */
KTEST(returns, one_that_is_refused_leaves_threads_their_shadows)
{
    struct kretprobe plain = { 0 }, with_data = { .data_size = 16 };
    int err = -ENOMEM;
    long n = 1;

    return_counts_start();
    return_probe(&plain, return_recurse);
    for (; n < 100 && err == -ENOMEM; n++) {
        heap_fail_after(n);
        err = return_probe(&with_data, recurse_deep);
        heap_fail_after(-1);
        thread_join(ktest_thread(recurse_once, NULL, 0), NULL);
    }
    ktest_report(
        !err && plain.nmissed == 0 && kprobe_hits(&plain.kp) == 2 * (uint64_t)n - 2,
        "%ld times without memory: threads that are born then miss nothing", n - 2);
    unregister_kretprobe(&with_data);
    unregister_kretprobe(&plain);
}

/* ---- frames that are left without returning ---- */

static NOINLINE long jump_from(struct return_env *env, long depth)
{
    volatile long kept = depth; /* so that the compiler makes no loop of it */

    if (depth == 0)
        return_longjmp(env, 7);
    if (depth > 1000)
        return 0;
    return jump_from(env, depth - 1) + kept;
}

static NOINLINE long jump_round(long depth)
{
    struct return_env env;

    if (return_setjmp(&env) == 7)
        return 3;
    return jump_from(&env, depth);
}

KTEST(returns, h84_a_longjmp_leaves_frames_behind)
{
    struct kretprobe rp = { .data_size = 32, .maxactive = 50 }, round = { 0 };
    unsigned right = 0;

    return_counts_start();
    return_probe(&rp, jump_from);
    return_probe(&round, jump_round);
    for (int i = 0; i < 100; i++)
        right += jump_round(i % 10) == 3;
    ktest_report(right == 100, "each round ended as it should");
    ktest_report(return_counts.returned == 100 && !return_counts.wrong,
                 "the function that was jumped to returned 100 times");
    ktest_report(rp.dropped == kprobe_hits(&rp.kp) && kprobe_hits(&rp.kp) == 550,
                 "all %lu calls that were left are dropped", rp.dropped);
    ktest_report(!rp.nmissed && !round.nmissed, "none was missed: they left no gap");
    unregister_kretprobe(&round);
    unregister_kretprobe(&rp);
}

static NOINLINE long exit_inside(long x)
{
    if (x >= 0)
        do_exit(5);
    return x + 1;
}

static int end_inside(void *unused UNUSED)
{
    return (int)exit_inside(1) + 1;
}

KTEST(returns, h84_threads_end_inside)
{
    struct kretprobe rps[3] = { [0] = { .maxactive = 4, .data_size = 16 } };
    size_t before;
    unsigned ended = 0;

    return_counts_start();
    return_probe(&rps[0], exit_inside);
    return_probe(&rps[1], do_exit);
    rps[2].kp.symbol_name = "sched_exit";
    rps[2].handler = return_count;
    register_kretprobe(&rps[2]);
    optimize_run(); /* otherwise the optimizer would allocate memory later */
    before = heap_block_count();
    for (int i = 0; i < 50; i++) {
        int code = 0, tid = ktest_thread(end_inside, NULL, 0);

        thread_join(tid, &code);
        ended += code == 5;
    }
    ktest_report(ended == 50, "50 threads ended in the middle");
    ktest_report(return_counts.returned == 0, "none of them returned");
    ktest_report(rps[0].dropped == 50 && !rps[0].nmissed && kprobe_hits(&rps[0].kp) == 50,
                 "their instances are dropped, and no longer count");
    ktest_report(rps[1].dropped == 50 && rps[2].dropped == 50,
                 "so it is with functions that never return");
    ktest_report(heap_block_count() == before, "and nothing is left of them");
    for (size_t i = 0; i < ARRAY_LEN(rps); i++)
        unregister_kretprobe(&rps[i]);
}

/* The drop of an entry reads its holder. holder_sweep() does not free a holder as long as
 * plat_shadow_for_each() finds an entry of it. So the walk must find a shadow until its last
 * entry is dropped.
 */
static struct {
    void (*hook)(struct thread *t, bool is_listed);
    unsigned threads, with_entries, found_empty;
} burials;

static void find_shadow(struct shadow *s, void *arg)
{
    struct thread *t = arg;

    burials.found_empty += s == t->probe && shadow_is_empty(s);
}

static void see_burial(struct thread *t, bool is_listed)
{
    bool is_ours = is_listed && t->exit_code == 5 && t->probe;

    burials.threads += is_ours;
    burials.with_entries += is_ours && !shadow_is_empty(t->probe);
    burials.hook(t, is_listed);
    if (is_ours)
        plat_shadow_for_each(find_shadow, t);
}

static void burials_unsee(void)
{
    thread_burial_hook = burials.hook;
}

KTEST(returns, the_entries_of_a_dead_thread_are_dropped_while_it_is_listed)
{
    struct kretprobe rp = { 0 };
    int code = 0;

    return_probe(&rp, exit_inside);
    burials.hook = thread_burial_hook;
    ktest_at_end(burials_unsee);
    thread_burial_hook = see_burial;
    thread_join(ktest_thread(end_inside, NULL, 0), &code);
    ktest_report(code == 5 && burials.threads == 1 && burials.with_entries == 1,
                 "a thread ended inside of a probed function");
    ktest_report(burials.found_empty == 1, "the walk finds its shadow until it is empty");
    unregister_kretprobe(&rp);
}

static NOINLINE uint64_t elsewhere(uint64_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x + 5;
}

KTEST(returns, h87_on_another_stack_it_is_missed)
{
    uint8_t *stack = kzalloc(16384);
    struct kretprobe rp = { 0 };

    return_counts_start();
    return_probe(&rp, elsewhere);
    ktest_report(return_elsewhere(elsewhere, 1, stack + 16384) == 6,
                 "a function called on a stack that belongs to no thread");
    ktest_report(rp.missed[KRETPROBE_MISS_STACK] == 1 && rp.nmissed == 1,
                 "its return is missed, and counted");
    ktest_report(elsewhere(2) == 7 && return_counts.returned == 1, "the next is seen");
    unregister_kretprobe(&rp);
    kfree(stack);
}

/* ---- locks ---- */

static struct spinlock own_lock;
static uint64_t own_count, own_right;

static NOINLINE void own_take(unsigned long *flags)
{
    spin_lock_irqsave(&own_lock, flags);
}

static NOINLINE void own_release(unsigned long flags)
{
    spin_unlock_irqrestore(&own_lock, flags);
}

static int count_locked(void *unused UNUSED)
{
    for (int i = 0; i < 500; i++) {
        unsigned long flags;

        own_take(&flags);
        own_count++;
        own_release(flags);
        kfree(kmalloc(64));
    }
    return 0;
}

KTEST(returns, h38_functions_of_locks)
{
    static const char *const names[] = { "mutex_lock",     "mutex_unlock", "kmalloc",
                                         "kfree",          "log_print",    "sched_enter",
                                         "preempt_enable", "wake_all",     "memset" };
    struct kretprobe rps[ARRAY_LEN(names)], take = { 0 }, release = { 0 };
    unsigned probed, bad;

    own_count = own_right = 0;
    return_counts_start();
    return_probe(&take, own_take);
    return_probe(&release, own_release);
    probed = probe_names(rps, names, ARRAY_LEN(names));
    bad = each_cpu_run(count_locked, NULL);
    log_info("printed while %u functions that lock are probed", probed);
    unprobe_names(rps, ARRAY_LEN(names));
    ktest_report(probed >= 5, "%u functions of locks and what takes them", probed);
    ktest_report(!bad && own_count == 500ul * cpu_count(),
                 "no thread hangs, nothing is lost");
    ktest_report(kprobe_hits(&take.kp) == own_count && !take.nmissed && !release.nmissed,
                 "a lock of our own: every return was seen");
    unregister_kretprobe(&take);
    unregister_kretprobe(&release);
}

/* ---- everywhere ---- */

struct entries {
    struct kretprobe *rps, **refs;
    size_t room, count, seen;
};

static bool count_function(const struct plat_symbol *function UNUSED, void *arg)
{
    struct entries *all = arg;

    all->room++;
    return true;
}

/* A usual run probes only one of four functions: each is registered by a call of its own.
 */
static bool probe_function(const struct plat_symbol *function, void *arg)
{
    struct entries *all = arg;
    struct kretprobe *rp = &all->rps[all->count];

    if (all->seen++ % ktest_count(4, 1))
        return true;
    *rp = (struct kretprobe){ .kp.addr = function->start, .handler = return_count };
    if (!register_kretprobe(rp))
        all->refs[all->count++] = rp;
    return true;
}

/* every_function - probe the returns of all functions while workers run, which call those
 * that the engine itself uses, too.
 */
static void every_function(enum optimize_method method, const char *how)
{
    struct entries all = { .room = 0 };
    size_t called = 0, calls = 0;
    struct workers workers;

    jumps_by(method);
    walk_functions(NULL, count_function, &all);
    all.rps = kzalloc(all.room * sizeof(all.rps[0]));
    all.refs = kzalloc(all.room * sizeof(all.refs[0]));
    return_counts_start();
    walk_functions(NULL, probe_function, &all);
    optimize_run();
    for (size_t i = 0; i < all.count; i++)
        called += all.rps[i].kp.flags & KPROBE_FLAG_OPTIMIZED &&
                  jump_site(all.rps[i].kp.site)->kind == DETOUR_RETURN;
    workers_start(&workers, 200);
    thread_sleep_ns(20000000);
    ktest_report(!unregister_kretprobes(all.refs, all.count), "%s: %zu probes", how,
                 all.count);
    workers_end(&workers);
    for (size_t i = 0; i < all.count; i++)
        calls += kprobe_hits(&all.rps[i].kp);
    ktest_report(method == OPTIMIZE_OFF ? !called : called > all.count / 2,
                 "%s: %zu are called by a detour", how, called);
    ktest_report(return_counts.returned > 1000 && !return_counts.wrong,
                 "%s: %zu calls, %lu returns, each to where its call came from", how,
                 calls, return_counts.returned);
    kfree(all.refs);
    kfree(all.rps);
}

KTEST(returns, every_function_at_once)
{
    every_function(OPTIMIZE_OFF, "traps");
    every_function(OPTIMIZE_PUN, "jumps");
}

/* ---- interrupts and NMIs ---- */

static volatile uint64_t in_trampoline, misread;

static bool is_in(uintptr_t ip, uintptr_t start, size_t len)
{
    return ip - start < len;
}

/* look - if @regs was interrupted in the trampoline, check that a backtrace begins where
 * the return leads to: behind the call of return_both() in
 * return_call_both().
 */
static void look(const struct pt_regs *regs)
{
    uintptr_t at[2] = { 0 };

    if (!is_in(regs->ip, (uintptr_t)kretprobe_trampoline, 200))
        return;
    in_trampoline++;
    backtrace_collect(regs, at, 2);
    if (!is_in(at[0], (uintptr_t)return_call_both, 64))
        misread++;
}

KTEST(returns, h90_nmis_at_every_instruction_of_a_return)
{
    struct kretprobe rps[3] = { [1] = { .data_size = 40 } };
    uint64_t wrong, count = ktest_count(800, 6000), hits = 0;

    in_trampoline = misread = 0;
    return_counts_start();
    return_probe(&rps[0], return_both);
    return_probe(&rps[1], return_both);
    return_probe(&rps[2], return_leaf);
    wrong = return_storm(count, look);
    for (size_t i = 0; i < ARRAY_LEN(rps); i++) {
        unregister_kretprobe(&rps[i]);
        hits += kprobe_hits(&rps[i].kp);
    }
    ktest_report(!wrong && !return_counts.wrong,
                 "%lu NMIs, every return went where it should", count);
    ktest_report(!rps[0].dropped && !rps[1].dropped && !rps[2].dropped,
                 "no instance was lost");
    ktest_report(
        return_counts.returned + rps[0].nmissed + rps[1].nmissed + rps[2].nmissed == hits,
        "every call seen at its entry is seen at its return, or counted");
    ktest_report(!misread, "%lu came in the trampoline; the real callers were shown",
                 (unsigned long)in_trampoline);
}

KTEST(returns, h90_interrupts_between_entry_and_return)
{
    static const char *const names[] = { "sched_tick", "clock_ns", "schedule_irq",
                                         "trap_dispatch" };
    struct kretprobe rps[ARRAY_LEN(names)], own = { 0 };
    uint64_t wrong, end;
    unsigned probed;

    return_counts_start();
    return_probe(&own, return_both);
    probed = probe_names(rps, names, ARRAY_LEN(names));
    return_load_start();
    end = clock_ns() + 300000000;
    while (clock_ns() < end)
        thread_sleep_ns(1000000);
    wrong = return_load_stop();
    unprobe_names(rps, ARRAY_LEN(names));
    unregister_kretprobe(&own);
    ktest_report(probed >= 3, "%u functions of the tick", probed);
    ktest_report(!wrong && !return_counts.wrong && !own.dropped && !own.nmissed,
                 "every return went where it should");
    ktest_report(!names_missed && !names_dropped, "and so did those of the interrupts");
}

/* ---- backtraces ---- */

#define FRAMES 12

static uintptr_t seen_at[FRAMES];
static size_t seen_count;
static struct {
    uintptr_t at[FRAMES];
    size_t count;
} at_entry, at_return, below_handler;

static NOINLINE long inner(long x)
{
    seen_count = backtrace_collect(NULL, seen_at, FRAMES);
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

static int trace_entry(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs)
{
    at_entry.count = backtrace_collect(regs, at_entry.at, FRAMES);
    return 0;
}

static int trace_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs)
{
    at_return.count = backtrace_collect(regs, at_return.at, FRAMES);
    below_handler.count = backtrace_collect(NULL, below_handler.at, FRAMES);
    return 0;
}

static bool has_run(const uintptr_t *at, size_t count, const uintptr_t *run, size_t len)
{
    for (size_t i = 0; i + len <= count; i++)
        if (memcmp(at + i, run, len * sizeof(*run)) == 0)
            return true;
    return false;
}

KTEST(returns, h86_backtraces_show_the_real_callers)
{
    struct kretprobe rps[3] = { [2] = { .entry_handler = trace_entry,
                                        .handler = trace_return } };
    const uintptr_t *callers = seen_at + 1; /* seen_at[0] is in inner() */
    uintptr_t without[FRAMES];
    size_t count, len;

    outer(1);
    count = seen_count;
    memcpy(without, seen_at, sizeof(without));
    return_probe(&rps[0], outer);
    return_probe(&rps[1], middle);
    return_probe(&rps[2], inner);
    outer(1); /* another call, so one return address differs: without[3] */
    len = (count - 1) * sizeof(without[0]);
    ktest_report(count >= 5 && seen_count == count &&
                     memcmp(without, seen_at, 3 * sizeof(without[0])) == 0 &&
                     memcmp(without + 4, seen_at + 4, len - 3 * sizeof(without[0])) == 0,
                 "inside three probed functions: as without probes");
    ktest_report(at_entry.count == count && is_in(at_entry.at[0], (uintptr_t)inner, 2) &&
                     memcmp(at_entry.at + 1, callers, len) == 0,
                 "at the entry: the function, and its callers");
    ktest_report(at_return.count == count - 1 && memcmp(at_return.at, callers, len) == 0,
                 "in the return handler's image: the callers");
    ktest_report(has_run(below_handler.at, below_handler.count, callers, count - 1),
                 "and from the handler itself, through the engine");
    for (size_t i = 0; i < ARRAY_LEN(rps); i++)
        unregister_kretprobe(&rps[i]);
}

static uintptr_t callers[FRAMES];
static size_t caller_count;
static int of_tid;

static void collect_callers(struct thread *t, void *arg UNUSED)
{
    if (t->tid == of_tid)
        caller_count =
            backtrace_calls(((const struct switch_frame *)t->sp)->bp, callers, FRAMES);
}

static void collect_stopped(void *arg UNUSED)
{
    caller_count = 0;
    thread_for_each(collect_callers, NULL);
}

static void collect_held(void)
{
    unsigned long irqs = irq_save();

    this_cpu()->held = 1;
    collect_stopped(NULL);
    this_cpu()->held = 0;
    irq_restore(irqs);
}

static bool callers_are_real(void)
{
    char names[FRAMES * KSYMS_TEXT_LEN] = "";
    struct ksym sym;

    for (size_t i = 0; i < caller_count; i++) {
        strlcat(names, ksyms_at(callers[i], &sym) ? "?" : sym.name, sizeof(names));
        strlcat(names, " ", sizeof(names));
    }
    ktest_note("%s", names);
    return strstr(names, " sleep_inside sleeper ");
}

KTEST(returns, the_real_callers_of_a_thread_that_sleeps)
{
    struct kretprobe rp = { 0 };
    unsigned made;

    return_probe(&rp, sleep_inside);
    made = sleepers_start(&of_tid, 1);
    while (kprobe_hits(&rp.kp) != made)
        thread_yield();
    thread_sleep_ns(20000000);
    stop_machine(collect_stopped, NULL);
    ktest_report(callers_are_real(), "are known when the machine is stopped");
    collect_held();
    ktest_report(callers_are_real(), "and to a debugger");
    sleepers_end(&of_tid, 1);
    unregister_kretprobe(&rp);
}

static int panic_here(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    panic("from a return handler");
}

KTEST_FATAL(returns, a_panic_shows_the_real_callers)
{
    struct kretprobe rps[3] = { [2] = { .handler = panic_here } };

    return_probe(&rps[0], outer);
    return_probe(&rps[1], middle);
    return_probe(&rps[2], inner);
    outer(1);
}
