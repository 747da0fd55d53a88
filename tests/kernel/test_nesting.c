/* test_nesting.c - hits inside of handlers: how deep they can be nested, and what happens
 * to a hit that is nested deeper.
 */
#include "kernel/debug/log.h"
#include "kernel/mm/extable.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/logged.h"
#include "tests/kernel/stairs.h"

#include <stdio.h>

#define ROUNDS 20

static volatile char *volatile nowhere = (volatile char *)0x10;

static struct kprobe chain[STAIRS];
/* Volatile: handlers change these during calls that, for the compiler, change nothing. */
static volatile uint64_t handled[STAIRS], kept, right;

static void call(size_t level)
{
    bool is_right = stair_is_right(level);

    right += is_right;
}

static void descend(size_t level, const struct pt_regs *regs)
{
    struct pt_regs before = *regs;

    handled[level]++;
    if (level + 1 < STAIRS)
        call(level + 1);
    kept += memcmp(&before, regs, sizeof(before)) == 0;
}

static int descend_before(struct kprobe *p, struct pt_regs *regs)
{
    descend((size_t)(p - chain), regs);
    return 0;
}

static void descend_after(struct kprobe *p, struct pt_regs *regs,
                          unsigned long flags UNUSED)
{
    descend((size_t)(p - chain), regs);
}

/* chain_run - register a chain of probes, and call the function of the first one. The
 * handler of each probe calls the function of the next one. @post: they are post-handlers
 */
static void chain_run(bool post, const char *how)
{
    for (size_t i = 0; i < STAIRS; i++)
        handled[i] = 0;
    kept = right = 0;
    for (size_t i = 0; i < STAIRS; i++) {
        chain[i] = (struct kprobe){ .addr = (uintptr_t)stairs[i] };
        if (post)
            chain[i].post_handler = descend_after;
        else
            chain[i].pre_handler = descend_before;
        register_kprobe(&chain[i]);
    }
    for (int n = 0; n < ROUNDS; n++)
        call(0);
    for (size_t i = 0; i < PROBE_NEST_MAX; i++)
        ktest_report(handled[i] == ROUNDS && chain[i].hits == ROUNDS && !chain[i].nmissed,
                     "%s, level %zu: the handlers ran", how, i + 1);
    ktest_report(!handled[STAIRS - 1] && chain[STAIRS - 1].nmissed == ROUNDS,
                 "%s, level %d: they did not", how, STAIRS);
    ktest_report(chain[STAIRS - 1].missed[MISS_NESTED] == ROUNDS,
                 "which is counted as nested");
    ktest_report(kept == ROUNDS * PROBE_NEST_MAX, "no level has changed another's image");
    ktest_report(right == ROUNDS * STAIRS, "every function returned what it should");
    ktest_report(preempt_count() == 0, "nothing is left behind");
    for (size_t i = 0; i < STAIRS; i++)
        unregister_kprobe(&chain[i]);
}

KTEST(nesting, four_levels_of_handlers_run_and_the_fifth_is_counted)
{
    chain_run(false, "before");
}

/* At the fifth level the whole hit is missed: its instruction runs alone, so the
 * post-handler is not called either.
 */
KTEST(nesting, so_it_is_behind_the_instruction)
{
    chain_run(true, "stepped by int3");
    step_set_engine(STEP_TF);
    chain_run(true, "stepped by TF");
    step_set_engine(STEP_INT3);
}

/* ---- probes on code that handles faults ---- */

int fixed_up_load(const volatile char *at); /* test_fault.c */

static volatile uint64_t failed_loads;

static int load_badly(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    char byte;

    failed_loads += copy_nofault(&byte, (const void *)(uintptr_t)nowhere, 1) == -EFAULT;
    return 0;
}

static int call_stair(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    call(1);
    return 0;
}

/* The handler of the first probe calls a function with a second probe. The handler of the
 * second probe causes a fault that is fixed up. The code that fixes it up has probes,
 * too, and their handlers cause such faults themselves.
 */
KTEST(nesting, a_third_level_inside_the_page_fault_path)
{
    struct kprobe first = { .addr = (uintptr_t)stair0, .pre_handler = call_stair };
    struct kprobe second = { .addr = (uintptr_t)stair1, .pre_handler = load_badly };
    struct kprobe path[] = {
        { .symbol_name = "trap_dispatch", .pre_handler = load_badly },
        { .symbol_name = "extable_fixup", .pre_handler = load_badly },
        { .symbol_name = "extable_find", .pre_handler = load_badly },
        { .symbol_name = "kprobe_fault_handler", .pre_handler = load_badly },
    };

    failed_loads = right = 0;
    register_kprobe(&first);
    register_kprobe(&second);
    for (size_t i = 0; i < ARRAY_LEN(path); i++)
        ktest_report(register_kprobe(&path[i]) == 0, "a probe on %s",
                     path[i].symbol_name);
    for (int n = 0; n < ROUNDS; n++)
        call(0);
    for (size_t i = ARRAY_LEN(path); i-- > 0;)
        unregister_kprobe(&path[i]);
    unregister_kprobe(&second);
    unregister_kprobe(&first);
    ktest_report(right == 2 * ROUNDS, "every function returned what it should");
    ktest_report(first.hits == ROUNDS && second.hits == ROUNDS, "both probes were hit");
    ktest_report(failed_loads == second.hits + path[0].hits + path[1].hits +
                                     path[2].hits + path[3].hits,
                 "%lu loads in handlers failed as they should", failed_loads);
    ktest_report(path[0].hits + path[0].nmissed >= failed_loads,
                 "each went through the fault path");
    ktest_report(path[0].missed[MISS_RECURSION] > 0 &&
                     path[3].missed[MISS_RECURSION] == path[3].nmissed,
                 "hits inside their own handlers are recursions");
}

static void count_after(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                        unsigned long flags UNUSED)
{
}

static void fault_under_a_step(const char *how)
{
    struct kprobe load = { .addr = (uintptr_t)fixed_up_load + 2,
                           .post_handler = count_after };
    struct kprobe path[] = {
        { .symbol_name = "trap_dispatch", .post_handler = count_after },
        { .symbol_name = "extable_fixup", .post_handler = count_after },
        { .symbol_name = "extable_find", .post_handler = count_after },
    };
    unsigned good = 0;
    char byte = 42;

    register_kprobe(&load);
    for (size_t i = 0; i < ARRAY_LEN(path); i++)
        register_kprobe(&path[i]);
    for (int n = 0; n < ROUNDS; n++) {
        good += fixed_up_load(nowhere) == -EFAULT;
        good += fixed_up_load(&byte) == 42;
    }
    for (size_t i = ARRAY_LEN(path); i-- > 0;)
        unregister_kprobe(&path[i]);
    unregister_kprobe(&load);
    ktest_report(good == 2 * ROUNDS, "%s: the loads do what they should", how);
    ktest_report(load.hits == 2 * ROUNDS && !load.nmissed, "%s: each was hit once", how);
    ktest_report(path[0].hits >= ROUNDS && !path[0].nmissed && path[1].hits >= ROUNDS &&
                     !path[1].nmissed,
                 "%s: and so was the path of each fault", how);
}

KTEST(nesting, an_instruction_that_faults_while_it_is_stepped_into_probed_code)
{
    fault_under_a_step("by int3");
    step_set_engine(STEP_TF);
    fault_under_a_step("by TF");
    step_set_engine(STEP_INT3);
}

/* ---- probes on code that prints ---- */

static char said[80];

static int say(struct kprobe *p, struct pt_regs *regs UNUSED)
{
    snprintf(said, sizeof(said), "%s was hit", p->symbol_name);
    return 0;
}

KTEST(nesting, a_probed_log_prints_each_line_once)
{
    struct kprobe out[] = {
        { .symbol_name = "log_print", .pre_handler = say },
        { .symbol_name = "vscnprintf", .pre_handler = say },
        { .symbol_name = "vsnprintf", .pre_handler = say },
        { .symbol_name = "serial_log", .pre_handler = say, .post_handler = count_after },
    };
    unsigned once = 0;

    for (size_t i = 0; i < ARRAY_LEN(out); i++)
        ktest_report(register_kprobe(&out[i]) == 0, "a probe on %s", out[i].symbol_name);
    for (int n = 0; n < ROUNDS; n++)
        log_info("a line that is printed under probes, %d of %d", n, ROUNDS);
    for (size_t i = ARRAY_LEN(out); i-- > 0;)
        unregister_kprobe(&out[i]);
    for (int n = 0; n < ROUNDS; n++) {
        char line[64];

        snprintf(line, sizeof(line), "under probes, %d of", n);
        once += logged(line, "") == 1;
    }
    ktest_report(once == ROUNDS, "%d lines, each is there once", ROUNDS);
    ktest_report(out[0].hits >= ROUNDS && !out[0].nmissed, "each was a hit");
    ktest_report(out[2].missed[MISS_RECURSION] > 0,
                 "the handlers' own formatting is a recursion");
    ktest_report(strstr(said, " was hit") != NULL, "and it works: %s", said);
}
