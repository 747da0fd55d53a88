/* test_jump.c - hits by a jump: what their handlers may change, what may interrupt them,
 * and what state they leave after a fault.
 */
#include "kernel/cpu/trap.h"
#include "kernel/debug/backtrace.h"
#include "kernel/debug/ksyms.h"
#include "probes/core/registry.h"
#include "probes/explain/totals.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/jump/platform_jump.h"
#include "probes/port/port.h"
#include "probes/returns/platform_returns.h"
#include "tests/kernel/by_hand.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"
#include "tests/kernel/nothing.h"
#include "tests/kernel/own_steps.h"
#include "tests/kernel/return_targets.h"

#define CPU_OF_LOAD (cpu_count() - 1)
#define SOON_NS UINT64_C(60000000000)

KTEST_TARGET(target, x, x * 9 + 2)

static struct pt_regs seen;
static bool irqs_seen;
static unsigned ran;

static int note(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    seen = *regs;
    irqs_seen = irqs_enabled();
    ran++;
    return 0;
}

/* ---- changes by a handler ---- */

static int return_at_once(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    regs->ax = 77;
    regs->ip = *(const uintptr_t *)regs->sp;
    regs->sp += sizeof(uintptr_t);
    return 1;
}

static int change_argument(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    regs->di = 10;
    return 0;
}

static int switch_irqs_off(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    regs->flags &= ~FLAGS_IF;
    return 0;
}

/* This handler moves sp down by one word, and copies the return address there. So the
 * function does the same as without the handler, but with another sp.
 */
static int move_stack(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    uintptr_t ret = *(const uintptr_t *)regs->sp;

    regs->sp -= sizeof(uintptr_t);
    *(uintptr_t *)regs->sp = ret;
    return 0;
}

static long call_and_level_stack(long (*fn)(long), long x)
{
    long result;

    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "call *%1\n\t"
                     "movq %%rbx, %%rsp"
                     : "=a"(result), "+r"(fn), "+D"(x)
                     :
                     : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory",
                       "cc");
    return result;
}

static long target_under(kprobe_pre_handler_t pre)
{
    struct kprobe p = { .pre_handler = pre };
    long result;

    if (!with_jump(&p, target))
        return -1;
    result = call_and_level_stack(target, 3);
    irqs_seen = irqs_enabled();
    sti();
    without_jump(&p);
    return result;
}

KTEST(jump, what_a_handler_changes_is_what_goes_on)
{
    ktest_report(target_under(return_at_once) == 77, "ip and sp, and the result");
    ktest_report(target_under(change_argument) == 92, "a register");
    ktest_report(target_under(switch_irqs_off) == 29 && !irqs_seen, "IF");
    ktest_report(target_under(note) == 29 && irqs_seen, "or nothing");
    ktest_report(target_under(move_stack) == 29, "sp alone");
}

/* The returned value is not 0, but its low byte is. */
static int return_at_once_and_say_so_higher_up(struct kprobe *p, struct pt_regs *regs)
{
    return return_at_once(p, regs) << 8;
}

KTEST(jump, any_answer_but_0_means_that_ip_is_set)
{
    struct kprobe behind = { .pre_handler = note, .addr = (uintptr_t)target };
    struct kprobe p = { .pre_handler = return_at_once_and_say_so_higher_up };

    ktest_report(target_under(p.pre_handler) == 77, "by code of its own");
    if (!with_jump(&p, target))
        return;
    by_hand_int3(&p);
    register_kprobe(&behind);
    by_hand_jump(&p);
    ktest_report(target(3) == 77, "by code that is shared");
    by_hand_int3(&p);
    unregister_kprobe(&behind);
    unregister_kprobe(&p);
}

/* ---- interrupts ---- */

static void irqs_under(uint32_t flags, bool expected, const char *what)
{
    struct kprobe p = { .pre_handler = note, .flags = flags };
    bool on, off, stays;

    if (!with_jump(&p, target))
        return;
    target(1);
    on = irqs_seen;
    cli();
    target(1);
    off = irqs_seen;
    stays = !irqs_enabled();
    sti();
    without_jump(&p);
    ktest_report(stays, "%s: off, they stay so behind it", what);
    ktest_report(on == expected && !off, "%s: handlers find them %s", what,
                 expected ? "on" : "off");
}

KTEST(jump, interrupts_are_as_the_program_has_them_or_as_the_probe_wants)
{
    irqs_under(0, true, "a probe that does not care");
    irqs_under(KPROBE_FLAG_IRQS_OFF, false, "one that does");
}

static int wait_for_tick(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    uint64_t before = irq_count(cpu_id(), VECTOR_TIMER), limit = clock_ns() + SOON_NS;

    while (irq_count(cpu_id(), VECTOR_TIMER) == before && clock_ns() < limit)
        pause();
    ran += irq_count(cpu_id(), VECTOR_TIMER) != before;
    return 0;
}

KTEST(jump, the_timer_comes_through_a_handler)
{
    struct kprobe p = { .pre_handler = wait_for_tick };
    int count;

    ran = 0;
    if (!with_jump(&p, target))
        return;
    ktest_report(target(3) == 29 && ran == 1, "a tick came, and all goes on");
    preempt_disable();
    target(3);
    count = preempt_count();
    preempt_enable();
    ktest_report(count == 1, "preemption is as it was");
    without_jump(&p);
}

/* ---- more than one ---- */

static int call_again(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    ran += target(5) == 47;
    return 0;
}

KTEST(jump, a_hit_inside_its_own_handler_is_a_recursion)
{
    struct kprobe p = { .pre_handler = call_again };

    ran = 0;
    if (!with_jump(&p, target))
        return;
    ktest_report(target(3) == 29 && ran == 1, "both calls return what they should");
    without_jump(&p);
    ktest_report(p.hits == 1 && p.missed[MISS_RECURSION] == 1, "one hit, one missed");
}

static char order[8];
static bool sees_trampoline[2]; /* for each kprobe: was the return address exchanged? */

static void ordered(char who)
{
    size_t len = strlen(order);

    if (len < sizeof(order) - 1)
        order[len] = who;
}

static int before_it(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    sees_trampoline[0] = *(const uintptr_t *)regs->sp == (uintptr_t)kretprobe_trampoline;
    ordered('a');
    return 0;
}

static int behind_it(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    sees_trampoline[1] = *(const uintptr_t *)regs->sp == (uintptr_t)kretprobe_trampoline;
    ordered('b');
    return 0;
}

static int stop_there(struct kprobe *p, struct pt_regs *regs)
{
    ordered('s');
    return return_at_once(p, regs);
}

static int at_entry(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    ordered('e');
    return 0;
}

static int at_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    ordered(regs->ip == ri->ret_addr ? 'r' : '?');
    return 0;
}

/* run_in_order - register a kprobe, the return probe @rp, and a kprobe with the
 * handler @last, all at the entry of target(), and call target() once. Return: what
 * target() has returned.
 */
static long run_in_order(struct kretprobe *rp, kprobe_pre_handler_t last)
{
    struct kprobe a = { .pre_handler = before_it }, b = { .pre_handler = last };
    struct probe_totals before, after;
    long result;

    by_hand_begin();
    rp->kp.addr = b.addr = (uintptr_t)target;
    rp->handler = at_return;
    memset(order, 0, sizeof(order));
    a.addr = (uintptr_t)target;
    register_kprobe(&a);
    register_kretprobe(rp);
    register_kprobe(&b);
    by_hand_jump(&a);
    account_totals(&before);
    result = target(3);
    account_totals(&after);
    by_hand_int3(&a);
    unregister_kprobe(&b);
    unregister_kretprobe(rp);
    unregister_kprobe(&a);
    ktest_report(a.hits == 1 && rp->kp.hits == 1 && b.hits == 1 && !rp->nmissed,
                 "each of them has a hit");
    ktest_report(after.ran[WAY_JUMP] == before.ran[WAY_JUMP] + 1, "the jump has one");
    return result;
}

KTEST(jump, a_return_probe_between_others_takes_its_turn)
{
    struct kretprobe plain = { 0 }, with_entry = { .entry_handler = at_entry };
    struct kretprobe limited = { .maxactive = 1 }, skipped = { 0 };

    ktest_report(run_in_order(&plain, behind_it) == 29 && !strcmp(order, "abr"), "%s",
                 order);
    ktest_report(!sees_trampoline[0] && sees_trampoline[1],
                 "a later call finds another return address");
    ktest_report(run_in_order(&with_entry, behind_it) == 29 && !strcmp(order, "aebr"),
                 "%s", order);
    ktest_report(run_in_order(&limited, behind_it) == 29 && !strcmp(order, "abr"), "%s",
                 order);
    ktest_report(run_in_order(&skipped, stop_there) == 77 && !strcmp(order, "asr"), "%s",
                 order);
}

/* ---- a program that steps itself ---- */

static struct own_steps steps, steps_alone;

static long step_through(struct own_steps *into, long (*fn)(long))
{
    return (long)own_steps_of(into, (uint64_t(*)(uint64_t))fn, 3);
}

static void stepped_under(kprobe_pre_handler_t pre, kprobe_post_handler_t post,
                          const char *what)
{
    struct kprobe p = { .pre_handler = pre, .post_handler = post };
    long result;

    step_through(&steps_alone, target);
    ran = 0;
    if (!with_jump(&p, target))
        return;
    result = step_through(&steps, target);
    without_jump(&p);
    ktest_report(result == 29 && p.hits == 1, "%s: one hit", what);
    ktest_report(own_steps_same(&steps, &steps_alone, 4),
                 "%s: %zu steps, as without a probe", what, steps.count);
}

KTEST(jump, a_program_that_steps_itself_sees_its_own_instructions)
{
    stepped_under(note, NULL, "a handler");
    stepped_under(NULL, NULL, "a counter");
    stepped_under(note, no_post, "a post-handler");
}

/* Behind an sti some CPUs raise no #DB. */
static NOINLINE long target_sti(long x)
{
    __asm__ volatile("sti" ::: "memory");
    return x;
}

static unsigned behind_sti;

static void note_behind_sti(struct kprobe *p, struct pt_regs *regs,
                            unsigned long flags UNUSED)
{
    behind_sti += regs->ip == p->addr + 1 && regs->flags & FLAGS_IF;
}

KTEST(jump, a_program_that_steps_itself_over_sti_runs_the_post_handlers)
{
    const uint8_t *at = (const uint8_t *)target_sti;
    struct kprobe p = { .post_handler = note_behind_sti };

    while (*at != 0xfb)
        at++;
    p.addr = (uintptr_t)at;
    behind_sti = 0;
    register_kprobe(&p);
    ktest_report(step_through(&steps, target_sti) == 3, "the function returns");
    unregister_kprobe(&p);
    ktest_report(p.hits == 1 && behind_sti == 1, "a hit, and %u behind it", behind_sti);
}

/* No quiescence would wait for a thread that was preempted between the engine's own code
 * and a cell. So where a hit ends by loading the image, the engine first switches
 * interrupts off, and only then enables preemption.
 */
static struct {
    struct ksym code; /* of the way back */
    unsigned steps, interruptible;
} way_back;

static void see_way_back(struct pt_regs *regs)
{
    if (regs->ip - way_back.code.start >= way_back.code.size)
        return;
    way_back.steps++;
    way_back.interruptible += (regs->flags & FLAGS_IF) != 0;
}

static void returns_by_the_image(struct kprobe *p, long want, const char *what)
{
    long result;

    way_back.steps = way_back.interruptible = 0;
    if (!with_jump(p, target))
        return;
    own_steps_watch(see_way_back);
    result = (long)return_stepped((uint64_t(*)(uint64_t))target, 3);
    own_steps_unwatch();
    without_jump(p);
    ktest_report(result == want && p->hits == 1 && way_back.steps > 3,
                 "%s: %u steps on the way back", what, way_back.steps);
    ktest_report(!way_back.interruptible, "%s: none with interrupts on", what);
}

static void change_flags(struct kprobe *p UNUSED, struct pt_regs *regs,
                         unsigned long flags UNUSED)
{
    regs->flags ^= FLAGS_ID;
}

KTEST(jump, no_interrupt_comes_on_the_way_back_by_the_image)
{
    struct kprobe before = { .pre_handler = return_at_once };
    struct kprobe after = { .post_handler = change_flags };

    ktest_report(ksyms_find("trap_exit", &way_back.code) == 0, "there is a way back");
    returns_by_the_image(&before, 77, "a handler that sets ip");
    returns_by_the_image(&after, 29, "a post-handler that changes flags");
    __asm__ volatile("pushfq; btrl $21, (%%rsp); popfq" ::: "memory", "cc"); /* ID */
}

#define BEFORE(name)                                                                     \
    long detour_before_##name(long x);                                                   \
    extern const char detour_before_##name##_at[]
BEFORE(jcc);
BEFORE(loop);
BEFORE(jrcxz);

/* is_evicted - is the instruction at @at + 3 a jump although it has no probe? */
static bool is_evicted(uintptr_t at)
{
    const struct site *site;

    plat_lock(PLAT_PROBES);
    site = registry_find(at + 3);
    plat_unlock(PLAT_PROBES);
    return site && !site->probes && site->state == SITE_OPTIMIZED;
}

static void stepped_over_neighbour(long (*fn)(long), const char *at, const char *what)
{
    struct kprobe p = { .pre_handler = note, .addr = (uintptr_t)at };
    enum optimize_method before = optimize_get_method();
    long result;

    step_through(&steps_alone, fn);
    optimize_set_method(OPTIMIZE_PUN);
    register_kprobe(&p);
    optimize_run();
    ktest_report(is_evicted(p.addr), "%s: it had to give way", what);
    result = step_through(&steps, fn);
    unregister_kprobe(&p);
    optimize_set_method(before);
    ktest_report(result == 4 && p.hits == 1, "%s: one hit", what);
    ktest_report(own_steps_same(&steps, &steps_alone, 4),
                 "%s: %zu steps, as without a probe", what, steps.count);
}

/* The copy of a short branch is longer than the branch, and may be several instructions.
 * The program must see one single step for all of them.
 */
KTEST(jump, a_program_that_steps_itself_passes_evicted_branches)
{
    stepped_over_neighbour(detour_before_jcc, detour_before_jcc_at, "jcc");
    stepped_over_neighbour(detour_before_loop, detour_before_loop_at, "loop");
    stepped_over_neighbour(detour_before_jrcxz, detour_before_jrcxz_at, "jrcxz");
}

/* ---- other CPUs and NMIs ---- */

struct load {
    volatile bool stop;
    uint64_t calls, wrong;
};

static int run_target(void *arg)
{
    struct load *load = arg;

    while (!load->stop) {
        load->wrong += target((long)load->calls) != (long)load->calls * 9 + 2;
        load->calls++;
    }
    return 0;
}

static int start_load(struct load *load)
{
    return ktest_thread(run_target, load, BIT(CPU_OF_LOAD));
}

KTEST(jump, it_comes_and_goes_while_a_cpu_runs_into_it)
{
    struct kprobe p = { .pre_handler = note, .addr = (uintptr_t)target };
    uint64_t rounds = ktest_rounds(4, 50), ok = 0;
    struct load load = { 0 };
    int tid;

    if (ktest_lacks_cpus(2))
        return;
    by_hand_begin();
    register_kprobe(&p);
    tid = start_load(&load);
    for (uint64_t i = 0; i < rounds; i++) {
        ok += by_hand_jump(&p);
        thread_sleep_ns(UINT64_C(200000));
        by_hand_int3(&p);
    }
    load.stop = true;
    thread_join(tid, NULL);
    unregister_kprobe(&p);
    ktest_report(ok == rounds && load.wrong == 0, "%lu times, and all results are right",
                 rounds);
    ktest_report(p.hits + p.nmissed == load.calls, "%lu hits, %lu missed, %lu calls",
                 p.hits, p.nmissed, load.calls);
}

static volatile uint64_t nmis;
static bool storming;

static bool nmi_through_target(struct pt_regs *regs UNUSED)
{
    if (storming && cpu_id() == CPU_OF_LOAD) {
        target(1);
        nmis++;
    }
    return false;
}

KTEST(jump, nmis_hit_it_too_at_any_moment)
{
    struct kprobe p = { .pre_handler = note };
    uint64_t count = ktest_count(800, 40000);
    struct load load = { 0 };
    int tid;

    if (ktest_lacks_cpus(2))
        return;
    nmi_take(nmi_through_target);
    nmis = 0;
    if (!with_jump(&p, target))
        return;
    tid = start_load(&load);
    storming = true;
    nmi_send_many(CPU_OF_LOAD, count, &nmis);
    load.stop = true;
    thread_join(tid, NULL);
    storming = false;
    without_jump(&p);
    ktest_report(nmis == count && load.wrong == 0, "%lu NMIs, all results right", nmis);
    ktest_report(p.hits + p.nmissed == load.calls + nmis, "%lu hits, %lu missed", p.hits,
                 p.nmissed);
}

/* ---- backtraces, and the place that a saved ip belongs to ---- */

static NOINLINE long calls_target(long x)
{
    return target(x) + 1;
}

#define FRAMES 8

static bool passes_target;

static int trace_itself(struct kprobe *p, struct pt_regs *regs UNUSED)
{
    uintptr_t at[FRAMES];
    size_t count = backtrace_collect(NULL, at, FRAMES);

    for (size_t i = 0; i < count; i++)
        passes_target |= at[i] - p->addr < INSN_MAX_LEN;
    return 0;
}

KTEST(jump, a_backtrace_of_a_handler_passes_the_instruction)
{
    struct kprobe p = { .pre_handler = trace_itself };

    passes_target = false;
    if (!with_jump(&p, target))
        return;
    ktest_report(jump_site(p.site)->specialized, "its code is its own");
    calls_target(3);
    without_jump(&p);
    ktest_report(passes_target, "it is among the functions that others call");
}

static struct {
    size_t steps, in_detour, nameless, lost;
} looked;

/* look_back - collect the backtrace of an interrupt at this instruction. */
static void look_back(struct pt_regs *regs)
{
    uintptr_t at[FRAMES];
    size_t count = backtrace_collect(regs, at, FRAMES);
    struct ksym sym;

    looked.steps++;
    for (size_t i = 0; i < count; i++)
        looked.nameless += ksyms_at(at[i] - (i > 0), &sym) != 0;
    if (at[0] - (uintptr_t)target > 1 || at[0] == regs->ip)
        return;
    looked.in_detour++;
    looked.lost +=
        count < 2 || ksyms_at(at[1] - 1, &sym) || sym.start != (uintptr_t)calls_target;
}

/* step_flag - set TF to @tf. */
static ALWAYS_INLINE void step_flag(uint64_t tf)
{
    __asm__ volatile("pushq %0\n\t"
                     "popfq" ::"r"((read_flags() & ~(uint64_t)FLAGS_TF) | tf)
                     : "cc", "memory");
}

static void note_lightly(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    ran++;
}

static void look_from_each_step(const char *how)
{
    memset(&looked, 0, sizeof(looked));
    own_steps_watch(look_back);
    step_flag(FLAGS_TF);
    calls_target(3);
    step_flag(0);
    own_steps_unwatch();
    ktest_report(looked.in_detour > 20 && !looked.lost,
                 "%s: the caller is seen from %zu of %zu steps in the detour", how,
                 looked.in_detour - looked.lost, looked.in_detour);
    ktest_report(!looked.nameless, "%s: each address of %zu backtraces has a name", how,
                 looked.steps);
}

KTEST(jump, a_backtrace_from_each_instruction_of_a_detour_has_names_and_the_caller)
{
    struct kprobe p = { .pre_handler = note }, light = { .light_handler = note_lightly };

    if (!with_jump(&p, target))
        return;
    look_from_each_step("with a handler");
    without_jump(&p);
    if (!with_jump(&light, target))
        return;
    look_from_each_step("with a light handler");
    without_jump(&light);
}

static int set_tf(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    regs->flags |= FLAGS_TF;
    return 0;
}

static volatile char *volatile nowhere = (volatile char *)0x10;

static int read_nowhere(struct kretprobe_instance *ri UNUSED, struct pt_regs *r UNUSED)
{
    return *nowhere;
}

/* return_by_step - call return_inner(), whose `ret` is emulated in a hit by a jump with TF
 * set, and leads to the handler of @rp.
 */
static void return_by_step(struct kretprobe *rp, const char *how)
{
    static struct own_steps steps;
    uint64_t got;

    return_counts_start();
    return_probe(rp, return_inner);
    own_steps_begin(&steps);
    got = return_inner(20);
    step_flag(0);
    own_steps_end();
    ktest_report(got == 40 && steps.count > 1, "%s: it returns, and goes on by steps",
                 how);
    ktest_report(steps.at[1] - steps.at[0] < 16,
                 "%s: the step of the `ret` ends at the caller", how);
    ktest_report(!steps.with_irqs, "%s: its handler has interrupts off", how);
    ktest_report(preempt_count() == 0 && irqs_enabled(),
                 "%s: preemption and interrupts are as they were", how);
    unregister_kretprobe(rp);
}

KTEST(jump, a_step_of_an_emulated_ret_ends_at_the_caller)
{
    struct kretprobe rp = { 0 }, bad = { .handler = read_nowhere };
    struct kprobe at_ret = { .pre_handler = set_tf };

    if (!with_jump(&at_ret, (long (*)(long))((uintptr_t)return_inner + 4)))
        return;
    return_by_step(&rp, "a return probe");
    ktest_report(return_counts.returned == 1, "its handler has run");
    return_by_step(&bad, "a handler that faults");
    ktest_report(bad.kp.flags & KPROBE_FLAG_TRIPPED, "it is switched off");
    without_jump(&at_ret);
}

/* While a CPU is in a routine of a specialized detour, port_detour_cell() must find the
 * address at which the program goes on: the ip of the image. The return address lies below
 * the image until it is popped, and the flags between a pushfq and its pop.
 */
KTEST(jump, an_ip_in_a_routine_of_code_of_its_own_leads_where_the_image_does)
{
    extern const uintptr_t detour_specialized_rare_range[2],
        detour_specialized_leave_range[2];
    extern const uintptr_t detour_pops[], detour_pops_end[];
    const uintptr_t *const ranges[] = { detour_specialized_rare_range,
                                        detour_specialized_leave_range };
    struct {
        uint64_t word;
        struct pt_regs image;
    } stack = { .image.ip = (uintptr_t)target };
    size_t right = 0, bytes = 0;

    for (size_t i = 0; i < ARRAY_LEN(ranges); bytes += ranges[i][1] - ranges[i][0], i++)
        for (uintptr_t ip = ranges[i][0]; ip < ranges[i][1]; ip++) {
            bool has_word = ip == ranges[i][0];
            uintptr_t sp;

            for (const uintptr_t *pop = detour_pops; pop < detour_pops_end; pop++)
                has_word |= *pop == ip;
            sp = (uintptr_t)(has_word ? (void *)&stack : &stack.image);
            right += port_detour_cell(ip, sp) == (uintptr_t)target;
        }
    ktest_report(bytes && right == bytes, "at each of %zu bytes", bytes);
}

extern const struct detour_code {
    uintptr_t start, pushf, pushed, ret;
    size_t words;
} detour_codes[], detour_codes_end[];

extern const uintptr_t detour_pops[], detour_pops_end[];

#define WORDS_MAX 32

KTEST(jump, an_ip_in_the_code_of_detours_leads_to_its_cell)
{
    unsigned right = 0, codes = 0;
    uint64_t words[WORDS_MAX];
    uintptr_t stack = (uintptr_t)words;

    for (size_t i = 0; i < WORDS_MAX; i++)
        words[i] = i;
    for (const struct detour_code *c = detour_codes; c < detour_codes_end; c++, codes++) {
        right += port_detour_cell(c->start, stack) == 0;
        right += port_detour_cell(c->ret, stack) == 0;
        right += port_detour_cell(c->ret - 1, stack) == c->words || !c->words;
        if (!c->pushf) {
            right += 2;
            continue;
        }
        right += port_detour_cell(c->pushf, stack) == 4; /* behind 2 free words, ss, sp */
        right += port_detour_cell(c->pushed, stack) == 5;
    }
    /* one more than PLAT_DETOURS: the code for return probes has two ends, so two rows */
    ktest_report(right == 5 * codes && codes == PLAT_DETOURS + 1,
                 "at each depth of each of %u", codes);
    right = codes = 0;
    for (const uintptr_t *pop = detour_pops; pop < detour_pops_end; pop++, codes++)
        right += port_detour_cell(*pop, stack) == 1 + port_detour_cell(*pop - 1, stack);
    ktest_report(right && right == codes, "and where one more word is on the stack, %u",
                 codes);
}
