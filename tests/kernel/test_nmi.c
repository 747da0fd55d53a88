/* test_nmi.c - NMIs come at any instruction of probed code, and execute probed code
 * themselves; and state of the CPU that an NMI must not change.
 */
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/trap.h"
#include "kernel/mm/extable.h"
#include "kernel/sync/stop_machine.h"
#include "kernel/time/sample.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"
#include "tests/kernel/nothing.h"
#include "tests/kernel/own_steps.h"

#define LAST_CPU (cpu_count() - 1)

static volatile uint64_t nmis;
static void (*volatile doing)(struct pt_regs *regs); /* what an NMI does; or NULL */

/* An NMI calls this function, which has a probe. */
static NOINLINE uint64_t in_nmi(uint64_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

KTEST_TARGET(both, x, x * 5 + 3)

static volatile long both_sum;

static void storm_nmi(struct pt_regs *regs UNUSED)
{
    nmis = in_nmi(nmis);
    both_sum = both(1);
}

static bool do_in_nmi(struct pt_regs *regs)
{
    if (!doing)
        return false;
    doing(regs);
    return true;
}

static void let_nmis(void (*fn)(struct pt_regs *regs))
{
    nmi_take(do_in_nmi);
    doing = fn;
}

struct load {
    volatile bool stop;
    uint64_t calls, wrong;
};

static int run_probed(void *arg)
{
    struct load *load = arg;

    while (!load->stop) {
        load->wrong += both((long)load->calls) != (long)load->calls * 5 + 3;
        load->calls++;
    }
    return 0;
}

static void storm(uint64_t count, kprobe_post_handler_t post)
{
    struct kprobe p[] = {
        { .addr = (uintptr_t)in_nmi, .pre_handler = no_pre, .post_handler = post },
        { .addr = (uintptr_t)both, .pre_handler = no_pre, .post_handler = post },
        { .symbol_name = "nmi_dispatch", .pre_handler = no_pre, .post_handler = post },
    };
    struct load load = { 0 };
    uint64_t nmi_before = irq_count(LAST_CPU, TRAP_NMI), taken;
    int tid;

    nmis = 0;
    let_nmis(storm_nmi);
    for (size_t i = 0; i < ARRAY_LEN(p); i++)
        ktest_report(register_kprobe(&p[i]) == 0, "a probe on %s",
                     p[i].symbol_name ? p[i].symbol_name
                     : i              ? "both"
                                      : "in_nmi");
    tid = ktest_thread(run_probed, &load, BIT(LAST_CPU));
    nmi_send_many(LAST_CPU, count, &nmis);
    load.stop = true;
    thread_join(tid, NULL);
    for (size_t i = 0; i < ARRAY_LEN(p); i++)
        unregister_kprobe(&p[i]);
    let_nmis(NULL);
    taken = irq_count(LAST_CPU, TRAP_NMI) - nmi_before;
    ktest_report(taken == count, "%lu NMIs taken", taken);
    ktest_report(nmis == taken, "each ran to its end");
    ktest_report(p[0].hits + p[0].nmissed == taken,
                 "probe in the NMI: %lu hits, %lu missed", p[0].hits, p[0].nmissed);
    ktest_report(p[1].hits + p[1].nmissed == taken + load.calls,
                 "in both: %lu hits, %lu missed, %lu + %lu calls", p[1].hits,
                 p[1].nmissed, taken, load.calls);
    ktest_report(p[2].hits + p[2].nmissed == taken, "in what dispatches NMIs: %lu",
                 p[2].hits);
    ktest_report(load.wrong == 0, "what was interrupted computed what it should");
}

KTEST(nmi, a_storm_loses_no_hit)
{
    if (ktest_lacks_cpus(2))
        return;
    storm(ktest_count(1000, 400000), NULL);
}

KTEST(nmi, a_storm_over_steps_by_int3)
{
    if (ktest_lacks_cpus(2))
        return;
    storm(ktest_count(1000, 333334), no_post);
}

KTEST(nmi, a_storm_over_steps_by_tf)
{
    if (ktest_lacks_cpus(2))
        return;
    step_set_engine(STEP_TF);
    storm(ktest_count(1000, 333334), no_post);
    step_set_engine(STEP_INT3);
}

/* ---- one NMI, sent by the CPU to itself ---- */

/* nmi_here - send an NMI to this CPU, which calls @fn, and wait until nmis is @count. The
 * caller has interrupts off, so that no other code faults meanwhile.
 */
static void nmi_here(void (*fn)(struct pt_regs *regs), uint64_t count)
{
    nmis = 0;
    let_nmis(fn);
    smp_send_nmi(cpu_id());
    while (nmis < count)
        pause();
    let_nmis(NULL);
}

static void fault_in_nmi(struct pt_regs *regs UNUSED)
{
    char byte;

    copy_nofault(&byte, (const void *)UINT64_C(0xdead000), 1);
    nmis = nmis + 1;
}

/* An NMI can come between a page fault and the first instruction that reads CR2. */
KTEST(nmi, a_fault_inside_leaves_cr2_as_it_was)
{
    const uint64_t value = UINT64_C(0x123456789000);
    unsigned long flags = irq_save();
    uint64_t after;

    write_cr2(value);
    nmi_here(fault_in_nmi, 1);
    after = read_cr2();
    irq_restore(flags);
    ktest_report(after == value, "CR2 is 0x%lx, as before an NMI that faults", after);
}

/* The NMI handler steps itself, so two single-step traps come inside of the NMI, and the
 * first of them returns to code with TF set. Then the handler sends one more NMI to its
 * own CPU, which must wait until the first NMI has ended. If it does not wait, it
 * overwrites the stack frame of the first NMI; so the test lets it return to the code
 * that the first NMI has interrupted.
 */
static struct {
    struct pt_regs interrupted;
    unsigned steps;
    bool is_inside, is_nested;
} stepped;

static void step_twice(struct pt_regs *regs)
{
    if (++stepped.steps == 2)
        regs->flags &= ~FLAGS_TF;
}

static void step_in_nmi(struct pt_regs *regs)
{
    nmis = nmis + 1;
    if (stepped.is_inside) {
        stepped.is_nested = true;
        this_cpu()->nmi_depth--;
        *regs = stepped.interrupted;
    }
    if (nmis > 1)
        return;
    stepped.interrupted = *regs;
    stepped.is_inside = true;
    own_steps_watch(step_twice);
    __asm__ volatile("pushfq\n\t"
                     "orq %0, (%%rsp)\n\t"
                     "popfq\n\t"
                     "nop\n\t"
                     "nop\n\t"
                     "nop" ::"i"(FLAGS_TF)
                     : "cc", "memory");
    own_steps_unwatch();
    smp_send_nmi(cpu_id());
    for (unsigned i = 0; i < 10000; i++)
        pause();
    stepped.is_inside = false;
}

KTEST(nmi, a_trap_inside_keeps_others_out)
{
    unsigned long flags = irq_save();

    stepped.steps = 0;
    stepped.is_inside = stepped.is_nested = false;
    nmi_here(step_in_nmi, 2);
    irq_restore(flags);
    ktest_report(stepped.steps == 2, "%u steps inside an NMI", stepped.steps);
    ktest_report(!stepped.is_nested && this_cpu()->nmi_depth == 0,
                 "the next one comes when it has ended");
}

static void sample_in_x2apic_mode(void *err)
{
    bool before = lapic_x2apic;

    lapic_x2apic = true;
    *(int *)err = sample_set_hz(SAMPLE_HZ_MIN);
    lapic_x2apic = before;
}

/* All CPUs stand, so none uses its APIC in the wrong mode. */
KTEST(nmi, samples_are_refused_where_no_interrupt_goes_to_all)
{
    int err = 0;

    stop_machine(sample_in_x2apic_mode, &err);
    ktest_report(err == -EOPNOTSUPP && !sample_hz(), "in x2APIC mode: %s", err_text(err));
    sample_set_hz(0);
}

static void take_a_ms(struct pt_regs *regs UNUSED)
{
    clock_spin_ns(1000000);
}

/* At first the CPUs would execute nothing but NMIs, for ever. */
KTEST(nmi, samples_that_take_too_long_become_fewer)
{
    int err;

    let_nmis(take_a_ms);
    err = sample_set_hz(SAMPLE_HZ_MAX);
    while (!err && sample_hz() > SAMPLE_HZ_MAX / 16)
        pause();
    ktest_report(!err, "%u of %u in a second are left", sample_hz(), SAMPLE_HZ_MAX);
    sample_set_hz(0);
    let_nmis(NULL);
}
