/* test_light.c - light handlers, where they differ from other handlers. hosted/execute
 * tests that they change nothing for the program.
 */
#include "kernel/cpu/trap.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/platform_jump.h"
#include "tests/kernel/by_hand.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"

KTEST_TARGET(target, x, x * 9 + 2)

KTEST_TARGET(helper, x, x + 1)

static volatile uint64_t ran, right;
static struct kprobe *given;
static uintptr_t given_ip;

static void note(struct kprobe *p, uintptr_t ip)
{
    given = p;
    given_ip = ip;
    ran++;
}

/* ---- a pre-handler that needs no image ---- */

static int count_only(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    ran++;
    return 0;
}

static int note_argument(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    ran++;
    right += regs->di == 3;
    return 0;
}

static int switch_off(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    ran++;
    cli();
    return 0;
}

static unsigned which_is(kprobe_pre_handler_t pre, kprobe_fault_handler_t fault)
{
    struct kprobe p = { .pre_handler = pre, .fault_handler = fault };
    unsigned which = PLAT_OWNS;

    ran = right = 0;
    if (!with_jump(&p, target))
        return which;
    which = jump_site(p.site)->which;
    ktest_report(target(3) == 29 && ran == 1 && kprobe_hits(&p) == 1,
                 "one hit, one call");
    ktest_report(jump_site(p.site)->kind == DETOUR_CALL, "its kind is that of the image");
    without_jump(&p);
    return which;
}

static int never_asked(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                       int trap UNUSED)
{
    return 0;
}

KTEST(light, a_pre_handler_whose_code_needs_no_image_is_called_without_one)
{
    ktest_report(which_is(count_only, NULL) == PLAT_SPECIALIZED_LIGHT, "it only counts");
    ktest_report(which_is(note_argument, NULL) == PLAT_SPECIALIZED_LEAF && right == 1,
                 "it reads a register, and gets it");
    ktest_report(which_is(switch_off, NULL) == PLAT_SPECIALIZED_CALL && irqs_enabled(),
                 "it switches interrupts off, but only for itself");
    ktest_report(which_is(count_only, never_asked) == PLAT_SPECIALIZED_CALL &&
                     which_is(note_argument, never_asked) == PLAT_SPECIALIZED_CALL,
                 "a fault handler may want the image, and change flags");
}

#define UNKNOWN_FLAG                                                                     \
    (1u << 31) /* a hit of a probe with a flag that is not known is rare */

/* A rare hit runs what the site has by now: here another handler than the one that the
 * pattern was chosen for.
 */
KTEST(light, a_rare_hit_asks_whether_a_handler_has_changed_flags)
{
    struct kprobe p = { .pre_handler = note_argument };

    ran = 0;
    if (!with_jump(&p, target))
        return;
    p.pre_handler = switch_off;
    p.flags |= UNKNOWN_FLAG;
    ktest_report(target(3) == 29 && ran == 1, "it is called");
    ktest_report(irqs_enabled(), "interrupts are as they were");
    sti();
    p.flags &= ~UNKNOWN_FLAG;
    without_jump(&p);
}

/* ---- the context of a light handler ---- */

static bool was_off, was_refused;
static enum plat_context context;

static void look_around(struct kprobe *p, uintptr_t ip)
{
    note(p, ip);
    was_off = preempt_is_off() && preempt_count() == 0;
    preempt_disable();
    this_cpu()->need_resched = true;
    preempt_enable();
    was_off = was_off && this_cpu()->need_resched;
    context = plat_context();
    was_refused = unregister_kprobe(p) == -EDEADLK;
}

KTEST(light, it_runs_with_preemption_off)
{
    struct kprobe p = { .light_handler = look_around };

    if (!with_jump(&p, target))
        return;
    ktest_report(jump_site(p.site)->which == PLAT_SPECIALIZED_LIGHT_KEEP,
                 "as it calls others, all is kept for it");
    ktest_report(target(3) == 29 && was_off, "preemption is off");
    ktest_report(!preempt_is_off(), "and on again");
    ktest_report(context == PLAT_TRAP && was_refused, "it may change no probes");
    without_jump(&p);
}

/* ---- hits inside of a light handler ---- */

static void call_target(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    ran++;
    right += target(1) == 11;
}

static void add(volatile uint64_t *sum, uint64_t n)
{
    __atomic_add_fetch(sum, n, __ATOMIC_RELAXED);
}

static void call_helper(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    add(&ran, 1);
    add(&right, helper(1) == 2);
}

static int count_pre(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    right += regs->ip == (uintptr_t)helper + 1;
    return 0;
}

KTEST(light, it_meets_itself_and_others)
{
    struct kprobe again = { .light_handler = call_target };
    struct kprobe outer = { .light_handler = call_helper };
    struct kprobe inner = { .addr = (uintptr_t)helper, .pre_handler = count_pre };

    ran = right = 0;
    if (!with_jump(&again, target))
        return;
    target(3);
    ktest_report(ran == 1 && right == 1 && again.missed[MISS_RECURSION] == 1,
                 "itself: missed as recursion");
    without_jump(&again);
    ran = right = 0;
    if (!with_jump(&outer, target))
        return;
    register_kprobe(&inner);
    target(3);
    ktest_report(ran == 1 && right == 2 && inner.hits == 1, "another one, by a trap");
    by_hand_jump(&inner);
    target(3);
    ktest_report(ran == 2 && right == 4 && !inner.nmissed, "and by a jump");
    ktest_report(!plat_this_cpu()->depth && !preempt_is_off(), "nothing is left");
    without_jump(&inner);
    without_jump(&outer);
}

/* ---- interrupts and NMIs in a light handler ---- */

static volatile uint64_t nmis;
static volatile bool storming;

static bool nmi_through_helper(struct pt_regs *regs UNUSED)
{
    if (!storming)
        return false;
    nmis++;
    add(&right, helper(1) == 2);
    return true;
}

static void count_light(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    add(&ran, 1);
}

struct load {
    volatile bool stop;
    volatile uint64_t calls;
    uint64_t wrong;
};

static int run_load(void *arg)
{
    struct load *load = arg;

    while (!load->stop) {
        load->wrong += target(3) != 29;
        load->calls++;
    }
    return 0;
}

static void hit_in_call(void *unused UNUSED)
{
    target(1);
}

/* The light handler calls helper(), which has a probe as well. NMIs also call helper().
 */
KTEST(light, nmis_and_interrupts_come_on_top)
{
    struct kprobe outer = { .light_handler = call_helper };
    struct kprobe inner = { .light_handler = count_light };
    struct load load = { 0 };
    uint64_t count = ktest_count(600, 50000), sent = 0;
    int tid;

    if (ktest_lacks_cpus(2))
        return;
    nmi_take(nmi_through_helper);
    nmis = ran = right = 0;
    if (!with_jump(&outer, target) || !with_jump(&inner, helper))
        return;
    tid = ktest_thread(run_load, &load, BIT(cpu_count() - 1));
    while (!load.calls)
        thread_yield();
    storming = true;
    for (; sent < 100; sent++)
        smp_call_all(hit_in_call, NULL);
    nmi_send_many(cpu_count() - 1, count, &nmis);
    load.stop = true;
    thread_join(tid, NULL);
    storming = false;
    without_jump(&inner);
    without_jump(&outer);
    ktest_report(nmis == count && load.wrong == 0, "%lu NMIs, all results right", nmis);
    ktest_report(outer.hits + outer.nmissed == load.calls + sent * cpu_count(),
                 "%lu hits, %lu missed", outer.hits, outer.nmissed);
    ktest_report(inner.hits + inner.nmissed == outer.hits + nmis,
                 "on top: %lu hits, %lu missed", inner.hits, inner.nmissed);
    ktest_report(ran == outer.hits + inner.hits && right == outer.hits + nmis,
                 "and each handler has run as often");
}

/* ---- a light handler that is given up ---- */

static int asked;

static void read_nowhere(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    char byte;

    ran++;
    __asm__ volatile("movb (%1), %0" : "=q"(byte) : "r"(UINT64_C(0x8000000000000000)));
    right++;
}

static int step_over(struct kprobe *p UNUSED, struct pt_regs *regs, int trapnr)
{
    asked = trapnr;
    regs->ip += 2; /* past the load: movb (%reg), %reg has two bytes */
    return 1;
}

static int fault_again(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED, int trapnr)
{
    asked = trapnr;
    return *(volatile int *)UINT64_C(0x8000000000000000);
}

/* While a light handler runs, hits[] has no entry of it; the engine makes one when the
 * handler faults. Until then hits[0] has what an earlier hit has left there.
 */
KTEST(light, a_fault_handler_that_faults_where_an_nmi_was_hit_before)
{
    struct kprobe p = { .light_handler = read_nowhere, .fault_handler = fault_again };
    bool is_right;

    ran = right = 0;
    asked = -1;
    if (!with_jump(&p, target))
        return;
    preempt_disable();
    plat_this_cpu()->hits[0].found.nmi = 1; /* as an earlier hit in an NMI leaves it */
    is_right = target(3) == 29;
    preempt_enable();
    ktest_report(is_right && ran == 1 && right == 0, "the program goes on");
    ktest_report(asked == TRAP_GP && p.flags & KPROBE_FLAG_TRIPPED,
                 "and the probe is off");
    without_jump(&p);
}

KTEST(light, its_fault_handler_is_asked_first)
{
    struct kprobe good = { .light_handler = read_nowhere, .fault_handler = step_over };
    struct kprobe bad = { .light_handler = read_nowhere, .fault_handler = fault_again };

    ran = right = 0;
    asked = -1;
    if (!with_jump(&good, target))
        return;
    ktest_report(target(3) == 29 && target(3) == 29 && ran == 2 && right == 2,
                 "it has dealt with it, twice");
    ktest_report(asked == TRAP_GP && !(good.flags & KPROBE_FLAG_TRIPPED),
                 "the probe stays on");
    without_jump(&good);
    ran = right = 0;
    asked = -1;
    if (!with_jump(&bad, target))
        return;
    ktest_report(target(3) == 29 && target(3) == 29 && ran == 1 && right == 0,
                 "one that faults itself: the program goes on");
    ktest_report(asked == TRAP_GP && bad.flags & KPROBE_FLAG_TRIPPED,
                 "and the probe is off");
    ktest_report(!plat_this_cpu()->depth && !preempt_is_off(), "nothing is left");
    without_jump(&bad);
}
