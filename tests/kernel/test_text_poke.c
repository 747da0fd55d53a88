/* test_text_poke.c - instructions of several bytes are changed while all CPUs execute
 * them, by each engine. Each execution is that of the old or the new instruction, never
 * a mixture.
 */
#include "probes/core/text_poke.h"

#include "kernel/sync/stop_machine.h"
#include "probes/insn/encode.h"
#include "probes/text/text_engine.h"
#include "probes/text/text_phases.h"
#include "tests/kernel/engines.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/logged.h"
#include "tests/kernel/nmi_send.h"
#include "tests/kernel/poke_targets.h"

#define MS UINT64_C(1000000)

/* poke_targets.asm */
extern const char spin_inside_len[];
int spin_inside(void *leave);

/* ---- changes under running CPUs ---------------------------------------------------- */

static uint64_t synced[MAX_CPUS];
static unsigned phases, others, unsynced;

/* watch - let @fn be called in each phase of a change; NULL: no longer. */
static void watch(void (*fn)(const struct text_phase *p))
{
    plat_lock(PLAT_TEXT);
    text_phases_watch(fn);
    plat_unlock(PLAT_TEXT);
}

static void look_at_counts(const struct text_phase *p)
{
    if (!p->cpus)
        return;
    phases++;
    others += !(text_engine_get()->steps & BIT(p->step));
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        uint64_t count = plat_sync_count(cpu);

        unsynced += count == synced[cpu];
        synced[cpu] = count;
    }
}

static void straddling(const char *engine, void *unused UNUSED)
{
    uint64_t rounds = ktest_count(3, 60);
    unsigned batches = (unsigned)rounds * TARGETS_BATCHES;
    unsigned steps = bit_count(text_engine_get()->steps);
    int tids[MAX_CPUS];

    phases = others = unsynced = 0;
    watch(look_at_counts);
    runners_start(tids);
    targets_poke_rounds(rounds);
    runners_stop(tids);
    watch(NULL);
    seen_report(engine, seen_sum(seen));
    ktest_report(phases >= batches && phases <= batches * steps && !others,
                 "%u batches took %u steps, each a step of this engine", batches, phases);
    ktest_report(unsynced == 0, "and every CPU synchronised in each");
}

KTEST(text_poke, at_every_offset_of_a_line_and_across_pages)
{
    targets_begin();
    for_each_engine(straddling, NULL);
    targets_end();
}

/* ---- NMIs in each step ---- */

static volatile bool storming;
static volatile unsigned nmis;

static bool run_in_nmi(struct pt_regs *regs UNUSED)
{
    if (!storming)
        return false;
    targets_run(&seen_in_nmi[cpu_id()]);
    __atomic_add_fetch(&nmis, 1, __ATOMIC_RELEASE);
    return true;
}

static bool nmi_and_wait(unsigned cpu)
{
    uint64_t end = clock_ns() + 60000 * MS;
    unsigned before = nmis;

    smp_send_nmi(cpu);
    while (__atomic_load_n(&nmis, __ATOMIC_ACQUIRE) == before && clock_ns() < end)
        pause();
    return nmis != before;
}

static struct {
    unsigned phases, nmis;
} stormed[TEXT_POKE_STEPS];

static void nmi_to_all(const struct text_phase *p)
{
    stormed[p->step].phases += !p->cpus;
    for (unsigned cpu = 0; p->cpus && cpu < cpu_count(); cpu++)
        stormed[p->step].nmis += nmi_and_wait(cpu);
}

static void storm(const char *engine, void *unused UNUSED)
{
    uint64_t rounds = ktest_count(1, 20);
    int tids[MAX_CPUS];

    memset(stormed, 0, sizeof(stormed));
    watch(nmi_to_all);
    runners_start(tids);
    storming = true;
    targets_poke_rounds(rounds);
    storming = false;
    runners_stop(tids);
    watch(NULL);
    seen_report(engine, seen_sum(seen));
    seen_report("inside NMIs", seen_sum(seen_in_nmi));
    for (unsigned step = 0; step < TEXT_POKE_STEPS; step++)
        if (stormed[step].phases)
            ktest_report(stormed[step].nmis == stormed[step].phases * cpu_count(),
                         "%u NMIs in the step %s", stormed[step].nmis,
                         text_phase_name(step));
}

KTEST(text_poke, an_nmi_in_each_step_on_each_cpu)
{
    nmi_take(run_in_nmi);
    targets_begin();
    for_each_engine(storm, NULL);
    targets_end();
}

/* An NMI must execute a serialising instruction if it comes after text was written and
 * before the CPUs are synchronised, and only then. The counters: writes, and NMIs that
 * have done so.
 */
static volatile uint64_t writes, nmis_serialised;

static int nmi_while_writing(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    uint64_t before = this_cpu()->nmi_sync_count;

    writes++;
    smp_send_nmi(cpu_id());
    for (unsigned n = 0; n < 100000 && this_cpu()->nmi_sync_count == before; n++)
        pause();
    nmis_serialised += this_cpu()->nmi_sync_count - before;
    return 0;
}

KTEST(text_poke, nmis_serialise_while_a_patch_is_open)
{
    struct kprobe p = { .symbol_name = "text_poke_alias_write",
                        .pre_handler = nmi_while_writing };
    uint64_t before;

    targets_begin();
    register_kprobe(&p);
    writes = nmis_serialised = 0;
    targets_poke_one(0, new_code);
    targets_poke_one(0, old_code);
    ktest_report(writes >= 2 && nmis_serialised == writes, "%lu writes, %lu NMIs did",
                 writes, nmis_serialised);
    unregister_kprobe(&p);
    before = this_cpu()->nmi_sync_count;
    smp_send_nmi(cpu_id());
    clock_spin_ns(MS);
    ktest_report(this_cpu()->nmi_sync_count == before, "one behind it does not");
    targets_end();
}

/* ---- CPUs that run into the int3 ---- */

static unsigned guarded, held;
static uint64_t not_old;

static uint64_t traps_of(unsigned cpu)
{
    return READ_ONCE(plat_probe_cpu(cpu)->ran[WAY_BOOST]);
}

static bool is_guarded(void)
{
    for (size_t i = 0; i < TARGETS; i++)
        if (*(const volatile uint8_t *)poke_targets[i] == INSN_INT3)
            return true;
    return false;
}

/* hold - if this phase leaves an int3 in the text, and other CPUs run meanwhile, keep the
 * phase until the last CPU has called all targets ten times, and count whether it has
 * trapped. A call that began before this phase is among the first TARGETS calls, so these
 * are not looked at.
 */
static void hold(const struct text_phase *p)
{
    const struct seen *s = &seen[cpu_count() - 1];
    uint64_t traps = traps_of(cpu_count() - 1), new, end = s->calls + TARGETS;

    if (!p->cpus || stop_machine_running() || !is_guarded())
        return;
    guarded++;
    while (s->calls < end)
        pause();
    new = s->new;
    while (s->calls < end + 10 * TARGETS)
        pause();
    not_old += s->new - new;
    held += traps_of(cpu_count() - 1) > traps;
}

static void hold_all(const char *engine, void *unused UNUSED)
{
    int tids[MAX_CPUS];

    guarded = held = 0;
    not_old = 0;
    runners_start(tids);
    watch(hold);
    targets_poke(new_code);
    targets_poke(old_code);
    watch(NULL);
    runners_stop(tids);
    seen_report(engine, seen_sum(seen));
    ktest_report(held == guarded, "%u times held until a CPU had trapped", held);
    ktest_report(not_old == 0, "it saw the old one each time");
}

KTEST(text_poke, a_cpu_that_traps_meanwhile_runs_the_old_one)
{
    if (ktest_lacks_cpus(2))
        return;
    targets_begin();
    thread_set_affinity(BIT(0));
    for_each_engine(hold_all, NULL);
    targets_end();
}

/* ---- a CPU inside what is changed ---- */

static bool leave_it;

/* let_go - wait until the log says that a CPU is inside of the code to be changed, and
 * let the CPU leave it. Return: was the code changed before that?
 */
static int let_go(void *unused UNUSED)
{
    uint64_t end = clock_ns() + 60000 * MS;
    uint8_t before[INSN_MAX_LEN];
    int changed;

    memcpy(before, (const void *)spin_inside, sizeof(before));
    while (!logged("text-poke: CPU 1 is at", "spin_inside+") && clock_ns() < end)
        thread_sleep_ns(MS);
    changed = memcmp(before, (const void *)spin_inside, sizeof(before)) != 0;
    WRITE_ONCE(leave_it, true);
    return changed;
}

/* Preemption is off, so that no other thread runs on this CPU: the log must name the
 * function in which the CPU is.
 */
static int stay_inside(void *leave)
{
    int err;

    preempt_disable();
    err = spin_inside(leave);
    preempt_enable();
    return err;
}

KTEST(text_poke, a_cpu_inside_is_waited_for_and_named)
{
    static const uint8_t nops[] = { 0x31, 0xc0, 0x0f, 0x1f, 0x80, 0, 0, 0, 0 };
    struct text_poke p = { .addr = (uintptr_t)spin_inside,
                           .len = (uint8_t)(uintptr_t)spin_inside_len },
                     back;
    struct kprobe site = { .addr = p.addr, .flags = KPROBE_FLAG_DISABLED };
    const struct text_engine *before = text_engine_get();
    int spinner_tid, watcher_tid, touched = 1, code = 1;

    if (ktest_lacks_cpus(2))
        return;
    back = p;
    memcpy(back.bytes, (const void *)p.addr, p.len);
    memcpy(p.bytes, nops, p.len);
    register_kprobe(&site);
    thread_set_affinity(BIT(0));
    leave_it = false;
    spinner_tid = ktest_thread(stay_inside, &leave_it, BIT(1));
    thread_sleep_ns(20 * MS);
    watcher_tid = ktest_thread(let_go, NULL, BIT(0));
    text_engine_set(&text_engine_stop_machine);
    poke(&p, 1);
    text_engine_set(before);
    ktest_report(READ_ONCE(leave_it), "it was not changed before the CPU had left");
    thread_join(watcher_tid, &touched);
    thread_join(spinner_tid, &code);
    ktest_report(touched == 0, "nothing had been written by then");
    ktest_report(logged("text-poke: CPU 1 is at", "spin_inside+") > 0,
                 "the log names the CPU and the function");
    ktest_report(code == 0 && !memcmp((const void *)p.addr, p.bytes, p.len),
                 "the CPU came back, and the change is there");
    poke(&back, 1);
    unregister_kprobe(&site);
}

/* ---- a CPU that does not listen ---- */

static volatile bool deaf;

static int turn_deaf(void *unused UNUSED)
{
    unsigned long flags = irq_save();

    deaf = true;
    clock_spin_ns(300 * MS);
    irq_restore(flags);
    return 0;
}

KTEST(text_poke, a_deaf_cpu_holds_up_the_machine_and_is_named)
{
    const struct text_engine *before = text_engine_get();
    uint64_t unanswered = smp_unanswered();
    int tid;

    if (ktest_lacks_cpus(2))
        return;
    targets_begin();
    thread_set_affinity(BIT(0));
    smp_set_call_limit(20 * MS);
    text_engine_set(&text_engine_stop_machine);
    deaf = false;
    tid = ktest_thread(turn_deaf, NULL, BIT(1));
    while (!deaf)
        thread_yield();
    targets_poke_one(0, new_code);
    thread_join(tid, NULL);
    targets_poke_one(0, old_code);
    text_engine_set(before);
    smp_set_call_limit(10000 * MS);
    ktest_report(smp_unanswered() > unanswered, "the wait was noticed");
    ktest_report(logged("smp: CPU 1 has not answered", "turn_deaf+") > 0 ||
                     logged("smp: CPU 1 has not answered", "clock_spin_ns+") > 0 ||
                     logged("smp: CPU 1 has not answered", "clock_ns+") > 0,
                 "the log names the CPU and the function it was in");
    targets_end();
}

/* ---- a large batch comes and goes ---- */

static void come_and_go(const char *engine, void *unused UNUSED)
{
    uint64_t rounds = ktest_count(5, 80), hits = 0, missed = 0;
    int tids[MAX_CPUS];

    targets_failed = 0;
    runners_start(tids);
    for (uint64_t n = 0; n < rounds; n++) {
        targets_in(0);
        thread_sleep_ns(MS);
        targets_out();
        for (size_t i = 0; i < TARGETS; i++) {
            hits += target_probes[i].hits;
            missed += target_probes[i].nmissed;
        }
    }
    runners_stop(tids);
    seen_report(engine, seen_sum(seen));
    ktest_report(targets_failed == 0, "%lu times there and gone", rounds);
    ktest_report(hits > 0 && !missed, "%lu hits, %lu missed", hits, missed);
}

KTEST(text_poke, a_batch_goes_away_in_a_storm_of_hits)
{
    for_each_engine(come_and_go, NULL);
}
