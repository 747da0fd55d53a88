/* test_jprobe.c - jprobes: handlers that get the arguments of the probed function. */
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nothing.h"

#include <stdarg.h>

#define CALLS 100 /* less than 120, so that x + 8 fits into a char */

struct big {
    long words[8];
};

/* This function gets six arguments in registers, and on the stack four
 * more and a structure.
 */
static NOINLINE long many(long a, long b, long c, long d, long e, long f, long g, int h,
                          char i, void *j, struct big k)
{
    __asm__ volatile("" : "+r"(a), "+r"(g));
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i +
           10 * (long)(uintptr_t)j + k.words[0] + k.words[7];
}

static const struct big big = { { 11, 12, 13, 14, 15, 16, 17, 18 } };

static NOINLINE long call_many(long x)
{
    return many(x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, (int)x + 7, (char)(x + 8),
                (void *)(x + 9), big);
}

/* All CPUs count here. */
static uint64_t ran, right, misaligned, leaked;

static void add(uint64_t *counter, bool what)
{
    __atomic_add_fetch(counter, what, __ATOMIC_RELAXED);
}

static NOINLINE void leave(unsigned depth)
{
    if (!depth)
        jprobe_return();
    if (depth < 100)
        leave(depth - 1);
    add(&leaked, true);
}

static long see_many(long a, long b, long c, long d, long e, long f, long g, int h,
                     char i, void *j, struct big k)
{
    bool same = b == a + 1 && c == a + 2 && d == a + 3 && e == a + 4 && f == a + 5 &&
                g == a + 6 && h == (int)a + 7 && i == (char)(a + 8) &&
                (long)(uintptr_t)j == a + 9;

    for (unsigned n = 0; n < 8; n++)
        same &= k.words[n] == big.words[n];
    add(&ran, true);
    add(&right, same);
    add(&misaligned, (uintptr_t)__builtin_frame_address(0) % 16 != 0);
    a = b = c = d = e = f = g = 0; /* and the arguments on the stack */
    *(volatile long *)&g = -1;
    *(volatile int *)&h = -1;
    *(volatile char *)&i = -1;
    *(void *volatile *)&j = NULL;
    for (unsigned n = 0; n < 8; n++)
        *(volatile long *)&k.words[n] = -1;
    leave(3);
    return 0;
}

static void start(void)
{
    ran = right = misaligned = leaked = 0;
}

static int call_often(void *unused UNUSED)
{
    bool all = true;

    for (long x = 0; x < CALLS; x++) {
        long expected = 0;

        for (long n = 0; n < 10; n++)
            expected += (n + 1) * (x + n);
        all &= call_many(x) == expected + 11 + 18;
    }
    return all ? 0 : 1;
}

static void check_calls(const char *how)
{
    unsigned bad;

    start();
    bad = each_cpu_run(call_often, NULL);
    ktest_report(ran == (uint64_t)CALLS * cpu_count() && right == ran,
                 "%s: %lu of %lu calls had the arguments of the call", how, right, ran);
    ktest_report(!bad, "%s: what the handler does to its own, the function doesn't see",
                 how);
    ktest_report(!misaligned && !leaked, "%s: alignment kept, jprobe_return() ends it",
                 how);
}

KTEST(jprobe, arguments_are_equal_and_the_stack_stays_intact)
{
    struct jprobe jp = { .kp.addr = (uintptr_t)many, .entry = see_many };

    ktest_report(register_jprobe(&jp) == 0, "a jprobe is accepted");
    check_calls("boosted");
    ktest_report(kprobe_hits(&jp.kp) == (uint64_t)CALLS * cpu_count() && !jp.kp.nmissed,
                 "none missed");
    ktest_report(preempt_count() == 0, "nothing is left behind");
    ktest_report(unregister_jprobe(&jp) == 0, "it can be taken away");
}

static uint64_t kprobe_ran, return_ran, return_right;

static int count_kprobe(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    add(&kprobe_ran, true);
    return 0;
}

static int count_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs)
{
    add(&return_ran, true);
    add(&return_right, regs_return_value(regs) >= 11 + 18);
    return 0;
}

/* beside - check a jprobe whose function also has probes of all other kinds, which are
 * registered before the jprobe if @before is true, else after it.
 */
static void beside(bool before)
{
    struct jprobe jp = { .kp.addr = (uintptr_t)many, .entry = see_many };
    struct kprobe p = { .addr = (uintptr_t)many, .pre_handler = count_kprobe };
    struct kretprobe rp = { .kp.addr = (uintptr_t)many, .handler = count_return };
    const char *how = before ? "before the others" : "behind the others";
    uint64_t expected = (uint64_t)CALLS * cpu_count();
    int err = before ? register_jprobe(&jp) : 0;

    kprobe_ran = return_ran = return_right = 0;
    err = err ? err : register_kprobe(&p);
    err = err ? err : register_kretprobe(&rp);
    if (!before)
        err = err ? err : register_jprobe(&jp);
    ktest_report(err == 0, "%s: all are accepted", how);
    check_calls(how);
    ktest_report(kprobe_ran == expected, "%s: so has the kprobe's handler", how);
    ktest_report(return_ran == expected && return_right == expected,
                 "%s: and the return probe's", how);
    unregister_kretprobe(&rp);
    unregister_jprobe(&jp);
    unregister_kprobe(&p);
}

KTEST(jprobe, works_beside_the_other_kinds)
{
    beside(true);
    beside(false);
}

KTEST(jprobe, works_where_the_instruction_is_stepped)
{
    struct kprobe p = { .addr = (uintptr_t)many, .post_handler = no_post };
    struct jprobe jp = { .kp.addr = (uintptr_t)many, .entry = see_many };

    register_kprobe(&p);
    register_jprobe(&jp);
    check_calls("stepped by int3");
    step_set_engine(STEP_TF);
    check_calls("stepped by TF");
    step_set_engine(STEP_INT3);
    unregister_jprobe(&jp);
    unregister_kprobe(&p);
}

/* ---- probes and faults in its handler ---- */

KTEST_TARGET(helper, x, x + 1)

static volatile long kept;
static volatile char *volatile nowhere = (volatile char *)0x10;

KTEST_TARGET(simple, x, x * 3)

static long call_helper(long x)
{
    kept = helper(x);
    jprobe_return();
}

static long read_nowhere(long x UNUSED)
{
    add(&ran, true);
    kept = *nowhere;
    jprobe_return();
}

KTEST(jprobe, its_handler_runs_into_probes_and_faults)
{
    struct jprobe jp = { .kp.addr = (uintptr_t)simple, .entry = call_helper };
    struct jprobe bad = { .kp.addr = (uintptr_t)simple, .entry = read_nowhere };
    struct kretprobe rp = { .kp.addr = (uintptr_t)helper, .handler = count_return };

    start();
    return_ran = 0;
    register_jprobe(&jp);
    register_kretprobe(&rp);
    ktest_report(simple(5) == 15 && kept == 6 && return_ran == 1,
                 "what it calls returns through a return probe");
    unregister_kretprobe(&rp);
    unregister_jprobe(&jp);
    register_jprobe(&bad);
    ktest_report(simple(5) == 15 && simple(6) == 18, "one that faults is contained");
    ktest_report(ran == 1 && bad.kp.flags & KPROBE_FLAG_TRIPPED, "and switched off");
    ktest_report(preempt_count() == 0, "nothing is left behind");
    unregister_jprobe(&bad);
}
