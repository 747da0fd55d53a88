/* test_smp.c - every CPU is started in the right state, and can be called, interrupted
 * and woken by every other CPU.
 */
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/msr.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/log.h"
#include "kernel/debug/panic.h"
#include "kernel/sync/wait.h"
#include "kernel/thread/sched.h"
#include "tests/kernel/ktest.h"

#define MS UINT64_C(1000000)

/* What the called function has found on each CPU. Each CPU writes its own element. */
static struct seen {
    unsigned runs, id;
    uint32_t apic_id;
    bool irqs_on, interrupted;
    enum cpu_context context;
    struct percpu *self;
} seen[MAX_CPUS];

static void look_around(void *arg UNUSED)
{
    struct seen *s = &seen[cpu_id()];

    s->runs++;
    s->id = this_cpu()->id;
    s->apic_id = lapic_id();
    s->irqs_on = irqs_enabled();
    s->interrupted = smp_call_regs() != NULL;
    s->context = cpu_context();
    s->self = this_cpu();
}

/* This function counts with one instruction, relative to GS. So it need not know its CPU.
 */
static void count_here(void *arg)
{
    size_t off = PERCPU_COUNTERS_OFF + *(const size_t *)arg * sizeof(uint64_t);

    __asm__ volatile("incq %%gs:(%0)" ::"r"(off) : "memory", "cc");
}

KTEST(smp, counters_lie_at_one_distance_from_every_area)
{
    size_t last = 3 * PAGE_SIZE / sizeof(uint64_t) - 1;
    unsigned right = 0;

    ktest_report(percpu_counters_map(last + 1) == 0, "three pages of counters");
    for (unsigned i = 0; i < cpu_count(); i++)
        *percpu_counter(i, last) = i;
    smp_call_all(count_here, &last);
    for (unsigned i = 0; i < cpu_count(); i++)
        right += *percpu_counter(i, last) == i + 1 &&
                 (uintptr_t)percpu_of(i) == PERCPU_AREA_BASE + i * PERCPU_AREA_STRIDE;
    ktest_report(right == cpu_count(), "each CPU has counted its own");
    for (unsigned i = 0; i < cpu_count(); i++)
        *percpu_counter(i, last) = 0;
}

KTEST(smp, every_cpu_is_itself)
{
    unsigned right = 0, distinct = 0, count = cpu_count();

    memset(seen, 0, sizeof(seen));
    smp_call_all(look_around, NULL);
    for (unsigned cpu = 0; cpu < count; cpu++) {
        right += seen[cpu].runs == 1 && seen[cpu].id == cpu &&
                 seen[cpu].self == percpu_of(cpu) &&
                 seen[cpu].apic_id == percpu_of(cpu)->apic_id;
        distinct++;
        for (unsigned other = 0; other < cpu; other++)
            if (seen[other].apic_id == seen[cpu].apic_id)
                distinct--;
    }
    ktest_note("%u CPUs", count);
    ktest_report(right == count, "each of %u CPUs ran once, in its own area", count);
    ktest_report(distinct == count, "each has its own local APIC");
}

KTEST(smp, a_call_runs_in_an_interrupt_on_the_cpu_that_was_asked)
{
    unsigned right = 0, self, count = cpu_count();

    thread_set_affinity(BIT(0));
    self = cpu_id();
    for (unsigned cpu = 0; cpu < count; cpu++) {
        memset(seen, 0, sizeof(seen));
        smp_call(cpu, look_around, NULL);
        right += seen[cpu].runs == 1 && !seen[cpu].irqs_on &&
                 seen[cpu].interrupted == (cpu != self) &&
                 seen[cpu].context == (cpu == self ? CTX_THREAD : CTX_IRQ);
        for (unsigned other = 0; other < count; other++)
            if (other != cpu && seen[other].runs)
                right--;
    }
    ktest_report(right == count, "%u calls, each on its CPU only, interrupts off", count);
    ktest_report(irqs_enabled(), "the caller's interrupts are on again");
}

/* ---- the state that a CPU starts in ---------------------------------------------------- */

extern const uint64_t ap_trampoline_gdt[],
    ap_trampoline_gdt_end[]; /* boot/ap_start.asm */

#define DESCRIPTOR_ACCESSED BIT(40)
#define DESCRIPTOR_CODE_OR_DATA BIT(44)
#define SEL_CODE 0x08u
#define SEL_DATA 0x10u
#define FLAGS_NOT_OURS (BIT(21) | BIT(18) | BIT(17) | BIT(14) | BIT(13) | BIT(12))

/* The registers of a CPU that the kernel sets at boot and does not change later. */
struct state {
    uint64_t cr0, cr4, efer, pat, memory_types;
    uint64_t flags;      /* only those in FLAGS_NOT_OURS */
    uint32_t code, data; /* access rights of CS and SS, by LAR */
    uint16_t task, ldt, code_selector, data_selector;
};

static struct state states[MAX_CPUS];

static uint32_t access_rights(uint32_t selector)
{
    uint32_t rights = 0;

    __asm__("lar %1, %0" : "+r"(rights) : "r"(selector) : "cc");
    return rights;
}

static void state_read(void *arg UNUSED)
{
    struct state *s = &states[cpu_id()];

    memset(s, 0, sizeof(*s));
    s->cr0 = read_cr0();
    s->cr4 = read_cr4();
    s->efer = rdmsr(MSR_EFER);
    s->pat = rdmsr(MSR_PAT);
    s->memory_types = memory_types_sum();
    s->flags = read_flags() & FLAGS_NOT_OURS;
    s->code = access_rights(SEL_CODE);
    s->data = access_rights(SEL_DATA);
    __asm__("str %0" : "=r"(s->task));
    __asm__("sldt %0" : "=r"(s->ldt));
    __asm__("mov %%cs, %0" : "=r"(s->code_selector));
    __asm__("mov %%ss, %0" : "=r"(s->data_selector));
}

KTEST(smp, every_cpu_is_in_the_same_state)
{
    const struct state *first = &states[0];
    unsigned same = 0;

    smp_call_all(state_read, NULL);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        same += memcmp(first, &states[cpu], sizeof(*first)) == 0;
    ktest_report(same == cpu_count(), "%u CPUs, one state", cpu_count());
    /* PG, WP, NE, ET, MP and PE are set; caches are on; a loader has left nothing else */
    ktest_report(first->cr0 == 0x80010033, "CR0 is %#lx", first->cr0);
    ktest_report((first->cr4 & ~(CR4_PGE | CR4_SMEP | CR4_SMAP | CR4_UMIP)) ==
                     (CR4_PAE | CR4_MCE),
                 "CR4 is %#lx", first->cr4);
    ktest_report(first->efer == (BIT(10) | EFER_LME | EFER_NXE), "EFER is %#lx",
                 first->efer);
    ktest_report(first->pat == 0x0007040600070406, "PAT is %#lx", first->pat);
    ktest_report(first->flags == 0, "no ID, AC, VM, NT, IOPL in the flags: %#lx",
                 first->flags);
    ktest_report(first->code_selector == SEL_CODE && first->data_selector == SEL_DATA &&
                     first->task == 0x18 && first->ldt == 0,
                 "the selectors are ours, and there is no LDT");
}

static uint64_t mtrr_before;

static void mtrr_change(void *arg UNUSED)
{
    mtrr_before = rdmsr(MSR_MTRR_FIRST);
    wrmsr(MSR_MTRR_FIRST, mtrr_before ^ PAGE_SIZE);
}

static void mtrr_restore(void *arg UNUSED)
{
    wrmsr(MSR_MTRR_FIRST, mtrr_before);
}

KTEST(smp, a_cpu_with_other_memory_types_is_found)
{
    unsigned last = cpu_count() - 1;
    uint64_t before;

    smp_call(last, state_read, NULL);
    before = states[last].memory_types;
    smp_call(last, mtrr_change, NULL);
    smp_call(last, state_read, NULL);
    ktest_report(states[last].memory_types != before, "another range, another sum");
    smp_call(last, mtrr_restore, NULL);
    smp_call(last, state_read, NULL);
    ktest_report(states[last].memory_types == before, "as before, the sum as before");
}

/* When a CPU loads a segment whose descriptor is not marked as accessed, it writes
 * the mark to the table, which may be read-only. TCG does not do so for CS. So the
 * test looks at the bytes of the table; session/bochs boots the kernel on an
 * emulator that does write.
 */
KTEST(smp, loading_a_segment_writes_to_no_table)
{
    unsigned marked = 0, count = 0;

    for (const uint64_t *d = ap_trampoline_gdt; d < ap_trampoline_gdt_end; d++) {
        count += (*d & DESCRIPTOR_CODE_OR_DATA) != 0;
        marked += (*d & DESCRIPTOR_ACCESSED) != 0;
    }
    ktest_report(count == 3 && marked == count,
                 "%u of %u descriptors of the read-only table are marked as accessed",
                 marked, count);
    state_read(NULL);
    ktest_report(states[cpu_id()].code & 0x100 && states[cpu_id()].data & 0x100,
                 "so are CS and SS of the table of a CPU");
}

/* ---- many callers at once -------------------------------------------------------------- */

#define STORM_CALLS 96u /* rounds of each CPU, divided by the number of CPUs */

static unsigned hits[MAX_CPUS]; /* atomic */
static unsigned storming;

static void hit(void *arg UNUSED)
{
    __atomic_add_fetch(&hits[cpu_id()], 1, __ATOMIC_RELAXED);
}

static int call_everybody(void *arg)
{
    unsigned count = (unsigned)(uintptr_t)arg;

    __atomic_add_fetch(&storming, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&storming, __ATOMIC_SEQ_CST) < count)
        thread_yield();
    for (unsigned n = 0; n < STORM_CALLS / count; n++) {
        for (unsigned cpu = 0; cpu < count; cpu++)
            smp_call(cpu, hit, NULL);
        smp_call_all(hit, NULL);
    }
    return 0;
}

KTEST(smp, every_cpu_calls_every_cpu_at_once)
{
    unsigned count = cpu_count(), right = 0;
    int tids[MAX_CPUS];

    memset(hits, 0, sizeof(hits));
    storming = 0;
    for (unsigned cpu = 0; cpu < count; cpu++) {
        struct clone_args args = { .fn = call_everybody,
                                   .arg = (void *)(uintptr_t)count,
                                   .cpus = BIT(cpu) };

        tids[cpu] = kernel_clone(&args);
    }
    for (unsigned cpu = 0; cpu < count; cpu++)
        thread_join(tids[cpu], NULL);
    for (unsigned cpu = 0; cpu < count; cpu++)
        right += hits[cpu] == 2 * count * (STORM_CALLS / count);
    ktest_report(right == count, "each CPU was called %u times, no call lost",
                 2 * count * (STORM_CALLS / count));
}

/* ---- a CPU that does not answer -------------------------------------------------------- */

static bool stuck, let_go;

static NOINLINE void stay_deaf(void)
{
    unsigned long flags = irq_save();

    WRITE_ONCE(stuck, true);
    while (!READ_ONCE(let_go))
        pause();
    irq_restore(flags);
}

static int be_deaf(void *arg UNUSED)
{
    stay_deaf();
    return 0;
}

static int release_later(void *arg)
{
    uint64_t before = (uintptr_t)arg;

    while (smp_unanswered() == before)
        thread_sleep_ns(MS);
    WRITE_ONCE(let_go, true);
    return 0;
}

static char log_text[4096];

/* log_end - return the position in the log at which the next line will begin. */
static uint64_t log_end(void)
{
    uint64_t pos = 0;

    while (log_read(&pos, log_text, sizeof(log_text)) > 0)
        continue;
    return pos;
}

/* logged_since - does the log have, from @pos on, the text @a and behind it the text @b?
 */
static bool logged_since(uint64_t pos, const char *a, const char *b)
{
    const char *line;

    log_text[log_read(&pos, log_text, sizeof(log_text) - 1)] = '\0';
    line = strstr(log_text, a);
    return line && strstr(line, b);
}

KTEST(smp, a_deaf_cpu_is_reported_by_name_and_place)
{
    struct clone_args helper = { .fn = release_later, .cpus = ~BIT(1) };
    uint64_t log_pos = log_end();
    int a, b;

    if (ktest_lacks_cpus(3))
        return;
    thread_set_affinity(BIT(0));
    helper.arg = (void *)(uintptr_t)smp_unanswered();
    helper.cpus &= ~BIT(0);
    stuck = false;
    let_go = false;
    a = ktest_thread(be_deaf, NULL, BIT(1));
    while (!READ_ONCE(stuck))
        thread_sleep_ns(MS);
    b = kernel_clone(&helper);
    smp_set_call_limit(50 * MS);
    smp_call(1, hit, NULL);
    smp_set_call_limit(10000 * MS);
    thread_join(a, NULL);
    thread_join(b, NULL);
    ktest_report(smp_unanswered() > 0, "a call that took too long was noticed");
    ktest_report(logged_since(log_pos, "smp: CPU 1 has not answered", "stay_deaf+"),
                 "the log names CPU 1 and the function it was in");
}

static void be_slow(void *arg UNUSED)
{
    clock_spin_ns(150 * MS);
}

/* calls_a_slow_cpu - call CPU 1, which takes longer than the limit. Return: reports. */
static uint64_t calls_a_slow_cpu(void)
{
    uint64_t before = smp_unanswered();

    smp_call(1, be_slow, NULL);
    return smp_unanswered() - before;
}

/* A debugger lets one CPU go on alone. The CPU that it calls answers when the debugger lets
 * it go on, however long that takes.
 */
KTEST(smp, a_cpu_that_a_debugger_keeps_is_not_reported)
{
    if (ktest_lacks_cpus(2))
        return;
    thread_set_affinity(BIT(0));
    smp_set_call_limit(50 * MS);
    smp_unhold(false);
    ktest_report(!calls_a_slow_cpu(), "while it is kept it is not reported");
    smp_unhold(true);
    ktest_report(calls_a_slow_cpu(), "later it is");
    smp_set_call_limit(10000 * MS);
}

/* When the host stops the machine for a minute, the clock jumps. */
static void be_slow_over_a_jump(void *arg UNUSED)
{
    ktest_clock_jump(70000);
    clock_spin_ns(20 * MS);
}

KTEST(smp, a_jump_of_the_clock_is_no_missing_answer)
{
    uint64_t before = smp_unanswered();

    if (ktest_lacks_cpus(2))
        return;
    thread_set_affinity(BIT(0));
    smp_call(1, be_slow_over_a_jump, NULL);
    ktest_report(smp_unanswered() == before, "nor is the CPU reported");
}

/* ---- bare interrupts ------------------------------------------------------------------- */

static bool ticks_everywhere(const uint64_t *before)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        if (irq_count(cpu, VECTOR_TIMER) == before[cpu])
            return false;
    return true;
}

KTEST(smp, timers_tick_on_every_cpu)
{
    uint64_t before[MAX_CPUS];
    bool all = false;

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        before[cpu] = irq_count(cpu, VECTOR_TIMER);
    for (unsigned n = 0; n < 200 && !all; n++) {
        thread_sleep_ns(10 * MS);
        all = ticks_everywhere(before);
    }
    ktest_report(all, "each CPU has had a tick");
}

/* ---- waking idle CPUs ------------------------------------------------------------------ */

static struct wait_queue turn_changed = WAIT_QUEUE_INIT(turn_changed);
static unsigned turn;

#define TURNS 400u
#define GIVE_UP_NS (10000 * MS)

/* take_turns - wait for each turn of this thread, and give the turn to the other thread.
 * @arg: 0: this thread has the even turns; 1: the odd ones
 * Return: 0; 1: the other thread did not give the turn in time.
 */
static int take_turns(void *arg)
{
    for (unsigned n = (unsigned)(uintptr_t)arg; n < TURNS; n += 2) {
        if (wait_event_timeout(&turn_changed, READ_ONCE(turn) == n, GIVE_UP_NS))
            return 1;
        WRITE_ONCE(turn, n + 1);
        wake_all(&turn_changed);
    }
    return 0;
}

static void timer_stop(void *arg UNUSED)
{
    lapic_timer_stop();
}

static void timer_start(void *arg UNUSED)
{
    lapic_timer_init(THREAD_HZ_DEFAULT);
}

/* The timer of the CPU is off, so that no tick can hide a lost wake-up. */
KTEST(smp, an_idle_cpu_is_woken_without_a_tick)
{
    unsigned cpu = cpu_count() - 1;
    uint64_t start;
    int a, b;

    if (cpu == 0) {
        ktest_skip("needs two CPUs");
        return;
    }
    thread_set_affinity(BIT(0));
    turn = 0;
    smp_call(cpu, timer_stop, NULL);
    start = clock_ns();
    a = ktest_thread(take_turns, (void *)0, BIT(0));
    b = ktest_thread(take_turns, (void *)1, BIT(cpu));
    thread_join(a, NULL);
    smp_call(cpu, timer_start, NULL);
    thread_join(b, NULL);
    ktest_note("CPU 0 wakes CPU %u and is woken by it: %llu us", cpu,
               (unsigned long long)((clock_ns() - start) / (TURNS / 2) / 1000));
    ktest_report(turn == TURNS, "%u hand-overs between two CPUs that sleep", turn);
}

/* ---- how a thread is woken on another CPU ---------------------------------------------- */

static unsigned sent, sent_with_the_lock;

static int look_at_the_lock(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    __atomic_fetch_add(&sent, 1, __ATOMIC_RELAXED);
    if (spin_held(&sched_lock))
        __atomic_fetch_add(&sent_with_the_lock, 1, __ATOMIC_RELAXED);
    return 0;
}

KTEST(smp, the_ipi_that_wakes_is_sent_without_the_lock)
{
    struct kprobe p = { .symbol_name = "smp_send_reschedule",
                        .pre_handler = look_at_the_lock };
    int a, b;

    if (ktest_lacks_cpus(2))
        return;
    sent = sent_with_the_lock = turn = 0;
    ktest_report(!register_kprobe(&p), "a probe sees each reschedule IPI");
    a = ktest_thread(take_turns, (void *)0, BIT(0));
    b = ktest_thread(take_turns, (void *)1, BIT(1));
    thread_join(a, NULL);
    thread_join(b, NULL);
    unregister_kprobe(&p);
    ktest_report(turn == TURNS && sent > TURNS / 4, "%u IPIs for %u hand-overs", sent,
                 turn);
    ktest_report(!sent_with_the_lock,
                 "%u of them by a CPU that held the scheduler's lock",
                 sent_with_the_lock);
}

#define SLEPT_ON 1u
#define WOKEN_BY 2u
#define ROUNDS 20u

static struct wait_queue calls = WAIT_QUEUE_INIT(calls);
static unsigned call_number;
static bool is_awake, found_idle, marked_itself;

/* call_out - wake the thread that waits. Context: irq. */
static void call_out(void *arg UNUSED)
{
    found_idle = this_cpu()->idle && !this_cpu()->need_resched;
    WRITE_ONCE(call_number, call_number + 1);
    wake_all(&calls);
    marked_itself = found_idle && this_cpu()->need_resched;
}

/* answer_calls - sleep on CPU SLEPT_ON again and again. */
static int answer_calls(void *arg UNUSED)
{
    for (unsigned n = 0; n < ROUNDS; n++) {
        thread_set_affinity(BIT(SLEPT_ON));
        thread_set_affinity(BIT(SLEPT_ON) | BIT(WOKEN_BY));
        wait_event(&calls, READ_ONCE(call_number) > n);
        WRITE_ONCE(is_awake, true);
    }
    return 0;
}

/* An interrupt of an idle CPU wakes a thread that may run there. The CPU must mark itself
 * and no other CPU, since that needs no IPI. Another CPU that switches just then may still
 * take the thread out of the queue first; so where the thread runs is not compared.
 */
KTEST(smp, an_interrupt_of_an_idle_cpu_wakes_a_thread_there)
{
    unsigned idle = 0, itself = 0;
    int tid;

    if (cpu_count() <= WOKEN_BY) {
        ktest_skip("needs three CPUs");
        return;
    }
    thread_set_affinity(BIT(0));
    call_number = 0;
    tid = ktest_thread(answer_calls, NULL, 0);
    for (unsigned n = 0; n < ROUNDS; n++) {
        is_awake = false;
        while (list_empty(&calls.waiters) || !percpu_of(SLEPT_ON)->idle)
            thread_sleep_ns(MS);
        smp_call(WOKEN_BY, call_out, NULL);
        while (!READ_ONCE(is_awake))
            thread_sleep_ns(MS);
        idle += found_idle;
        itself += marked_itself;
    }
    thread_join(tid, NULL);
    ktest_report(idle && itself == idle, "%u of %u interrupts of an idle CPU", itself,
                 idle);
}

/* A kernel that checks contracts (tests/contracts) panics here; no other does. */
KTEST_FATAL(smp, a_function_of_threads_is_called_in_an_interrupt)
{
    smp_call(cpu_id() ? 0 : cpu_count() - 1, kfree, NULL);
    ktest_report(true, "kfree(NULL) does nothing");
}

/* ---- tests/session/test_fatal.py reads the report ---------------------------------- */

static bool tell_nmi(struct pt_regs *regs UNUSED)
{
    panic_print("a handler of NMIs runs\n");
    return false;
}

static int send_nmi(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    smp_send_nmi(cpu_id());
    return 0;
}

/* A thread that sends text owns the line, and log lines are held. */
static int log_and_panic(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    log_warn("the cause");
    panic("while a line is sent");
}

KTEST_FATAL(smp, a_panic_prints_the_log_that_is_held)
{
    static struct kprobe p = { .symbol_name = "owner_send",
                               .pre_handler = log_and_panic };

    register_kprobe(&p);
    ktest_note("a line");
}

KTEST_FATAL(smp, a_panic_is_not_stopped_by_an_nmi)
{
    static struct kprobe p = { .symbol_name = "backtrace_print",
                               .pre_handler = send_nmi };

    trap_set_handler(TRAP_NMI, tell_nmi);
    register_kprobe(&p);
    panic("as the test wants it");
}
