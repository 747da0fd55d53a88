/* test_arming.c - int3s are written and removed while other CPUs execute the text, are
 * halted, have interrupts off, or take NMIs.
 */
#include "kernel/cpu/trap.h"
#include "kernel/mm/paging.h"
#include "probes/core/text_poke.h"
#include "probes/explain/totals.h"
#include "probes/text/text_engine.h"
#include "tests/kernel/engines.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/logged.h"

#define MS UINT64_C(1000000)
#define CR0_WP BIT(16)

KTEST_TARGET(target, x, x * 11 + 4)

/* ---- other CPUs call the function while its probe is toggled ----------------------- */

/* The epochs of a probe. A call that begins and ends in the same epoch ON must be a hit.
 * A call that begins and ends in the same epoch OFF must be none. Of other calls nothing
 * is known.
 */
enum { OFF, RISING, ON, FALLING, EPOCHS };

static volatile unsigned epoch;
static volatile bool running;

/* What the runner thread of each CPU has counted; hits is counted by the handler on the
 * same CPU.
 */
static struct runner {
    volatile uint64_t hits, calls, sure_hits, sure_misses;
    uint64_t wrong, lost, ghosts;
} runners[MAX_CPUS];

static int count_here(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    runners[cpu_id()].hits++;
    return 0;
}

static void run_once(struct runner *r)
{
    unsigned before = epoch;
    uint64_t hits = r->hits;
    bool right = target((long)r->calls) == (long)r->calls * 11 + 4;
    uint64_t more = r->hits - hits;

    r->calls++;
    r->wrong += !right || more > 1;
    if (epoch != before)
        return;
    if (before % EPOCHS == ON) {
        r->sure_hits++;
        r->lost += more != 1;
    } else if (before % EPOCHS == OFF) {
        r->sure_misses++;
        r->ghosts += more != 0;
    }
}

static int run_target(void *arg)
{
    while (running) {
        for (int n = 0; n < 100; n++)
            run_once(arg);
        thread_yield(); /* to the thread that toggles, if it is on this CPU */
    }
    return 0;
}

static void runners_start(int tids[MAX_CPUS])
{
    memset(runners, 0, sizeof(runners));
    epoch = OFF;
    running = true;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        tids[cpu] = ktest_thread(run_target, &runners[cpu], BIT(cpu));
}

static void runners_stop(const int tids[MAX_CPUS])
{
    running = false;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        thread_join(tids[cpu], NULL);
}

static void runners_judge(const struct kprobe *p, uint64_t hits_before)
{
    struct runner all = { 0 };

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        all.hits += runners[cpu].hits;
        all.calls += runners[cpu].calls;
        all.sure_hits += runners[cpu].sure_hits;
        all.sure_misses += runners[cpu].sure_misses;
        all.wrong += runners[cpu].wrong;
        all.lost += runners[cpu].lost;
        all.ghosts += runners[cpu].ghosts;
    }
    ktest_report(all.wrong == 0, "%lu calls returned what they should", all.calls);
    ktest_report(all.lost == 0, "each of %lu that began and ended armed was a hit",
                 all.sure_hits);
    ktest_report(all.ghosts == 0, "none of %lu that began and ended disarmed was",
                 all.sure_misses);
    ktest_report(p->hits - hits_before == all.hits && !p->nmissed,
                 "%lu hits, none missed", (p->hits - hits_before));
}

/* linger - give the other threads time to call the function in the present epoch. With
 * one CPU, they run only if this thread yields.
 */
static void linger(void)
{
    uint64_t end = clock_ns() + MS / 10;

    do
        thread_yield();
    while (clock_ns() < end);
}

static void step_epoch(void)
{
    epoch++;
}

static void toggle(struct kprobe *p, int (*on)(struct kprobe *),
                   int (*off)(struct kprobe *), unsigned *failed)
{
    step_epoch();
    *failed += on(p) != 0;
    step_epoch();
    linger();
    step_epoch();
    *failed += off(p) != 0;
    step_epoch();
    linger();
}

static uint64_t retries(void)
{
    struct probe_totals totals;

    account_totals(&totals);
    return totals.retries;
}

static void toggling(const char *engine, struct kprobe *p, int (*on)(struct kprobe *),
                     int (*off)(struct kprobe *), uint64_t times)
{
    uint64_t before = retries(), hits = p->hits;
    int tids[MAX_CPUS];
    unsigned failed = 0;

    runners_start(tids);
    for (uint64_t n = 0; n < times; n++)
        toggle(p, on, off, &failed);
    runners_stop(tids);
    ktest_report(failed == 0, "%s: %lu times on and off", engine, times);
    runners_judge(p, hits);
    ktest_note("%lu times an int3 was gone when it was looked for", (retries() - before));
}

static void coming_and_going(const char *engine, void *unused UNUSED)
{
    struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = count_here };

    toggling(engine, &p, register_kprobe, unregister_kprobe, ktest_rounds(5, 500));
}

KTEST(arming, no_call_is_lost_while_a_probe_comes_and_goes)
{
    for_each_engine(coming_and_going, NULL);
}

static void switching(const char *engine, void *arg)
{
    toggling(engine, arg, enable_kprobe, disable_kprobe, ktest_rounds(8, 2000));
}

KTEST(arming, nor_while_it_is_switched)
{
    struct kprobe p = { .addr = (uintptr_t)target,
                        .pre_handler = count_here,
                        .flags = KPROBE_FLAG_DISABLED };

    register_kprobe(&p);
    for_each_engine(switching, &p);
    unregister_kprobe(&p);
}

/* A CPU may fetch an int3, and trap only after another CPU has removed the int3 and
 * forgotten the probe. This hardly ever happens, because the other CPU synchronises all
 * CPUs in between. So here the test calls the trap handler itself.
 */
KTEST(arming, an_int3_that_has_gone_is_tried_again)
{
    struct pt_regs regs = { .ip = (uintptr_t)target + 1, .flags = FLAGS_FIXED };
    uint64_t before = retries();
    unsigned long flags = irq_save();
    bool taken = kprobe_int3_handler(&regs, plat_this_cpu());

    irq_restore(flags);
    ktest_report(taken && regs.ip == (uintptr_t)target, "the CPU goes back to it");
    ktest_report(retries() == before + 1, "which is counted");
}

/* ---- every CPU is synchronised before a change is done ----------------------------- */

static void sync_counts(uint64_t counts[MAX_CPUS])
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        counts[cpu] = plat_sync_count(cpu);
}

static unsigned cpus_synced(const uint64_t before[MAX_CPUS], uint64_t times)
{
    unsigned synced = 0;

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        synced += plat_sync_count(cpu) - before[cpu] >= times;
    return synced;
}

static void look_at_syncs(const char *engine, void *unused UNUSED)
{
    struct kprobe p = { .addr = (uintptr_t)target };
    uint64_t before[MAX_CPUS];

    ktest_note("%s", engine);
    sync_counts(before);
    register_kprobe(&p);
    ktest_report(cpus_synced(before, 2) == cpu_count(),
                 "arming: twice, for the copy and for the int3");
    sync_counts(before);
    disable_kprobe(&p);
    ktest_report(cpus_synced(before, 1) == cpu_count(), "disabling: once");
    sync_counts(before);
    enable_kprobe(&p);
    ktest_report(cpus_synced(before, 1) == cpu_count(), "enabling: once");
    sync_counts(before);
    unregister_kprobe(&p);
    ktest_report(cpus_synced(before, 2) == cpu_count(),
                 "removing: for the text, and before the copy is freed");
}

KTEST(arming, every_cpu_is_synchronised_before_it_returns)
{
    for_each_engine(look_at_syncs, NULL);
}

/* ---- a CPU that is halted -------------------------------------------------------------- */

#define TRIES 1000

/* come_and_go - register and unregister @p while CPU 1 is halted. Return: was CPU 1
 * spared all three interrupts, those for the copy, for the int3, and for the removal?
 */
static bool come_and_go(struct kprobe *p)
{
    uint64_t calls = irq_count(1, VECTOR_CALL), spared = percpu_of(1)->spared_count;

    while (!READ_ONCE(percpu_of(1)->halted))
        pause();
    register_kprobe(p);
    unregister_kprobe(p);
    return irq_count(1, VECTOR_CALL) == calls && percpu_of(1)->spared_count - spared >= 3;
}

static void call_target(void *unused UNUSED)
{
    target(1);
}

/* The engine stop_machine wakes halted CPUs, because it stops all of them. */
KTEST(arming, a_halted_cpu_is_left_alone_and_serialises_when_it_wakes)
{
    const struct text_engine *before = text_engine_get();
    struct kprobe keeps_the_page = { .addr = (uintptr_t)call_target };
    struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = count_here };
    struct percpu *other;
    uint64_t woken, nmis;
    unsigned tries = 0;

    if (ktest_lacks_cpus(2))
        return;
    text_engine_set(text_engines[0]);
    memset(runners, 0, sizeof(runners));
    thread_set_affinity(BIT(0));
    other = percpu_of(1);
    register_kprobe(&keeps_the_page);
    while (tries < TRIES && !come_and_go(&p))
        tries++;
    ktest_report(tries < TRIES, "a probe came and went without a call to it");
    register_kprobe(&p);
    while (!READ_ONCE(other->halted))
        pause();
    woken = READ_ONCE(other->woken_count);
    smp_call(1, call_target, NULL);
    ktest_report(READ_ONCE(other->woken_count) > woken, "it serialises when it wakes");
    ktest_report(runners[1].hits == 1, "and sees the probe");
    unregister_kprobe(&p);
    unregister_kprobe(&keeps_the_page);
    text_engine_set(before);
    nmis = READ_ONCE(other->nmi_sync_count);
    for (tries = 0; tries < TRIES && READ_ONCE(other->nmi_sync_count) == nmis; tries++) {
        while (!READ_ONCE(other->halted))
            pause();
        smp_send_nmi(1);
        clock_spin_ns(MS);
    }
    ktest_report(tries < TRIES, "an NMI that wakes it serialises, too");
}

/* ---- a CPU that does not listen -------------------------------------------------------- */

static volatile bool deaf, registered;
static volatile uint64_t deaf_until;

/* be_deaf - spin with interrupts off for @deaf_for_ns nanoseconds; then wait until the
 * probe is registered, and call the probed function.
 */
static int be_deaf(void *deaf_for_ns)
{
    unsigned long flags = irq_save();

    deaf_until = clock_ns() + (uintptr_t)deaf_for_ns;
    deaf = true;
    while (clock_ns() < deaf_until)
        pause();
    irq_restore(flags);
    while (!registered)
        pause();
    target(1);
    return 0;
}

KTEST(arming, a_deaf_cpu_is_waited_for_and_named)
{
    uint64_t deaf_for_ns = ktest_count(300, 2000) * MS;
    struct clone_args victim = { .fn = be_deaf, .arg = (void *)deaf_for_ns };
    struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = count_here };
    uint64_t unanswered = smp_unanswered(), synced, end;
    int tid, err;

    if (ktest_lacks_cpus(2))
        return;
    memset(runners, 0, sizeof(runners));
    deaf = registered = false;
    thread_set_affinity(BIT(0));
    victim.cpus = BIT(1);
    smp_set_call_limit(20 * MS);
    tid = kernel_clone(&victim);
    while (!deaf)
        thread_yield();
    synced = plat_sync_count(1);
    err = register_kprobe(&p);
    end = clock_ns();
    ktest_report(err == 0 && end >= deaf_until, "arming waits for it");
    ktest_report(plat_sync_count(1) >= synced + 2, "until it is synchronised too");
    registered = true;
    thread_join(tid, NULL);
    smp_set_call_limit(10000 * MS);
    unregister_kprobe(&p);
    ktest_report(runners[1].hits == 1, "its next call is a hit");
    ktest_report(smp_unanswered() > unanswered, "the wait was noticed");
    ktest_report(logged("smp: CPU 1 has not answered", "be_deaf+") > 0,
                 "the log names the CPU and the function it was in");
}

/* ---- NMIs in every phase, and no writable text ------------------------------------- */

static volatile uint64_t nmi_calls, nmi_wrong, nmi_unprotected;

/* The handler of a probe in the NMI code, so it runs inside of NMIs. */
static int call_in_nmi(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    nmi_calls++;
    if (target(7) != 81)
        nmi_wrong++;
    if (!(read_cr0() & CR0_WP))
        nmi_unprotected++;
    return 0;
}

static volatile bool toggles_done;

static int toggle_under_nmis(void *times)
{
    struct kprobe p = { .addr = (uintptr_t)target };
    unsigned failed = 0;

    for (uint64_t n = 0; n < (uintptr_t)times; n++) {
        failed += register_kprobe(&p) != 0;
        failed += target(1) != 15;
        failed += unregister_kprobe(&p) != 0;
    }
    toggles_done = true;
    return (int)failed;
}

/* send_and_let_go_on - send one NMI to @cpu, wait until it was handled, and pause.
 * Without the pause the CPU would do nothing but handle NMIs.
 */
static void send_and_let_go_on(unsigned cpu, uint64_t pause_ns)
{
    uint64_t before = nmi_calls;

    smp_send_nmi(cpu);
    for (unsigned spins = 0; nmi_calls == before && spins < 1000000; spins++)
        pause();
    clock_spin_ns(pause_ns);
}

KTEST(arming, nmis_find_the_text_whole_and_protected_in_every_phase)
{
    uint64_t times = ktest_count(30, 1000);
    struct kprobe in_nmi = { .symbol_name = "nmi_dispatch", .pre_handler = call_in_nmi };
    struct clone_args toggler = { .fn = toggle_under_nmis, .arg = (void *)times };
    int tid, failed = 1;

    if (ktest_lacks_cpus(2))
        return;
    nmi_calls = nmi_wrong = nmi_unprotected = 0;
    toggles_done = false;
    thread_set_affinity(BIT(0));
    toggler.cpus = BIT(cpu_count() - 1);
    register_kprobe(&in_nmi);
    tid = kernel_clone(&toggler);
    for (unsigned n = 0; !toggles_done; n++)
        send_and_let_go_on(1 + n % (cpu_count() - 1), ktest_random() % 20000);
    thread_join(tid, &failed);
    unregister_kprobe(&in_nmi);
    ktest_report(failed == 0, "%lu times on and off", times);
    ktest_report(nmi_calls > times && nmi_wrong == 0,
                 "%lu NMIs called the function meanwhile, each came back right",
                 nmi_calls);
    ktest_report(nmi_unprotected == 0, "and none found write protection off");
    ktest_report(preempt_count() == 0, "nothing is left behind");
}
