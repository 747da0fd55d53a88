/* test_thread.c - threads are made, take turns, sleep, end, and leave nothing behind. */
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "tests/kernel/ktest.h"

#include <string.h>

#define MS UINT64_C(1000000)

static int return_arg(void *arg)
{
    return (int)(intptr_t)arg;
}

static int exit_with_arg(void *arg)
{
    do_exit((int)(intptr_t)arg);
}

static int clone_fn(int (*fn)(void *), void *arg)
{
    struct clone_args args = { .fn = fn, .arg = arg };

    return kernel_clone(&args);
}

KTEST(thread, join_returns_the_exit_code)
{
    int code = 0;
    int tid = clone_fn(return_arg, (void *)42);

    ktest_report(tid > 1, "kernel_clone gave a tid");
    ktest_report(thread_join(tid, &code) == 0 && code == 42, "42 was returned");
    tid = clone_fn(exit_with_arg, (void *)-7);
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
    struct clone_args no_cpu = { .fn = return_arg, .cpus = BIT(MAX_CPUS - 1) };

    ktest_report(kernel_clone(&no_fn) == -EINVAL, "no function: -EINVAL");
    ktest_report(kernel_clone(&odd_stack) == -EINVAL, "half a page of stack: -EINVAL");
    if (cpu_count() < MAX_CPUS)
        ktest_report(kernel_clone(&no_cpu) == -EINVAL,
                     "a CPU that is not there: -EINVAL");
}

/* settle - let what was detached or has just been joined be freed. */
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
    size_t blocks, bytes, frames;

    thread_join(clone_fn(return_arg, NULL), NULL);
    settle();
    blocks = heap_block_count();
    bytes = heap_in_use();
    frames = frames_free();
    for (long n = 1; n <= 8; n++) {
        int tid;

        heap_fail_after(n);
        tid = clone_fn(return_arg, NULL);
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

    thread_join(clone_fn(return_arg, NULL), NULL);
    settle();
    blocks = heap_block_count();
    bytes = heap_in_use();
    frames = frames_free();
    for (int n = 0; n < 1000; n++) {
        int code = -1;

        if (thread_join(clone_fn(return_arg, (void *)(intptr_t)n), &code) || code != n)
            wrong++;
    }
    settle();
    ktest_report(wrong == 0, "1000 threads were made and joined");
    ktest_report(heap_block_count() == blocks && heap_in_use() == bytes,
                 "the heap is as before");
    ktest_report(frames_free() == frames, "all frames are back");
}

static unsigned detached_done;
static bool gate_open;

static int wait_at_gate(void *arg)
{
    (void)arg;
    while (!READ_ONCE(gate_open))
        thread_sleep_ns(MS);
    __atomic_add_fetch(&detached_done, 1, __ATOMIC_SEQ_CST);
    return 0;
}

/* detached_crowd - 100 detached threads, all alive at once. Return: a tid of one. */
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

/* The first crowd makes the page tables that a hundred stacks need; they stay. */
KTEST(thread, detached_threads_are_reaped)
{
    size_t bytes, frames;
    int tid;

    bytes = heap_in_use();
    detached_crowd();
    WRITE_ONCE(gate_open, true);
    for (int n = 0; n < 500 && heap_in_use() != bytes; n++)
        settle();
    ktest_report(heap_in_use() == bytes, "a hundred detached threads came and went");
    settle();
    frames = frames_free();
    tid = detached_crowd();
    ktest_report(thread_join(tid, NULL) == -ENOENT, "a detached thread cannot be joined");
    WRITE_ONCE(gate_open, true);
    for (int n = 0; n < 500 && frames_free() != frames; n++)
        settle();
    ktest_report(detached_done == 100, "a hundred ran again");
    ktest_report(heap_in_use() == bytes && frames_free() == frames,
                 "nothing of them is left");
}

/* ---- sleeping -------------------------------------------------------------------------- */

static unsigned woken_order[4], woken_count;
static unsigned too_early;

static int sleep_some(void *arg)
{
    unsigned n = (unsigned)(uintptr_t)arg;
    uint64_t start = clock_ns();

    thread_sleep_ns(n * 40 * MS);
    if (clock_ns() - start < n * 40 * MS)
        too_early++;
    woken_order[__atomic_fetch_add(&woken_count, 1, __ATOMIC_SEQ_CST)] = n;
    return 0;
}

KTEST(thread, sleepers_wake_in_the_order_of_their_deadlines)
{
    static const unsigned naps[4] = { 4, 2, 3, 1 };
    int tids[4];
    bool ordered = true;

    woken_count = 0;
    too_early = 0;
    for (unsigned i = 0; i < 4; i++)
        tids[i] = clone_fn(sleep_some, (void *)(uintptr_t)naps[i]);
    for (unsigned i = 0; i < 4; i++)
        thread_join(tids[i], NULL);
    for (unsigned i = 0; i < 4; i++)
        ordered = ordered && woken_order[i] == i + 1;
    ktest_report(too_early == 0, "nobody woke before its time");
    ktest_report(ordered, "naps of 160, 80, 120 and 40 ms ended shortest first");
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
    thread_set_affinity(UINT64_MAX);
}

/* ---- looking at all -------------------------------------------------------------------- */

struct census {
    unsigned threads, idle, running_here, bad;
};

static void count_thread(struct thread *t, void *arg)
{
    struct census *c = arg;

    c->threads++;
    c->idle += thread_is_idle(t);
    c->running_here += t == thread_current() && t->state == THREAD_RUNNING;
    if (t->state > THREAD_DEAD || t->name[THREAD_NAME_LEN - 1] || !t->stack_top)
        c->bad++;
}

static int come_and_go(void *arg)
{
    while (!READ_ONCE(stop_spinning))
        thread_join(clone_fn(return_arg, arg), NULL);
    return 0;
}

KTEST(thread, for_each_is_safe_while_threads_come_and_go)
{
    struct census c = { 0 };
    int tids[2];
    unsigned wrong_idle = 0;

    stop_spinning = false;
    for (unsigned i = 0; i < 2; i++)
        tids[i] = clone_fn(come_and_go, NULL);
    for (unsigned n = 0; n < 300; n++) {
        struct census once = { 0 };

        thread_for_each(count_thread, &once);
        wrong_idle += once.idle != cpu_count() || once.running_here != 1;
        c.bad += once.bad;
        thread_yield();
    }
    WRITE_ONCE(stop_spinning, true);
    for (unsigned i = 0; i < 2; i++)
        thread_join(tids[i], NULL);
    ktest_report(wrong_idle == 0, "300 times, every idle thread and this one were there");
    ktest_report(c.bad == 0, "every thread looked sound");
}

KTEST(thread, switches_and_time_are_accounted)
{
    struct thread *self = thread_current();
    uint64_t voluntary = self->voluntary, run_ns = self->run_ns;

    clock_spin_ns(5 * MS);
    thread_sleep_ns(MS);
    ktest_report(self->voluntary > voluntary, "a sleep is a voluntary switch");
    ktest_report(self->run_ns - run_ns >= 5 * MS, "5 ms of spinning are in run_ns");
}

/* ---- registers across a switch --------------------------------------------------------- */

static unsigned damaged;

static int keep_locals(void *arg)
{
    uint64_t a = (uintptr_t)arg * 3, b = a * 5, c = b * 7, d = c * 11, e = d * 13;

    for (unsigned n = 0; n < 500; n++) {
        __asm__ volatile("" : "+b"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
        thread_yield();
        __asm__ volatile("" : "+b"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
        if (b != a * 5 || c != b * 7 || d != c * 11 || e != d * 13)
            __atomic_add_fetch(&damaged, 1, __ATOMIC_RELAXED);
    }
    return 0;
}

KTEST(thread, registers_survive_switches)
{
    int tids[6];

    damaged = 0;
    for (unsigned i = 0; i < 6; i++)
        tids[i] = clone_fn(keep_locals, (void *)(uintptr_t)(i + 1));
    for (unsigned i = 0; i < 6; i++)
        thread_join(tids[i], NULL);
    ktest_report(damaged == 0, "six threads, 500 switches each, kept their values");
}

KTEST(thread, wake_up_of_an_idle_machine_is_immediate)
{
    uint64_t worst = 0, best = UINT64_MAX;

    for (unsigned n = 0; n < 20; n++) {
        uint64_t start, took;

        thread_sleep_ns(MS);
        start = clock_ns();
        thread_join(clone_fn(return_arg, NULL), NULL);
        took = clock_ns() - start;
        worst = took > worst ? took : worst;
        best = took < best ? took : best;
    }
    ktest_note("clone and join of a thread: %llu us at best, %llu us at worst",
               (unsigned long long)best / 1000, (unsigned long long)worst / 1000);
    ktest_report(best < 2 * MS,
                 "a new thread runs and is joined within 2 ms, no tick needed");
}
