/* test_contain.c - the engine undoes at the end of a hit what the handler has done to
 * its CPU and thread. This holds for every way of a hit (ways.h), in threads,
 * interrupts and NMIs.
 */
#include "kernel/sync/mutex.h"
#include "kernel/sync/spinlock.h"
#include "probes/jump/optimize.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/logged.h"
#include "tests/kernel/nmi_send.h"
#include "tests/kernel/own_steps.h"
#include "tests/kernel/ways.h"

#define MS UINT64_C(1000000)
#define WATCHED (FLAGS_IF | FLAGS_DF | FLAGS_AC | FLAGS_NT)

/* ---- what a handler may do ---- */

static volatile char *volatile nowhere = (volatile char *)0x10;
static struct spinlock lock; /* each use begins with initialising it: it was left taken */

static void set_flags(uint64_t flags)
{
    __asm__ volatile("pushq %0; popfq" ::"r"(read_flags() | flags) : "memory", "cc");
}

static void fault(void)
{
    (void)*nowhere;
}

static void fault_without_preemption(void)
{
    preempt_disable();
    preempt_disable();
    fault();
}

static void fault_with_a_lock(void)
{
    lock = (struct spinlock)SPINLOCK_INIT;
    if (!spin_trylock(&lock)) /* an NMI may only try */
        return;
    fault();
}

static void fault_with_interrupts_on(void)
{
    if (cpu_context() == CTX_THREAD)
        sti();
    fault();
}

static void fault_with_interrupts_off(void)
{
    cli();
    fault();
}

static void fault_with_flags(void)
{
    set_flags(FLAGS_DF | FLAGS_AC | FLAGS_NT);
    fault();
}

static void leave_preemption_off(void)
{
    preempt_disable();
}

static void leave_interrupts_on(void)
{
    if (cpu_context() == CTX_THREAD)
        sti();
}

static void leave_interrupts_off(void)
{
    cli();
}

static void leave_flags(void)
{
    set_flags(FLAGS_DF | FLAGS_AC | FLAGS_NT);
}

static const struct {
    const char *name;
    void (*act)(void);
    bool faults;
} acts[] = {
    { "a fault", fault, true },
    { "a fault with preemption off", fault_without_preemption, true },
    { "a fault with a lock held", fault_with_a_lock, true },
    { "a fault with interrupts on", fault_with_interrupts_on, true },
    { "a fault with interrupts off", fault_with_interrupts_off, true },
    { "a fault with DF, AC and NT set", fault_with_flags, true },
    { "preemption left off", leave_preemption_off, false },
    { "interrupts left on", leave_interrupts_on, false },
    { "interrupts left off", leave_interrupts_off, false },
    { "DF, AC and NT left set", leave_flags, false },
};

/* ---- where the probed function is called ---- */

static uint64_t right, kept, hits;

/* hit - call the probed function once, and count whether its result is right and whether
 * the CPU is as it was before.
 */
static void hit(void)
{
    uint64_t flags = read_flags() & WATCHED;
    int preempt = preempt_count();

    right += way_hit();
    kept += preempt_count() == preempt && (read_flags() & WATCHED) == flags;
    hits++;
    if (preempt_count() > preempt) /* repaired, so that the next cases are not affected */
        while (preempt_count() > preempt)
            preempt_enable_no_resched();
    __asm__ volatile("pushq %0; popfq" ::"r"((read_flags() & ~WATCHED) | flags)
                     : "memory", "cc");
}

static void hit_in_thread(void)
{
    hit();
}

static void hit_without_preemption(void)
{
    preempt_disable();
    hit();
    preempt_enable();
}

static void hit_without_interrupts(void)
{
    unsigned long flags = irq_save();

    hit();
    irq_restore(flags);
}

static void hit_in_call(void *unused UNUSED)
{
    hit();
}

static volatile unsigned called_cpu;

static void hit_if_called(void *unused UNUSED)
{
    if (cpu_id() == called_cpu && cpu_context() == CTX_IRQ)
        hit();
}

/* The hit comes on another CPU: smp_call_all() interrupts the other CPUs, but calls the
 * function on its own CPU without an interrupt.
 */
static void hit_in_interrupt(void)
{
    if (cpu_count() == 1) {
        hit_in_call(NULL);
        return;
    }
    preempt_disable();
    called_cpu = (cpu_id() + 1) % cpu_count();
    smp_call_all(hit_if_called, NULL);
    preempt_enable();
}

static volatile bool nmi_wanted;

static bool hit_by_nmi(struct pt_regs *regs UNUSED)
{
    if (!nmi_wanted)
        return false;
    hit();
    nmi_wanted = false;
    return true;
}

static void hit_in_nmi(void)
{
    nmi_take(hit_by_nmi);
    nmi_wanted = true;
    smp_send_nmi(cpu_id());
    while (nmi_wanted)
        pause();
}

static const struct {
    const char *name;
    void (*hit)(void);
} places[] = {
    { "a thread", hit_in_thread },
    { "a thread without preemption", hit_without_preemption },
    { "a thread with interrupts off", hit_without_interrupts },
    { "an interrupt", hit_in_interrupt },
    { "an NMI", hit_in_nmi },
};

/* ---- all of them ---- */

#define ROUNDS 2 /* the second round finds the state that the first has left */

static void try_in(const struct way *way, size_t act, size_t place)
{
    uint64_t hits_before = hits;

    if (!way_begin(way, acts[act].act))
        return;
    for (unsigned n = 0; n < ROUNDS; n++)
        places[place].hit();
    thread_sleep_ns(1);
    if (right != hits || kept != hits || way_acts() == 0 ||
        way_is_off() != acts[act].faults || !way_count_is_right() ||
        way_hits() != (acts[act].faults ? 1 : ROUNDS) || !way_second_is_right())
        ktest_report(false, "%s: %s, in %s: %lu of %lu right, %lu kept, %lu acts%s%s%s",
                     way_name(way), acts[act].name, places[place].name, right, hits, kept,
                     way_acts(), way_is_off() ? ", off" : "",
                     way_count_is_right() ? "" : ", counts differ",
                     way_second_is_right() ? "" : ", the next handler is misled");
    right = kept = hits;
    if (hits == hits_before)
        ktest_report(false, "%s was not hit in %s", way_name(way), places[place].name);
    way_end();
}

static void try_way(const struct way *way)
{
    uint64_t before = hits;

    for (size_t act = 0; act < ARRAY_LEN(acts); act++)
        for (size_t place = 0; place < ARRAY_LEN(places); place++)
            try_in(way, act, place);
    ktest_report(hits - before >= ARRAY_LEN(acts) * ARRAY_LEN(places) * ROUNDS,
                 "%s: %lu hits", way_name(way), (hits - before));
}

KTEST(contain, what_a_handler_does_to_its_cpu_ends_with_the_hit)
{
    right = kept = hits = 0;
    for (size_t i = 0; way_get(i); i++)
        try_way(way_get(i));
}

/* ---- calls that a handler leaves behind ------------------------------------------------ */

static volatile bool inner_faults;
static volatile uint64_t inner_returns;

static NOINLINE long inner(long x)
{
    if (inner_faults)
        fault();
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

static int inner_returned(struct kretprobe_instance *ri UNUSED,
                          struct pt_regs *regs UNUSED)
{
    inner_returns++;
    return 0;
}

static void call_inner(void)
{
    inner(1);
}

/* leave_inner_behind - let a handler fault inside of a call of inner(),
 * whose return is probed.
 * @limited: the return probe can follow one instance at a time, which has data
 */
static void leave_inner_behind(const struct way *way, size_t place, bool limited)
{
    struct kretprobe rp = { .kp.addr = (uintptr_t)inner, .handler = inner_returned };
    uint64_t hits_before;
    bool followed;

    rp.maxactive = limited;
    rp.data_size = limited ? 100 : 0;
    inner_returns = 0;
    if (register_kretprobe(&rp) || !way_begin(way, call_inner)) {
        ktest_report(false, "%s: probes are set", way_name(way));
        return;
    }
    inner_faults = true;
    for (unsigned n = 0; n < ROUNDS; n++)
        places[place].hit();
    inner_faults = false;
    hits_before = kprobe_hits(&rp.kp);
    inner(1); /* it can be followed: the instance that was given up takes no room */
    followed = inner_returns == 1 && kprobe_hits(&rp.kp) == hits_before + 1;
    if (right != hits || kept != hits || !way_is_off() || !way_count_is_right() ||
        !followed || kprobe_hits(&rp.kp) != inner_returns + rp.nmissed + rp.dropped ||
        rp.dropped + rp.nmissed != hits_before)
        ktest_report(false, "%s, in %s: %lu hits, %lu returns, %lu missed, %lu dropped%s",
                     way_name(way), places[place].name,
                     (unsigned long)kprobe_hits(&rp.kp), (unsigned long)inner_returns,
                     (unsigned long)rp.nmissed, (unsigned long)rp.dropped,
                     way_count_is_right() ? "" : "; counts differ");
    right = kept = hits;
    way_end();
    unregister_kretprobe(&rp);
}

KTEST(contain, calls_that_a_handler_leaves_behind_are_dropped)
{
    right = kept = hits = 0;
    for (size_t i = 0; way_get(i); i++)
        for (size_t place = 0; place < ARRAY_LEN(places); place++)
            for (int limited = 0; limited < 2; limited++)
                leave_inner_behind(way_get(i), place, limited);
    ktest_report(hits > 0, "%lu hits", hits);
}

/* ---- two return probes, and the handler of either faults ------------------------------- */

static volatile uint64_t first_returned, second_returned;
static volatile bool first_stumbles, second_stumbles;

KTEST_TARGET(outer, x, x * 5 + 1)

static int first_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    first_returned++;
    inner_faults = first_stumbles;
    inner(1);
    return 0;
}

static int second_return(struct kretprobe_instance *ri UNUSED,
                         struct pt_regs *regs UNUSED)
{
    second_returned++;
    inner_faults = second_stumbles;
    inner(1);
    return 0;
}

static void stumble_at_return(bool first, bool second, enum optimize_method method)
{
    struct kretprobe g = { .kp.addr = (uintptr_t)inner, .handler = inner_returned };
    struct kretprobe a = { .kp.addr = (uintptr_t)outer, .handler = first_return };
    struct kretprobe b = { .kp.addr = (uintptr_t)outer, .handler = second_return };
    bool good;

    first_returned = second_returned = inner_returns = 0;
    first_stumbles = first;
    second_stumbles = second;
    jumps_by(method);
    good = !register_kretprobe(&g) && !register_kretprobe(&a) && !register_kretprobe(&b);
    optimize_run();
    good = good && outer(2) == 11;
    good = good && first_returned == 1 && second_returned == 1;
    good = good && outer(2) == 11;
    inner_faults = false;
    ktest_report(
        good && first_returned == (first ? 1 : 2) && second_returned == (second ? 1 : 2),
        "%s%s fault%s, by %s: called %lu and %lu times", first ? "the first" : "",
        second ? " the second" : "", first && second ? "" : "s",
        method == OPTIMIZE_OFF ? "traps" : "jumps", first_returned, second_returned);
    ktest_report(g.kp.hits + g.nmissed >= inner_returns &&
                     kprobe_hits(&g.kp) == inner_returns + g.nmissed + g.dropped,
                 "and what they called adds up");
    unregister_kretprobe(&a);
    unregister_kretprobe(&b);
    unregister_kretprobe(&g);
}

KTEST(contain, a_return_handler_that_faults_leaves_the_others_their_turn)
{
    for (unsigned which = 0; which < 4; which++) {
        stumble_at_return(which & 1, which & 2, OPTIMIZE_OFF);
        stumble_at_return(which & 1, which & 2, OPTIMIZE_PUN);
    }
}

/* ---- the end of a thread's turn ---------------------------------------------------- */

static void ask_for_switch(void)
{
    this_cpu()->need_resched = true;
}

/* is_asked - was this CPU asked to switch threads? The request is cleared. */
static bool is_asked(void)
{
    bool asked = READ_ONCE(this_cpu()->need_resched);

    WRITE_ONCE(this_cpu()->need_resched, false);
    return asked;
}

static void ask_in(const struct way *way, unsigned *met, unsigned *kept_waiting)
{
    unsigned long flags;

    if (!way_begin(way, ask_for_switch))
        return;
    way_hit();
    flags = irq_save();
    *met += !is_asked();
    way_hit();
    *kept_waiting += is_asked();
    irq_restore(flags);
    preempt_disable();
    way_hit();
    *kept_waiting += is_asked();
    preempt_enable();
    way_end();
}

/* A tick during a handler cannot switch threads, since preemption is off. The switch
 * happens when the hit ends.
 */
KTEST(contain, a_turn_that_ends_in_a_handler_ends_with_the_hit)
{
    unsigned ways = 0, met = 0, kept_waiting = 0;

    for (; way_get(ways); ways++)
        ask_in(way_get(ways), &met, &kept_waiting);
    ktest_report(met == ways, "in %u of %u ways another thread is asked for", met, ways);
    ktest_report(kept_waiting == 2 * ways,
                 "not where interrupts or preemption are off: %u of %u", kept_waiting,
                 2 * ways);
}

#define HITTERS 6
#define TURNS 5

static int inside[MAX_CPUS];
static unsigned intruders;

/* This handler switches interrupts on, and then takes longer than a thread's turn. */
static void dawdle_with_interrupts(void)
{
    unsigned long flags = irq_save();
    unsigned cpu = cpu_id();

    sti();
    if (__atomic_fetch_add(&inside[cpu], 1, __ATOMIC_SEQ_CST))
        __atomic_add_fetch(&intruders, 1, __ATOMIC_SEQ_CST);
    WRITE_ONCE(this_cpu()->need_resched, true);
    clock_spin_ns(3 * MS);
    preempt_disable();
    WRITE_ONCE(this_cpu()->need_resched, true);
    preempt_enable();
    if (cpu != cpu_id())
        __atomic_add_fetch(&intruders, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&inside[cpu], 1, __ATOMIC_SEQ_CST);
    irq_restore(flags);
}

static int hit_for_turns(void *arg UNUSED)
{
    bool good = true;

    for (unsigned n = 0; n < TURNS; n++)
        good &= way_hit();
    return good ? 0 : 1;
}

static void dawdle_in(const struct way *way)
{
    int tid[HITTERS], code, bad = 0;
    uint64_t expected = HITTERS * TURNS;

    if (!way_begin(way, dawdle_with_interrupts))
        return;
    intruders = 0;
    for (unsigned n = 0; n < HITTERS; n++)
        tid[n] = ktest_thread(hit_for_turns, NULL, 0);
    for (unsigned n = 0; n < HITTERS; n++)
        bad += tid[n] < 0 || thread_join(tid[n], &code) || code;
    if (intruders || bad || way_acts() != expected || !way_count_is_right())
        ktest_report(false, "%s: %u intruders, %lu of %lu hits", way_name(way), intruders,
                     way_acts(), expected);
    way_end();
}

KTEST(contain, a_handler_that_enables_interrupts_is_not_preempted)
{
    unsigned ways = 0;

    for (; way_get(ways); ways++)
        dawdle_in(way_get(ways));
    ktest_report(ways > 0, "in none of %u ways", ways);
}

/* ---- locks that are left taken --------------------------------------------------------- */

static struct mutex mutex = MUTEX_INIT(mutex), programs = MUTEX_INIT(programs);

static void fault_with_both(void)
{
    lock = (struct spinlock)SPINLOCK_INIT;
    if (spin_trylock(&lock) && mutex_trylock(&mutex))
        fault();
}

static bool is_logged_soon(const char *a, const char *b, unsigned before)
{
    for (unsigned n = 0; n < 1000; n++) {
        if (logged(a, b) > before)
            return true;
        thread_sleep_ns(MS);
    }
    return false;
}

static int want_mutex(void *arg UNUSED)
{
    mutex_lock(&mutex);
    mutex_unlock(&mutex);
    return 0;
}

static void leave_locks(const struct way *way)
{
    unsigned spins = logged("keeps a spinlock for ever", "fault_with_both+");
    unsigned mutexes = logged("keeps a mutex for ever", "fault_with_both+");
    unsigned waits = logged("waits for ever", "which was given up");
    int tid, code = 1;

    if (!way_begin(way, fault_with_both))
        return;
    mutex_lock(&programs);
    way_hit();
    ktest_report(!programs.held.left_by, "%s: the program's is not left", way_name(way));
    mutex_unlock(&programs);
    ktest_report(
        is_logged_soon("keeps a spinlock for ever", "fault_with_both+", spins) &&
            is_logged_soon("keeps a mutex for ever", "fault_with_both+", mutexes),
        "%s: the log names both, and where they were taken", way_name(way));
    tid = ktest_thread(want_mutex, NULL, 0);
    ktest_report(is_logged_soon("waits for ever", "which was given up", waits),
                 "and a thread that waits for the mutex");
    mutex_unlock(&mutex); /* this thread owns it: the handler ran in this thread */
    thread_join(tid, &code);
    ktest_report(code == 0 && !mutex.owner && !mutex.held.left_by,
                 "given back by the thread, it is as any other");
    way_end();
}

KTEST(contain, locks_that_a_handler_leaves_taken_are_named)
{
    for (size_t i = 0; way_get(i); i++)
        leave_locks(way_get(i));
}

KTEST(contain, locks_are_given_back_in_any_order)
{
    struct spinlock a = SPINLOCK_INIT, b = SPINLOCK_INIT;
    struct held_lock *before;
    bool first, second;

    preempt_disable();
    before = this_cpu()->locks;
    spin_lock(&a);
    spin_lock(&b);
    spin_unlock(&a);
    first = this_cpu()->locks == &b.held && b.held.outer == before;
    spin_unlock(&b);
    second = this_cpu()->locks == before;
    preempt_enable();
    ktest_report(first && second, "the list holds what is held");
}

KTEST_FATAL(contain, a_spinlock_that_is_left_taken_is_named)
{
    const struct way *way = way_get(0);

    way_begin(way, fault_with_a_lock);
    way_hit();
    spin_lock(&lock);
}

KTEST_FATAL(contain, a_spinlock_that_is_taken_twice_is_named)
{
    lock = (struct spinlock)SPINLOCK_INIT;
    spin_lock(&lock);
    spin_lock(&lock);
}

/* ---- hits that are missed -------------------------------------------------------------- */

KTEST_TARGET(twice, x, 2 * x)

static unsigned pre_runs, post_runs;

/* twice_backwards - call twice() with DF set. Then the detour returns to the program by
 * loading the image.
 */
static long twice_backwards(long x)
{
    long result;

    __asm__ volatile("std; call *%2; cld"
                     : "=a"(result), "+D"(x)
                     : "r"(twice)
                     : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    return result;
}

static int pre_again(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    pre_runs++;
    right += twice_backwards(4) == 8;
    return 0;
}

static void post_count(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                       unsigned long flags UNUSED)
{
    post_runs++;
}

static void miss_by(enum optimize_method method, const char *how)
{
    struct kprobe p = { .addr = (uintptr_t)twice,
                        .pre_handler = pre_again,
                        .post_handler = post_count };

    right = 0;
    pre_runs = post_runs = 0;
    jumps_by(method);
    register_kprobe(&p);
    optimize_run();
    right += twice(3) == 6;
    right += twice_backwards(3) == 6;
    ktest_report(right == 4 && pre_runs == 2 && p.missed[MISS_RECURSION] == 2,
                 "%s: two hits, and each misses the one inside of it", how);
    ktest_report(post_runs == 2, "%s: the missed ones have no post-handler either (%u)",
                 how, post_runs);
    unregister_kprobe(&p);
}

KTEST(contain, a_hit_that_is_missed_has_no_post_handler)
{
    miss_by(OPTIMIZE_OFF, "by a trap");
    miss_by(OPTIMIZE_PUN, "by a jump");
}

/* ---- a step that a handler has begun --------------------------------------------------- */

uint64_t sti_inside(uint64_t x);
KTEST_ASM(sti_inside, "pushfq; cli; sti; lea 1(%rdi), %rax; popfq; ret")

static int sets_tf(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    regs->flags |= FLAGS_TF;
    return 0;
}

static void post_faults(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                        unsigned long flags UNUSED)
{
    fault();
}

static void step_over_sti(enum optimize_method method, const char *how)
{
    struct kprobe p = { .addr = (uintptr_t)sti_inside + 2,
                        .pre_handler = sets_tf,
                        .post_handler = post_faults };
    struct own_steps steps;

    jumps_by(method);
    register_kprobe(&p);
    optimize_run();
    own_steps_begin(&steps);
    sti_inside(7);
    own_steps_end();
    ktest_report(steps.count && steps.at[0] == p.addr + 1 &&
                     p.flags & KPROBE_FLAG_TRIPPED,
                 "%s: the step ends behind the sti", how);
    ktest_report(preempt_count() == 0, "%s: preemption is on (%d)", how, preempt_count());
    unregister_kprobe(&p);
}

KTEST(contain, a_step_over_sti_whose_handler_is_given_up)
{
    step_over_sti(OPTIMIZE_OFF, "by a trap");
    step_over_sti(OPTIMIZE_PUN, "by a jump");
}
