/* test_nmi.c - probes in, under and around NMIs, which come at any instruction. */
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/thread/thread.h"
#include "probes/kprobe.h"
#include "probes/life.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"

#define LAST_CPU (cpu_count() - 1)

static volatile uint64_t nmis;
static volatile bool storming;

/* What the NMI does: calls functions that carry probes. */
static NOINLINE uint64_t in_nmi(uint64_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

static NOINLINE long both(long x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 5 + 3;
}

static volatile long both_sum;

static bool storm_nmi(struct pt_regs *regs)
{
    (void)regs;
    if (!storming)
        return false;
    nmis = in_nmi(nmis);
    both_sum = both(1);
    return true;
}

static void storm_init(void)
{
    static bool done;

    if (!done)
        trap_set_handler(TRAP_NMI, storm_nmi);
    done = true;
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

static int nothing(struct kprobe *p, struct pt_regs *regs)
{
    (void)p;
    (void)regs;
    return 0;
}

static void nothing_after(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
    (void)p;
    (void)regs;
    (void)flags;
}

static void storm(uint64_t count, kprobe_post_handler_t post)
{
    struct kprobe p[] = {
        { .addr = (uintptr_t)in_nmi, .pre_handler = nothing, .post_handler = post },
        { .addr = (uintptr_t)both, .pre_handler = nothing, .post_handler = post },
        { .symbol_name = "nmi_dispatch", .pre_handler = nothing, .post_handler = post },
    };
    struct load load = { 0 };
    uint64_t nmi_before = irq_count(LAST_CPU, TRAP_NMI), taken;
    int tid;

    storm_init();
    nmis = 0;
    storming = true;
    for (size_t i = 0; i < ARRAY_LEN(p); i++)
        ktest_report(register_kprobe(&p[i]) == 0, "a probe on %s",
                     p[i].symbol_name ? p[i].symbol_name
                     : i              ? "both"
                                      : "in_nmi");
    tid = kernel_clone(&(struct clone_args){
        .fn = run_probed, .arg = &load, .name = "load", .cpus = BIT(LAST_CPU) });
    nmi_send_many(LAST_CPU, count, &nmis);
    load.stop = true;
    thread_join(tid, NULL);
    for (size_t i = 0; i < ARRAY_LEN(p); i++)
        unregister_kprobe(&p[i]);
    storming = false;
    taken = irq_count(LAST_CPU, TRAP_NMI) - nmi_before;
    ktest_report(taken == count, "%lu NMIs taken", (unsigned long)taken);
    ktest_report(nmis == taken, "each ran to its end");
    ktest_report(p[0].hits + p[0].nmissed == taken,
                 "probe in the NMI: %lu hits, %lu missed", (unsigned long)p[0].hits,
                 (unsigned long)p[0].nmissed);
    ktest_report(p[1].hits + p[1].nmissed == taken + load.calls,
                 "in both: %lu hits, %lu missed, %lu + %lu calls",
                 (unsigned long)p[1].hits, (unsigned long)p[1].nmissed,
                 (unsigned long)taken, (unsigned long)load.calls);
    ktest_report(p[2].hits + p[2].nmissed == taken, "in what dispatches NMIs: %lu",
                 (unsigned long)p[2].hits);
    ktest_report(load.wrong == 0, "what was interrupted computed what it should");
}

KTEST(nmi, a_storm_loses_no_hit)
{
    if (cpu_count() < 2) {
        ktest_skip("needs a second CPU to send NMIs");
        return;
    }
    storm(ktest_count(1000, 400000), NULL);
}

KTEST(nmi, a_storm_over_steps_by_int3)
{
    if (cpu_count() < 2) {
        ktest_skip("needs a second CPU to send NMIs");
        return;
    }
    storm(ktest_count(1000, 333334), nothing_after);
}

KTEST(nmi, a_storm_over_steps_by_tf)
{
    if (cpu_count() < 2) {
        ktest_skip("needs a second CPU to send NMIs");
        return;
    }
    step_set_engine(STEP_TF);
    storm(ktest_count(1000, 333334), nothing_after);
    step_set_engine(STEP_INT3);
}
