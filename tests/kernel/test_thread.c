/* test_thread.c - threads are made, take turns, sleep and end, and all
 * their memory is freed.
 */
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/trap.h"
#include "kernel/mm/frame.h"
#include "kernel/sync/wait.h"
#include "tests/kernel/ktest.h"

#define MS UINT64_C(1000000)

static int return_arg(void *arg)
{
    return (int)(intptr_t)arg;
}

static int exit_with_arg(void *arg)
{
    do_exit((int)(intptr_t)arg);
}

KTEST(thread, join_returns_the_exit_code)
{
    int code = 0;
    int tid = ktest_thread(return_arg, (void *)42, 0);

    ktest_report(tid > 1, "kernel_clone gave a tid");
    ktest_report(thread_join(tid, &code) == 0 && code == 42, "42 was returned");
    tid = ktest_thread(exit_with_arg, (void *)-7, 0);
    ktest_report(thread_join(tid, &code) == 0 && code == -7, "-7 was given to do_exit");
    ktest_report(thread_join(tid, &code) == -ENOENT, "a thread is joined only once");
    ktest_report(thread_join(thread_tid(), &code) != 0, "a thread cannot join itself");
    ktest_report(thread_join(0, &code) == -ENOENT, "idle threads cannot be joined");
    ktest_report(thread_join(-5, &code) == -ENOENT, "nor can what does not exist");
}

KTEST(thread, bad_arguments_are_refused)
{
    struct clone_args no_fn = { 0 };
    struct clone_args odd_stack = { .fn = return_arg, .stack_len = 5000 };

    ktest_report(kernel_clone(&no_fn) == -EINVAL, "no function: -EINVAL");
    ktest_report(kernel_clone(&odd_stack) == -EINVAL, "half a page of stack: -EINVAL");
    if (cpu_count() < MAX_CPUS)
        ktest_report(ktest_thread(return_arg, NULL, BIT(MAX_CPUS - 1)) == -EINVAL,
                     "a CPU that is not there: -EINVAL");
}

/* settle - wait until threads that were detached or have just been joined are freed. */
static void settle(void)
{
    thread_sleep_ns(20 * MS);
}

static size_t frames_free(void)
{
    struct frame_stats stats;

    frame_stats_get(&stats);
    return stats.free;
}

KTEST(thread, clone_without_memory_leaves_nothing_behind)
{
    struct clone_args huge = { .fn = return_arg, .stack_len = 65536 * GiB };
    size_t blocks, bytes, frames;

    thread_join(ktest_thread(return_arg, NULL, 0), NULL);
    settle();
    blocks = heap_block_count();
    bytes = heap_in_use();
    frames = frames_free();
    ktest_report(kernel_clone(&huge) == -ENOMEM, "a stack of 64 TiB: -ENOMEM");
    for (long n = 1; n <= 8; n++) {
        int tid;

        heap_fail_after(n);
        tid = ktest_thread(return_arg, NULL, 0);
        heap_fail_after(-1);
        if (n == 1)
            ktest_report(tid == -ENOMEM, "the first allocation fails: -ENOMEM");
        if (tid > 0)
            thread_join(tid, NULL);
    }
    settle();
    ktest_report(heap_block_count() == blocks, "no block more than before");
    ktest_report(heap_in_use() == bytes, "no byte of heap more than before");
    ktest_report(frames_free() == frames, "no frame less than before");
}

KTEST(thread, a_thousand_rounds_leave_nothing_behind)
{
    size_t blocks, bytes, frames;
    unsigned wrong = 0;

    thread_join(ktest_thread(return_arg, NULL, 0), NULL);
    settle();
    blocks = heap_block_count();
    bytes = heap_in_use();
    frames = frames_free();
    for (int n = 0; n < 1000; n++) {
        int code = -1;

        if (thread_join(ktest_thread(return_arg, (void *)(intptr_t)n, 0), &code) ||
            code != n)
            wrong++;
    }
    settle();
    ktest_report(wrong == 0, "1000 threads were made and joined");
    ktest_report(heap_block_count() == blocks && heap_in_use() == bytes,
                 "the heap is as before");
    ktest_report(frames_free() == frames, "all frames are back");
}

static unsigned detached_done;
static struct wait_queue gate = WAIT_QUEUE_INIT(gate);
static bool gate_open;

static int wait_at_gate(void *arg UNUSED)
{
    wait_event(&gate, READ_ONCE(gate_open));
    __atomic_add_fetch(&detached_done, 1, __ATOMIC_SEQ_CST);
    return 0;
}

/* detached_crowd - make 100 detached threads, all alive at once. Return: the tid of one.
 */
static int detached_crowd(void)
{
    struct clone_args args = { .fn = wait_at_gate, .detached = true };
    int tid = 0;

    WRITE_ONCE(gate_open, false);
    detached_done = 0;
    for (int n = 0; n < 100; n++)
        tid = kernel_clone(&args);
    return tid;
}

static void gate_let_pass(void)
{
    WRITE_ONCE(gate_open, true);
    wake_all(&gate);
}

/* A thread that a walk pins after the reaper has chosen it. */
static struct {
    void (*others)(struct thread *t, bool is_listed); /* the hook of the running kernel */
    int pinned, other;                                /* two detached threads */
    bool may_walk, is_pinned, may_unpin, pinned_has_gone, other_has_gone;
} burial;

static void pin(struct thread *t, void *arg UNUSED)
{
    if (t->tid != burial.pinned)
        return;
    WRITE_ONCE(burial.is_pinned, true);
    while (!READ_ONCE(burial.may_unpin))
        thread_sleep_ns(MS);
}

static int pin_in_a_walk(void *arg UNUSED)
{
    while (!READ_ONCE(burial.may_walk))
        thread_sleep_ns(MS);
    thread_for_each(pin, NULL);
    return 0;
}

static void bury(struct thread *t, bool is_listed)
{
    if (is_listed && t->tid == burial.pinned) {
        WRITE_ONCE(burial.may_walk, true);
        while (!READ_ONCE(burial.is_pinned))
            thread_sleep_ns(MS);
    }
    burial.others(t, is_listed);
    if (!is_listed && t->tid == burial.pinned)
        WRITE_ONCE(burial.pinned_has_gone, true);
    if (!is_listed && t->tid == burial.other)
        WRITE_ONCE(burial.other_has_gone, true);
}

static int end_when_known(void *tid)
{
    while (!READ_ONCE(*(int *)tid))
        thread_sleep_ns(MS);
    return 0;
}

static bool comes_true(const bool *fact)
{
    for (unsigned n = 0; n < 100 && !READ_ONCE(*fact); n++)
        settle();
    return READ_ONCE(*fact);
}

static void detached_ends(int *tid)
{
    WRITE_ONCE(*tid, kernel_clone(&(struct clone_args){
                         .fn = end_when_known, .arg = tid, .detached = true }));
}

KTEST(thread, a_pinned_thread_does_not_stop_the_reaper)
{
    int walker;

    memset(&burial, 0, sizeof(burial));
    burial.others = thread_burial_hook;
    thread_burial_hook = bury;
    walker = ktest_thread(pin_in_a_walk, NULL, 0);
    detached_ends(&burial.pinned);
    ktest_report(comes_true(&burial.is_pinned), "a walk pins the thread that is reaped");
    detached_ends(&burial.other);
    ktest_report(comes_true(&burial.other_has_gone), "another thread is freed meanwhile");
    ktest_report(!burial.pinned_has_gone, "the pinned thread is not");
    WRITE_ONCE(burial.may_unpin, true);
    ktest_report(comes_true(&burial.pinned_has_gone), "it is freed after the walk");
    thread_join(walker, NULL);
    thread_burial_hook = burial.others;
}

/* The first crowd allocates the page tables that a hundred stacks need, and these stay.
 */
KTEST(thread, detached_threads_are_reaped)
{
    size_t bytes, frames;
    int tid;

    bytes = heap_in_use();
    detached_crowd();
    gate_let_pass();
    for (int n = 0; n < 500 && heap_in_use() != bytes; n++)
        settle();
    ktest_report(heap_in_use() == bytes, "a hundred detached threads came and went");
    settle();
    frames = frames_free();
    tid = detached_crowd();
    ktest_report(thread_join(tid, NULL) == -ENOENT, "a detached thread cannot be joined");
    gate_let_pass();
    for (int n = 0; n < 500 && frames_free() != frames; n++)
        settle();
    ktest_report(detached_done == 100, "a hundred ran again");
    ktest_report(heap_in_use() == bytes && frames_free() == frames,
                 "nothing of them is left");
}

/* ---- sleeping -------------------------------------------------------------------------- */

static unsigned woken_order[4], woken_count;
static unsigned too_early, too_late;
static uint64_t naps_base_ns;

static int sleep_some(void *arg)
{
    unsigned n = (unsigned)(uintptr_t)arg;
    uint64_t deadline_ns = naps_base_ns + n * 40 * MS;
    uint64_t now = clock_ns();

    too_late += now >= naps_base_ns;
    thread_sleep_ns(now < deadline_ns ? deadline_ns - now : 0);
    if (clock_ns() < deadline_ns)
        too_early++;
    woken_order[__atomic_fetch_add(&woken_count, 1, __ATOMIC_SEQ_CST)] = n;
    return 0;
}

/* sleep_all - make four threads that sleep for different times. They are on CPU 0, so
 * that they run in the order in which they wake.
 * @lead_ns: within this time all of them must have begun to sleep
 * Return:   false: they have not, because the host was too busy.
 */
static bool sleep_all(uint64_t lead_ns)
{
    static const unsigned naps[4] = { 4, 2, 3, 1 };
    int tids[4];

    woken_count = 0;
    too_early = 0;
    too_late = 0;
    naps_base_ns = clock_ns() + lead_ns;
    for (unsigned i = 0; i < 4; i++) {
        struct clone_args args = { .fn = sleep_some,
                                   .arg = (void *)(uintptr_t)naps[i],
                                   .cpus = BIT(0) };

        tids[i] = kernel_clone(&args);
    }
    for (unsigned i = 0; i < 4; i++)
        thread_join(tids[i], NULL);
    return too_late == 0;
}

KTEST(thread, sleepers_wake_in_the_order_of_their_deadlines)
{
    uint64_t lead_ns = 50 * MS;
    bool ordered = true;

    while (!sleep_all(lead_ns) && lead_ns < 10000 * MS)
        lead_ns *= 2;
    for (unsigned i = 0; i < 4; i++)
        ordered = ordered && woken_order[i] == i + 1;
    ktest_report(too_early == 0, "no thread woke before its time");
    ktest_report(ordered, "deadlines 160, 80, 120 and 40 ms away came in their order");
}

/* ---- taking turns ---------------------------------------------------------------------- */

static bool stop_spinning;
static unsigned long spins[3];

static int spin_and_count(void *arg)
{
    unsigned long *mine = arg;

    while (!READ_ONCE(stop_spinning))
        WRITE_ONCE(*mine, READ_ONCE(*mine) + 1);
    return 0;
}

KTEST(thread, threads_that_never_yield_share_a_cpu)
{
    struct clone_args args = { .fn = spin_and_count, .cpus = BIT(0) };
    int tids[3];
    bool all_ran = false;

    stop_spinning = false;
    memset(spins, 0, sizeof(spins));
    for (unsigned i = 0; i < 3; i++) {
        args.arg = &spins[i];
        tids[i] = kernel_clone(&args);
    }
    for (unsigned n = 0; n < 200 && !all_ran; n++) {
        thread_sleep_ns(10 * MS);
        all_ran = READ_ONCE(spins[0]) && READ_ONCE(spins[1]) && READ_ONCE(spins[2]);
    }
    WRITE_ONCE(stop_spinning, true);
    for (unsigned i = 0; i < 3; i++)
        thread_join(tids[i], NULL);
    ktest_report(all_ran, "three threads bound to CPU 0 all got their turns");
}

/* ---- affinity -------------------------------------------------------------------------- */

static unsigned wrong_cpu;

static int stay_there(void *arg)
{
    unsigned cpu = (unsigned)(uintptr_t)arg;

    for (unsigned n = 0; n < 200; n++) {
        wrong_cpu += cpu_id() != cpu;
        if (n % 20 == 0)
            thread_sleep_ns(1);
        thread_yield();
    }
    return (int)cpu;
}

KTEST(thread, affinity_is_respected)
{
    int tids[MAX_CPUS];
    unsigned right = 0, count = cpu_count();

    wrong_cpu = 0;
    for (unsigned cpu = 0; cpu < count; cpu++) {
        struct clone_args args = { .fn = stay_there,
                                   .arg = (void *)(uintptr_t)cpu,
                                   .cpus = BIT(cpu) };

        tids[cpu] = kernel_clone(&args);
    }
    for (unsigned cpu = 0; cpu < count; cpu++) {
        int code = -1;

        thread_join(tids[cpu], &code);
        right += code == (int)cpu;
    }
    ktest_report(right == count, "a thread for each of %u CPUs ran", count);
    ktest_report(wrong_cpu == 0, "each on its own CPU only");
}

KTEST(thread, a_thread_moves_where_it_is_told)
{
    unsigned wrong = 0;

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        if (thread_set_affinity(BIT(cpu)))
            wrong++;
        wrong += cpu_id() != cpu;
    }
    ktest_report(wrong == 0, "this thread visited every CPU");
    ktest_report(thread_set_affinity(0) == -EINVAL, "no CPU at all is refused");
}

/* ---- walks over all threads -------------------------------------------------------- */

struct census {
    unsigned threads, idle, running_here, bad;
};

/* count_thread - count @t, and look at it again after other threads could have freed it.
 */
static void count_thread(struct thread *t, void *arg)
{
    struct census *c = arg;
    int tid = t->tid;

    c->threads++;
    c->idle += thread_is_idle(t);
    c->running_here += t == thread_current() && t->state == THREAD_RUNNING;
    clock_spin_ns(20000);
    for (unsigned n = 0; n < 4; n++)
        thread_yield();
    if (t->tid != tid || t->state > THREAD_DEAD)
        c->bad++;
}

/* live_shortly - live so long that a walk can come to this thread, and so shortly that
 * the thread ends while the walk looks at it.
 */
static int live_shortly(void *arg UNUSED)
{
    clock_spin_ns(200000);
    return 0;
}

static int come_and_go(void *arg)
{
    while (!READ_ONCE(stop_spinning))
        thread_join(ktest_thread(live_shortly, arg, 0), NULL);
    return 0;
}

KTEST(thread, for_each_is_safe_while_threads_come_and_go)
{
    struct census c = { 0 };
    int tids[2];
    unsigned wrong_idle = 0;

    stop_spinning = false;
    for (unsigned i = 0; i < 2; i++)
        tids[i] = ktest_thread(come_and_go, NULL, 0);
    for (unsigned n = 0; n < 40; n++) {
        struct census once = { 0 };

        thread_for_each(count_thread, &once);
        wrong_idle += once.idle != cpu_count() || once.running_here != 1;
        c.bad += once.bad;
    }
    WRITE_ONCE(stop_spinning, true);
    for (unsigned i = 0; i < 2; i++)
        thread_join(tids[i], NULL);
    ktest_report(wrong_idle == 0, "40 times, every idle thread and this one were there");
    ktest_report(c.bad == 0, "no thread was freed while it was looked at");
}

KTEST(thread, switches_and_time_are_accounted)
{
    struct thread *self = thread_current();
    uint64_t voluntary = self->voluntary, run_ns = self->run_ns;

    clock_spin_ns(5 * MS);
    for (unsigned n = 0; n < 100 && self->voluntary == voluntary; n++)
        thread_sleep_ns(MS); /* where the host stands, a wait may be over at once */
    ktest_report(self->voluntary > voluntary, "a sleep is a voluntary switch");
    ktest_report(self->run_ns - run_ns >= 5 * MS, "5 ms of spinning are in run_ns");
}

/* ---- registers across a switch --------------------------------------------------------- */

/* uint64_t switch_check(void): tests/kernel/switch_check.asm */
uint64_t switch_check(void);

KTEST(thread, switch_to_keeps_what_a_call_keeps_and_clears_the_rest)
{
    uint64_t lost;

    preempt_disable();
    lost = switch_check();
    preempt_enable();
    ktest_report(
        lost == 0,
        "rbx, rbp, r12..r15 and the carry flag, and 0 in the rest (not so: 0x%llx)",
        (unsigned long long)lost);
}

/* ---- without ticks --------------------------------------------------------------------- */

KTEST(thread, clone_and_join_need_no_tick)
{
    uint64_t start, ticks, ns;
    unsigned joined = 0;

    thread_set_affinity(BIT(0));
    preempt_disable();
    lapic_timer_stop();
    preempt_enable();
    ticks = irq_count(0, VECTOR_TIMER);
    start = clock_ns();
    for (unsigned n = 0; n < 100; n++)
        joined += thread_join(ktest_thread(return_arg, NULL, BIT(0)), NULL) == 0;
    ns = clock_ns() - start;
    ticks = irq_count(0, VECTOR_TIMER) - ticks;
    preempt_disable();
    lapic_timer_init(THREAD_HZ_DEFAULT);
    preempt_enable();
    ktest_note("a thread made and joined: %llu us", /* a full line waits for a tick */
               (unsigned long long)ns / 100 / 1000);
    ktest_report(joined == 100 && ticks <= 1,
                 "100 threads ran on CPU 0 without its timer");
}
