/* test_kprobe.c - probes on code of the running kernel are registered, hit, disabled and
 * unregistered.
 */
#include "tests/kernel/ktest.h"

#define CALLS 1000

static NOINLINE long target(long a, long b)
{
    __asm__ volatile("" : "+r"(a));
    return a * 3 + b;
}

static uint64_t handled;
static unsigned long seen_di, seen_ip;

static int count(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    handled++;
    seen_di = regs->di;
    seen_ip = regs->ip;
    return 0;
}

static long call_target(unsigned times)
{
    long sum = 0;

    for (unsigned i = 0; i < times; i++)
        sum += target(i, 7);
    return sum;
}

KTEST(kprobe, every_call_is_a_hit_and_nothing_changes)
{
    struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = count };
    long without = call_target(CALLS);
    long with;

    handled = 0;
    ktest_report(register_kprobe(&p) == 0, "a probe at a function's entry is accepted");
    with = call_target(CALLS);
    ktest_report(handled == CALLS, "its handler ran %lu times", handled);
    ktest_report(kprobe_hits(&p) == CALLS && p.nmissed == 0, "%d hits, none missed",
                 CALLS);
    ktest_report(with == without, "the function returns what it returned");
    ktest_report(seen_di == CALLS - 1, "the handler saw the argument");
    ktest_report(seen_ip == p.addr + 1, "and ip right behind the breakpoint");
    ktest_report(unregister_kprobe(&p) == 0, "it can be taken away");
    call_target(CALLS);
    ktest_report(handled == CALLS, "and sees no more");
}

KTEST(kprobe, a_part_of_a_function_is_no_place)
{
    struct kprobe p = { .addr = cpu_idle_halted };
    struct probe_reject why;
    unsigned refused = 0;

    for (uintptr_t addr = (uintptr_t)cpu_idle_wait; addr < cpu_idle_halted; addr++) {
        struct kprobe part = { .addr = addr };

        refused += register_kprobe_why(&part, &why) == -EPERM &&
                   why.reason == PROBE_BLACKLISTED && strstr(why.why, "halted");
    }
    ktest_report(refused == cpu_idle_halted - (uintptr_t)cpu_idle_wait,
                 "where a CPU is said to be halted: %s", why.why);
    ktest_report(register_kprobe(&p) == 0, "but behind that");
    thread_sleep_ns(50000000);
    ktest_report(kprobe_hits(&p) > 0, "and CPUs that wake up come there");
    unregister_kprobe(&p);
}

static unsigned long post_ip;
static uint64_t post_count;

static void after(struct kprobe *p UNUSED, struct pt_regs *regs,
                  unsigned long flags UNUSED)
{
    post_count++;
    post_ip = regs->ip;
}

KTEST(kprobe, post_handlers_run_after_the_instruction)
{
    struct kprobe p = { .addr = (uintptr_t)target, .post_handler = after };
    long without = call_target(CALLS);

    post_count = 0;
    register_kprobe(&p);
    ktest_report(call_target(CALLS) == without, "the function returns what it returned");
    ktest_report(post_count == CALLS, "the post-handler ran %lu times", post_count);
    ktest_report(post_ip == (uintptr_t)target + 5, "with ip at the next instruction");
    unregister_kprobe(&p);
}
