/* test_kretprobe.c - tests of return probes and jprobes in a process: functions really
 * return through the trampoline, in several threads, while signals arrive.
 */
#define _GNU_SOURCE
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/insn/encode.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/kprobe.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/return_point.h"
#include "tests/hosted/posix.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#define THREADS 4
#define CALLS 20000

static NOINLINE long target(long a, long b)
{
    __asm__ volatile("" : "+r"(a));
    return a * 3 + b;
}

static NOINLINE long recurse(long n)
{
    volatile long kept = n;

    return n ? recurse(n - 1) + (kept == n) : 0;
}

static uint64_t returned, right;

static int count_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    __atomic_add_fetch(&returned, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&right, regs->ip == ri->ret_addr, __ATOMIC_RELAXED);
    return 0;
}

static int keep_argument(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    *(uint64_t *)ri->data = regs->di;
    return 0;
}

static int check_argument(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    __atomic_add_fetch(&returned, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&right, *(uint64_t *)ri->data == regs_return_value(regs),
                       __ATOMIC_RELAXED);
    return 0;
}

static void start(struct kretprobe *rp, long (*fn)(long))
{
    posix_init();
    returned = right = 0;
    rp->kp.addr = (uintptr_t)fn;
    CHECK_EQ(register_kretprobe(rp), 0);
}

static void start_target(struct kretprobe *rp)
{
    if (!rp->handler)
        rp->handler = count_return;
    start(rp, (long (*)(long))(uintptr_t)target);
}

UNIT_TEST(returns_are_seen)
{
    struct kretprobe rp = { 0 };

    start_target(&rp);
    CHECK_EQ(target(5, 7), 22);
    CHECK_EQ(target(6, 7), 25);
    CHECK_EQ(returned, 2);
    CHECK_EQ(right, 2);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    CHECK_EQ(target(5, 7), 22);
    CHECK_EQ(returned, 2);
}

UNIT_TEST(each_instance_has_its_data)
{
    struct kretprobe rp = { .entry_handler = keep_argument,
                            .handler = check_argument,
                            .data_size = sizeof(uint64_t) };

    start(&rp, recurse);
    CHECK_EQ(recurse(1000), 1000);
    CHECK_EQ(returned, 1001);
    CHECK_EQ(right, 1001);
    CHECK_EQ(rp.nmissed + rp.kp.nmissed, 0);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

static int change_value(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs)
{
    regs->ax = 4711;
    return 0;
}

UNIT_TEST(a_changed_value_is_returned)
{
    struct kretprobe rp = { .handler = change_value };

    start_target(&rp);
    CHECK_EQ(target(5, 7), 4711);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    CHECK_EQ(target(5, 7), 22);
}

static volatile char *volatile nowhere = (volatile char *)0x10;
static volatile char loaded;

static int read_nowhere(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    loaded = *nowhere;
    return 0;
}

UNIT_TEST(a_handler_that_faults_is_contained)
{
    struct kretprobe bad = { .handler = read_nowhere }, good = { 0 };

    start_target(&good);
    start_target(&bad);
    CHECK_EQ(target(5, 7), 22);
    CHECK_EQ(target(6, 7), 25);
    CHECK_EQ(returned, 2);
    CHECK(bad.kp.flags & KPROBE_FLAG_TRIPPED);
    CHECK_EQ(unregister_kretprobe(&bad), 0);
    CHECK_EQ(unregister_kretprobe(&good), 0);
}

static jmp_buf out;

static NOINLINE long jump_out(long n)
{
    if (n >= 0)
        longjmp(out, 1);
    return n + 1;
}

UNIT_TEST(a_longjmp_is_survived)
{
    struct kretprobe rp = { .handler = count_return };
    volatile unsigned jumps = 0;

    start(&rp, jump_out);
    for (volatile int i = 0; i < 100; i++) {
        if (setjmp(out))
            jumps++;
        else
            jump_out(i);
    }
    CHECK_EQ(jumps, 100);
    CHECK_EQ(jump_out(-3), -2);
    CHECK_EQ(returned, 1);
    CHECK_EQ(rp.dropped, 100);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

/* ---- threads ---- */

static _Atomic bool stop;
static _Atomic uint64_t calls, wrong;

static void *call_often(void *unused)
{
    posix_thread_enter();
    while (!stop) {
        for (long x = 0; x < 100; x++)
            wrong += target(x, 7) != 3 * x + 7;
        wrong += recurse(10) != 10;
        calls += 100;
        usleep(10); /* so that a wait for quiescence finds the thread outside */
    }
    posix_thread_leave();
    return unused;
}

static bool is_called_by_detour(const struct kretprobe *rp)
{
    const struct site *site;
    bool is;

    plat_lock(PLAT_PROBES);
    site = registry_find(rp->kp.addr);
    is = site->state == SITE_OPTIMIZED && jump_site(site)->kind == DETOUR_RETURN;
    plat_unlock(PLAT_PROBES);
    return is;
}

/* Quiescence sends signals to the threads. With TSan a thread takes them only at its next
 * system call, so a round takes a second.
 */
#ifdef __SANITIZE_THREAD__
#define ROUNDS 10
#else
#define ROUNDS 60
#endif

/* In every second round the probes become jumps. Then the detour of `rp` calls the
 * function itself, in place of the caller.
 */
UNIT_TEST(probes_come_and_go_under_running_threads)
{
    pthread_t threads[THREADS];
    unsigned wanted = (unsigned)posix_rounds(ROUNDS, 2000), rounds = 0, jumps = 0;

    posix_init();
    stop = false;
    calls = wrong = 0;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, call_often, NULL);
    for (; rounds < wanted || calls < CALLS; rounds++) {
        struct kretprobe *rp = calloc(1, sizeof(*rp)), *deep = calloc(1, sizeof(*deep));

        rp->handler = deep->handler = count_return;
        deep->data_size = 64;
        rp->kp.addr = (uintptr_t)target;
        deep->kp.addr = (uintptr_t)recurse;
        if (register_kretprobe(rp) || register_kretprobe(deep))
            abort();
        optimize_set_method(rounds % 2 ? OPTIMIZE_PUN : OPTIMIZE_OFF);
        optimize_run();
        jumps += is_called_by_detour(rp);
        usleep(200);
        if (unregister_kretprobe(rp) || unregister_kretprobe(deep))
            abort();
        free(rp); /* the engine must not use it any more */
        free(deep);
    }
    stop = true;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    optimize_set_method(OPTIMIZE_OFF);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(jumps, rounds / 2);
    unit_note("%u rounds, %lu calls, %lu returns", rounds, calls, returned);
}

/* ---- functions that a detour has called ---- */

/* fixture_call.asm */
long fixture_through(long x, long (*fn)(long x));

static _Atomic bool is_inside;
static _Atomic uintptr_t point; /* the return address of wait_inside() */

static NOINLINE long wait_inside(long x)
{
    point = (uintptr_t)__builtin_return_address(0);
    is_inside = true;
    while (!stop)
        usleep(100);
    return x + 1;
}

static void *call_waiting(void *unused)
{
    posix_thread_enter();
    wrong += fixture_through(5, wait_inside) != 6;
    posix_thread_leave();
    return unused;
}

UNIT_TEST(a_detour_goes_while_a_function_that_it_called_runs)
{
    struct kretprobe *rp = calloc(1, sizeof(*rp));
    pthread_t threads[THREADS];

    start(rp, (long (*)(long))(uintptr_t)fixture_through);
    optimize_set_method(OPTIMIZE_PUN);
    optimize_run();
    stop = false;
    wrong = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        is_inside = false;
        pthread_create(&threads[i], NULL, call_waiting, NULL);
        while (!is_inside)
            usleep(100);
        CHECK(return_point_is(point) && point != (uintptr_t)kretprobe_trampoline);
    }
    CHECK_EQ(unregister_kretprobe(rp), 0);
    free(rp);
    CHECK_EQ(*(const uint8_t *)point, INSN_INT3);
    stop = true;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(wrong + returned, 0);
    optimize_set_method(OPTIMIZE_OFF);
}

/* ---- jprobes ---- */

static long seen_a, seen_b;

static long see_target(long a, long b)
{
    seen_a = a;
    seen_b = b;
    jprobe_return();
}

static NOINLINE long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
    __asm__ volatile("" : "+r"(a));
    return a + b + c + d + e + f + 10 * g + 100 * h;
}

static long seen_sum;

static long see_many(long a, long b, long c, long d, long e, long f, long g, long h)
{
    seen_sum = a + b + c + d + e + f + 10 * g + 100 * h;
    *(volatile long *)&g = 0;
    *(volatile long *)&h = 0;
    jprobe_return();
}

UNIT_TEST(a_jprobe_sees_the_arguments)
{
    struct jprobe jp = { .kp.addr = (uintptr_t)target, .entry = (void *)see_target };
    struct jprobe stack = { .kp.addr = (uintptr_t)many, .entry = (void *)see_many };

    posix_init();
    CHECK_EQ(register_jprobe(&jp), 0);
    CHECK_EQ(register_jprobe(&stack), 0);
    CHECK_EQ(target(5, 7), 22);
    CHECK(seen_a == 5 && seen_b == 7);
    CHECK_EQ(many(1, 2, 3, 4, 5, 6, 7, 8), 891);
    CHECK_EQ(seen_sum, 891);
    CHECK_EQ(unregister_jprobe(&jp), 0);
    CHECK_EQ(unregister_jprobe(&stack), 0);
}

UNIT_TESTS()
