/* test_kretprobe.c - return probes on code of the running kernel: which returns their
 * handlers see, what the handlers see of these, and what changes for the probed code.
 */
#include "kernel/cpu/trap.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/shadow.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"
#include "tests/kernel/own_steps.h"
#include "tests/kernel/return_targets.h"

#define CALLS 1000

static NOINLINE long target(long a, long b)
{
    __asm__ volatile("" : "+r"(a));
    return a * 3 + b;
}

static long call_target(unsigned times)
{
    long sum = 0;

    for (unsigned i = 0; i < times; i++)
        sum += target(i, 7);
    return sum;
}

static void report_seen(uint64_t count, const struct kretprobe *rp, const char *what)
{
    ktest_report(return_counts.returned == count && !return_counts.wrong,
                 "%s: %lu of %lu returns were seen", what, return_counts.returned, count);
    ktest_report(!rp->nmissed && !rp->kp.nmissed && !rp->dropped,
                 "%s: none was missed, none dropped", what);
    ktest_report(preempt_count() == 0, "%s: nothing is left behind", what);
}

/* ---- the life of a return probe ---- */

KTEST(kretprobe, every_return_is_seen_and_nothing_changes)
{
    struct kretprobe rp = { .entry_handler = return_count_entry };
    long without = call_target(CALLS), with;

    return_counts_start();
    ktest_report(return_probe(&rp, target) == 0, "a return probe is accepted");
    with = call_target(CALLS);
    ktest_report(return_counts.entered == CALLS, "%d entries", CALLS);
    report_seen(CALLS, &rp, "one");
    ktest_report(with == without, "the function returns what it returned");
    ktest_report(unregister_kretprobe(&rp) == 0, "it can be taken away");
    call_target(CALLS);
    ktest_report(return_counts.returned == CALLS, "and sees no more");
    ktest_report(unregister_kretprobe(&rp) == -EINVAL, "once");
}

/* ---- registers and flags ---- */

static uint64_t seen_flags, seen_sum;

static uint64_t sum_of(const struct pt_regs *r)
{
    return r->ax ^ r->bx ^ r->cx ^ r->dx ^ r->si ^ r->di ^ r->bp ^ r->r8 ^ r->r9 ^
           r->r10 ^ r->r11 ^ r->r12 ^ r->r13 ^ r->r14 ^ r->r15;
}

static int see_image(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs)
{
    seen_flags = regs->flags;
    seen_sum = sum_of(regs);
    return 0;
}

static const uint64_t flags_tried[] = {
    0,        FLAGS_CF, FLAGS_PF,
    FLAGS_AF, FLAGS_ZF, FLAGS_SF,
    FLAGS_OF, FLAGS_DF, FLAGS_CF | FLAGS_PF | FLAGS_AF | FLAGS_ZF | FLAGS_SF | FLAGS_OF,
};

KTEST(kretprobe, registers_and_flags_come_back_as_they_were)
{
    struct kretprobe rp = { .handler = see_image };
    unsigned same = 0, seen = 0;

    for (size_t i = 0; i < ARRAY_LEN(flags_tried); i++) {
        uint64_t flags = flags_tried[i] | FLAGS_FIXED | FLAGS_IF;
        uint64_t without[17], with[17], sum = 0;

        return_registers(without, flags);
        return_probe(&rp, return_scramble);
        return_registers(with, flags);
        unregister_kretprobe(&rp);
        same += memcmp(without, with, sizeof(with)) == 0 && with[15] == flags;
        for (size_t n = 0; n <= 14; n++)
            sum ^= with[n];
        seen += seen_flags == flags && seen_sum == sum;
    }
    ktest_report(same == ARRAY_LEN(flags_tried), "after each of %zu returns",
                 ARRAY_LEN(flags_tried));
    ktest_report(seen == ARRAY_LEN(flags_tried), "and the handler's image was theirs");
}

static int change_value(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs)
{
    regs->ax = 4711;
    regs->flags ^= FLAGS_CF;
    return 0;
}

static int mask_interrupts(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs)
{
    regs->flags &= ~FLAGS_IF;
    return 0;
}

KTEST_TARGET(behind, x, x + 1)

static int go_elsewhere(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    regs->di = 5;
    regs->sp -= 8; /* behind() will return to where the probed function should have */
    *(uintptr_t *)regs->sp = ri->ret_addr;
    regs->ip = (uintptr_t)behind;
    return 0;
}

KTEST(kretprobe, what_a_handler_changes_is_what_goes_on)
{
    struct kretprobe value = { .handler = change_value };
    struct kretprobe mask = { .handler = mask_interrupts };
    struct kretprobe elsewhere = { .handler = go_elsewhere };
    bool on;

    return_probe(&value, target);
    ktest_report(target(1, 2) == 4711, "the value that is returned");
    unregister_kretprobe(&value);
    return_probe(&mask, target);
    target(1, 2);
    on = irqs_enabled();
    sti();
    ktest_report(!on, "the interrupt flag");
    unregister_kretprobe(&mask);
    return_probe(&elsewhere, target);
    ktest_report(target(1, 2) == 6, "where it goes, and with which stack");
    unregister_kretprobe(&elsewhere);
    ktest_report(target(1, 2) == 5 && preempt_count() == 0, "nothing is left behind");
}

struct pair {
    long first, second;
};

static NOINLINE struct pair make_pair(long x)
{
    __asm__ volatile("" : "+r"(x));
    return (struct pair){ x + 1, x + 2 };
}

static long seen_first, seen_second;

static int see_pair(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs)
{
    seen_first = (long)regs->ax;
    seen_second = (long)regs->dx;
    return 0;
}

KTEST(kretprobe, h94_both_words_of_a_pair_are_seen)
{
    struct kretprobe rp = { .handler = see_pair };
    struct pair pair;

    return_probe(&rp, make_pair);
    pair = make_pair(40);
    ktest_report(pair.first == 41 && pair.second == 42, "the pair is as it was");
    ktest_report(seen_first == 41 && seen_second == 42, "the handler sees both halves");
    unregister_kretprobe(&rp);
}

/* ---- data, limits, causes ---- */

struct stamp {
    long argument;
    uint64_t check;
};

static uint64_t data_right;

static int keep_argument(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    struct stamp *stamp = (struct stamp *)ri->data;

    stamp->argument = (long)regs->di;
    stamp->check = ~(uint64_t)regs->di;
    return regs->di % 4 == 3;
}

static int check_argument(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    const struct stamp *stamp = (const struct stamp *)ri->data;

    __atomic_add_fetch(&data_right,
                       (uint64_t)stamp->argument == regs_return_value(regs) &&
                           stamp->check == ~(uint64_t)stamp->argument,
                       __ATOMIC_RELAXED);
    return 0;
}

KTEST(kretprobe, each_instance_has_data_and_may_be_skipped)
{
    struct kretprobe rp = { .entry_handler = keep_argument,
                            .handler = check_argument,
                            .data_size = sizeof(struct stamp) };

    data_right = 0;
    ktest_report(return_probe(&rp, return_recurse) == 0, "a probe with data");
    ktest_report(return_recurse(99) == 99, "a recursion of 100 calls");
    ktest_report(data_right == 75, "%lu of the 75 that were wanted had their own data",
                 data_right);
    ktest_report(!rp.nmissed && kprobe_hits(&rp.kp) == 100, "none was missed");
    unregister_kretprobe(&rp);
}

KTEST(kretprobe, h93_entries_and_instances_are_missed_by_cause)
{
    struct kretprobe big = { .data_size = KRETPROBE_DATA_MAX };
    struct kretprobe few = { .maxactive = 10 };
    struct kretprobe plain = { 0 };

    return_counts_start();
    return_probe(&big, return_recurse);
    return_probe(&few, return_recurse);
    return_probe(&plain, return_recurse);
    ktest_report(return_recurse(49) == 49, "a recursion of 50 calls");
    ktest_report(big.missed[KRETPROBE_MISS_DATA] == 47 && big.nmissed == 47,
                 "data: 3 instances had room, 47 are counted as missed");
    ktest_report(few.missed[KRETPROBE_MISS_MAXACTIVE] == 40 && few.nmissed == 40,
                 "maxactive: 10 instances at a time, 40 are counted as missed");
    ktest_report(!plain.nmissed, "the probe that wants neither sees all");
    ktest_report(return_counts.returned == 3 + 10 + 50, "the handlers ran for the rest");
    ktest_report(!big.kp.nmissed && !few.kp.nmissed && kprobe_hits(&big.kp) == 50,
                 "no entry was missed");
    return_recurse(20);
    ktest_report(few.missed[KRETPROBE_MISS_MAXACTIVE] == 51, "limits are of instances");
    unregister_kretprobe(&big);
    unregister_kretprobe(&few);
    unregister_kretprobe(&plain);
}

static int call_it(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    target(1, 1);
    return 0;
}

KTEST(kretprobe, an_entry_inside_its_own_handler_is_a_recursion)
{
    struct kretprobe rp = { .handler = call_it };

    return_probe(&rp, target);
    call_target(10);
    ktest_report(kprobe_hits(&rp.kp) == 10 && rp.kp.missed[MISS_RECURSION] == 10,
                 "the calls from the handler are missed entries");
    ktest_report(!rp.nmissed, "and no missed instances");
    unregister_kretprobe(&rp);
}

static volatile char *volatile nowhere = (volatile char *)0x10;
static volatile char loaded;

static int read_nowhere(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    loaded = *nowhere;
    return 0;
}

/* ---- which return is whose ---- */

static char order[8];

static int note(struct kretprobe_instance *ri UNUSED, const char *what)
{
    if (strlen(order) + 1 < sizeof(order))
        strlcat(order, what, sizeof(order));
    return 0;
}

static int note_outer(struct kretprobe_instance *ri, struct pt_regs *regs UNUSED)
{
    return note(ri, "o");
}

static int note_inner(struct kretprobe_instance *ri, struct pt_regs *regs UNUSED)
{
    return note(ri, "i");
}

KTEST(kretprobe, h85_a_tail_call_returns_innermost_first)
{
    struct kretprobe outer = { .handler = note_outer }, inner = { .handler = note_inner };

    order[0] = '\0';
    return_probe(&outer, return_outer);
    return_probe(&inner, return_inner);
    ktest_report(return_outer(20) == 42, "the value is the inner one's");
    ktest_report(strcmp(order, "io") == 0, "the inner one first: %s", order);
    ktest_report(return_inner(4) == 8 && strcmp(order, "ioi") == 0,
                 "called by itself it is alone");
    unregister_kretprobe(&outer);
    unregister_kretprobe(&inner);
}

KTEST(kretprobe, sibling_calls_in_a_circle_are_one_instance)
{
    struct kretprobe rp = { 0 }, back = { 0 };
    uint64_t rounds = 100000;

    return_counts_start();
    return_probe(&rp, return_circle);
    return_probe(&back, return_circle_back);
    ktest_report(return_circle(rounds) == 42, "%lu tail calls", rounds);
    ktest_report(return_counts.returned == 2, "each is told of one return");
    ktest_report(rp.coalesced == rounds && back.coalesced == rounds - 1,
                 "the other entries are counted as coalesced");
    ktest_report(!rp.nmissed && !back.nmissed, "none is missed");
    unregister_kretprobe(&back);
    unregister_kretprobe(&rp);
}

static int skip_all(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    return 1;
}

static uint64_t kprobe_ran;

static int count_kprobe(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    kprobe_ran++;
    return 0;
}

static void count_kprobe_after(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                               unsigned long flags UNUSED)
{
    kprobe_ran++;
}

KTEST(kretprobe, h88_several_on_one_function_nest)
{
    struct kretprobe rps[4] = { [1] = { .maxactive = 5 },
                                [2] = { .data_size = 64 },
                                [3] = { .entry_handler = skip_all } };
    struct kprobe p = { .addr = (uintptr_t)target,
                        .pre_handler = count_kprobe,
                        .post_handler = count_kprobe_after };
    long without = call_target(CALLS);

    return_counts_start();
    kprobe_ran = 0;
    for (size_t i = 0; i < ARRAY_LEN(rps); i++) {
        ktest_report(return_probe(&rps[i], target) == 0, "return probe %zu", i + 1);
        if (i == 1)
            register_kprobe(&p);
    }
    ktest_report(call_target(CALLS) == without, "the function returns what it returned");
    ktest_report(return_counts.returned == 3 * CALLS && !return_counts.wrong,
                 "three see every return, the fourth wants none");
    ktest_report(kprobe_ran == 2 * CALLS, "the kprobe among them works");
    unregister_kprobe(&p);
    for (size_t i = 0; i < ARRAY_LEN(rps); i++)
        unregister_kretprobe(&rps[i]);
    ktest_report(call_target(CALLS) == without && return_counts.returned == 3 * CALLS,
                 "and nothing is left");
}

/* ---- under single steps ---- */

KTEST(kretprobe, a_program_that_steps_itself_sees_no_more_than_before)
{
    static struct own_steps without, with;
    struct kretprobe outer = { 0 }, inner = { .handler = read_nowhere };

    return_counts_start();
    own_steps_of(&without, return_outer, 20);
    return_probe(&outer, return_outer);
    ktest_report(own_steps_of(&with, return_outer, 20) == 42 &&
                     return_counts.returned == 1,
                 "it returns");
    ktest_report(own_steps_same(&with, &without, 5),
                 "%zu steps, %zu with the probe, the same", without.count, with.count);
    return_probe(&inner, return_inner);
    ktest_report(own_steps_of(&with, return_outer, 20) == 42 &&
                     return_counts.returned == 2,
                 "so it is when one of two handlers faults");
    ktest_report(inner.kp.flags & KPROBE_FLAG_TRIPPED && preempt_count() == 0,
                 "which is switched off");
    unregister_kretprobe(&inner);
    unregister_kretprobe(&outer);
}

/* ---- refusals, on and off ---- */

static enum probe_reason reason_for(const char *symbol, unsigned offset)
{
    struct kretprobe rp = { .kp = { .symbol_name = symbol, .offset = offset },
                            .handler = return_count };
    struct probe_reject why;

    if (register_kretprobe_why(&rp, &why) == 0) {
        unregister_kretprobe(&rp);
        return PROBE_OK;
    }
    return why.reason;
}

KTEST(kretprobe, h43_what_switches_stacks_is_refused)
{
    ktest_report(reason_for("switch_to", 0) == PROBE_SWITCHES_STACK, "switch_to");
    ktest_report(reason_for("cpu_give_to", 0) == PROBE_SWITCHES_STACK ||
                     reason_for("cpu_give_to", 0) == PROBE_NO_SYMBOL,
                 "cpu_give_to");
    ktest_report(reason_for("schedule", 0) == PROBE_OK, "but not what calls them");
}

KTEST(kretprobe, h96_the_return_path_is_refused)
{
    static const char *const names[] = { "kretprobe_trampoline", "kretprobe_return",
                                         "ext_return_resume" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        ktest_report(reason_for(names[i], 0) == PROBE_BLACKLISTED, "%s", names[i]);
    ktest_report(reason_for("trap_exit", 0) != PROBE_OK, "trap_exit");
}

/* With hardware shadow stacks, a return to an exchanged address would raise #CP. */
KTEST(kretprobe, h89_no_hardware_shadow_stack_is_switched_on)
{
    ktest_report(!(read_cr4() & BIT(23)), "CR4.CET is clear");
}

/* ---- an NMI between the claiming and the filling of an entry ---- */

static volatile bool nmi_wanted;
static long nmi_result;

static bool nmi_calls_target(struct pt_regs *regs UNUSED)
{
    if (!nmi_wanted)
        return false;
    nmi_result = target(1, 7);
    nmi_wanted = false;
    return true;
}

KTEST(kretprobe, an_nmi_returns_while_an_entry_is_claimed_only)
{
    struct kretprobe rp = { .entry_handler = return_count_entry };
    struct shadow_entry *claimed;
    struct shadow *s;

    nmi_take(nmi_calls_target);
    return_counts_start();
    ktest_report(return_probe(&rp, target) == 0, "a return probe is accepted");
    s = *plat_this_cpu()->plat.shadow;
    claimed = s ? shadow_claim(s) : NULL;
    if (!claimed) {
        ktest_report(false, "the thread has a shadow");
        return;
    }
    claimed->holder = NULL; /* as in an entry that was not yet filled */
    preempt_disable();
    nmi_wanted = true;
    smp_send_nmi(cpu_id());
    while (nmi_wanted)
        barrier();
    preempt_enable();
    shadow_unclaim(s);
    unregister_kretprobe(&rp);
    ktest_report(nmi_result == 10, "the function returns what it should");
    report_seen(1, &rp, "there");
}
