/* test_preempt.c - probes of all kinds are registered and unregistered at random, while
 * threads run the probed code and are preempted anywhere: in the probed code, in pads,
 * cells and regions, between any two instructions.
 *
 * Workers run fixtures, in cycles, and check what these compute. The main thread changes
 * probes at random. Prodders, threads of a third kind, make the other CPUs switch threads
 * again and again. Four probes stay during a round: they must count each execution of
 * their instruction. How often a cycle executes each instruction was counted beforehand,
 * by breakpoints. In the end no probe and no memory is left.
 *
 * The test finds most mistakes when QEMU translates one instruction at a time, so that an
 * interrupt can come between any two instructions: see kernel/stepped2 in
 * docs/testing.md.
 */
#include "probes/core/insn_slot.h"
#include "probes/core/registry.h"
#include "probes/jump/optimize.h"
#include "probes/jump/pad.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/short_ones.h"
#include "tests/kernel/text_sum.h"

/* ---- fixtures ---------------------------------------------------------------------- */

/* In this fixture the probed instructions lie between writers and readers of flags, and
 * interrupts are off for a while.
 */
static NOINLINE long flags(long x)
{
    long y;

    __asm__ volatile("pushfq\n\t"
                     "cli\n\t"
                     "cmpq $3, %1\n\t"
                     "movq $5, %0\n\t"
                     "leaq 1(%1), %1\n\t"
                     "sbbq $0, %0\n\t"
                     "setz %b1\n\t"
                     "sti\n\t"
                     "nop\n\t"
                     "popfq\n\t"
                     "movzbl %b1, %k1\n\t"
                     "addq %1, %0"
                     : "=&r"(y), "+q"(x)
                     :
                     : "cc", "memory");
    return y;
}

static NOINLINE long branches(long x)
{
    long n = 0;

    for (x += 3; x != 1 && n < 12; n++) {
        if (x & 1)
            x = 3 * x + 1;
        else
            x >>= 1;
        __asm__ volatile("" : "+r"(x));
    }
    return n * 100 + x;
}

static NOINLINE long strings(long x)
{
    char from[48], to[48];

    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (char)(x + (long)i);
    for (size_t i = 0; i < sizeof(to); i += 16) {
        char *at = to + i;
        const char *source = from + i;
        size_t count = 16;

        __asm__ volatile("rep movsb" : "+D"(at), "+S"(source), "+c"(count) : : "memory");
    }
    return to[7] + to[40];
}

static NOINLINE long calls(long x)
{
    long a = short_ones(x);
    long b = branches(x & 3);

    return a + b + flags(x);
}

static NOINLINE long recursion(long x)
{
    long below = x < 2 ? x : recursion(x - 1);

    __asm__ volatile("" : "+r"(below));
    return x < 2 ? below : below + recursion(x - 2);
}

/* This fixture calls a function that switches threads, so another thread
 * runs inside of it.
 */
static NOINLINE long yields(long x)
{
    if ((x & 3) == 0)
        thread_yield();
    return x + 1;
}

static long (*const fixtures[])(long) = {
    short_ones, flags, branches, strings, calls, recursion, yields,
};

#define FIXTURES ARRAY_LEN(fixtures)
#define INPUTS 6

static long results[FIXTURES][INPUTS];

static void results_note(void)
{
    for (size_t f = 0; f < FIXTURES; f++)
        for (long x = 0; x < INPUTS; x++)
            results[f][x] = fixtures[f](x);
}

/* cycle - call each fixture with each input. Return: how many results are wrong. */
static size_t cycle(void)
{
    size_t wrong = 0;

    for (size_t f = 0; f < FIXTURES; f++)
        for (long x = 0; x < INPUTS; x++)
            wrong += fixtures[f](x) != results[f][x];
    return wrong;
}

/* ---- the instructions of the fixtures ---------------------------------------------- */

#define INSNS_MAX 512

static struct {
    uintptr_t addrs[INSNS_MAX];
    uint64_t executed[INSNS_MAX]; /* how often in one cycle */
    size_t count;
    size_t entries[FIXTURES]; /* the indices in addrs[] of first instructions */
} text;

static void note_insn(const struct insn *insn, void *arg UNUSED)
{
    struct insn same;

    if (text.count < INSNS_MAX && !kprobe_check(insn->addr, &same, NULL))
        text.addrs[text.count++] = insn->addr;
}

static void insns_note(void)
{
    struct plat_symbol function;

    text.count = 0;
    plat_lock(PLAT_PROBES);
    for (size_t f = 0; f < FIXTURES; f++) {
        plat_symbol_at((uintptr_t)fixtures[f], &function);
        text.entries[f] = text.count;
        boundary_for_each(&function, note_insn, NULL);
    }
    plat_unlock(PLAT_PROBES);
}

/* executions_count - count by breakpoints how often a cycle executes each instruction. No
 * other thread runs the fixtures meanwhile.
 */
static void executions_count(void)
{
    struct kprobe *probes = kzalloc(text.count * sizeof(*probes));
    struct kprobe *ps[INSNS_MAX / 8];
    size_t wrong = 0;

    optimize_set_method(OPTIMIZE_OFF);
    for (size_t done = 0, n; done < text.count; done += n) {
        n = text.count - done < ARRAY_LEN(ps) ? text.count - done : ARRAY_LEN(ps);
        for (size_t i = 0; i < n; i++) {
            ps[i] = &probes[done + i];
            ps[i]->addr = text.addrs[done + i];
        }
        wrong += register_kprobes(ps, n) != 0;
        wrong += cycle();
        for (size_t i = 0; i < n; i++)
            text.executed[done + i] = kprobe_hits(ps[i]);
        unregister_kprobes(ps, n);
    }
    kfree(probes);
    ktest_report(!wrong, "what a cycle executes is known of %lu instructions",
                 text.count);
}

/* ---- workers ----------------------------------------------------------------------- */

#define CPUS_MAX 4

static struct workers {
    int tids[3 * CPUS_MAX];
    unsigned threads, count; /* all threads; those that are workers */
    bool may_run, is_over;
    unsigned parked;
    uint64_t cycles, wrong, preempted;
} workers;

static int work(void *arg UNUSED)
{
    while (!READ_ONCE(workers.is_over)) {
        if (!READ_ONCE(workers.may_run)) {
            __atomic_add_fetch(&workers.parked, 1, __ATOMIC_ACQ_REL);
            while (!READ_ONCE(workers.may_run) && !READ_ONCE(workers.is_over))
                thread_yield();
            __atomic_sub_fetch(&workers.parked, 1, __ATOMIC_ACQ_REL);
            continue;
        }
        __atomic_add_fetch(&workers.wrong, cycle(), __ATOMIC_RELAXED);
        __atomic_add_fetch(&workers.cycles, 1, __ATOMIC_RELAXED);
    }
    __atomic_add_fetch(&workers.preempted, thread_current()->involuntary,
                       __ATOMIC_RELAXED);
    return 0;
}

#define PRODS 8 /* between two yields */

static uint64_t next_of(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *state >> 56;
}

static void prod_others(unsigned self)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        if (cpu == self)
            continue;
        WRITE_ONCE(percpu_of(cpu)->need_resched, true);
        smp_send_reschedule(cpu);
    }
}

/* prod - make the other CPUs switch threads, at random times. */
static int prod(void *arg)
{
    uint64_t state = (uintptr_t)arg;

    while (!READ_ONCE(workers.is_over)) {
        for (unsigned i = 0; i < PRODS; i++) {
            for (uint64_t n = next_of(&state); n > 0; n--)
                pause();
            prod_others((unsigned)(uintptr_t)arg);
        }
        thread_yield();
    }
    return 0;
}

/* workers_start - start two workers and one prodder for each CPU. One of the two workers
 * may move to other CPUs.
 */
static void workers_start(void)
{
    unsigned cpus = cpu_count() < CPUS_MAX ? cpu_count() : CPUS_MAX;

    workers = (struct workers){ 0 };
    for (uintptr_t cpu = 0; cpu < cpus; cpu++) {
        struct clone_args args = { .fn = work, .name = "worker", .cpus = BIT(cpu) };

        workers.tids[workers.threads++] = kernel_clone(&args);
        args.cpus = 0;
        workers.tids[workers.threads++] = kernel_clone(&args);
        args = (struct clone_args){ prod, (void *)cpu, "prod", 0, BIT(cpu), false };
        workers.tids[workers.threads++] = kernel_clone(&args);
    }
    workers.count = 2 * cpus;
}

static void workers_park(void)
{
    WRITE_ONCE(workers.may_run, false);
    while (READ_ONCE(workers.parked) < workers.count)
        thread_yield();
}

static void workers_go_on(void)
{
    WRITE_ONCE(workers.may_run, true);
    while (READ_ONCE(workers.parked))
        thread_yield();
}

static void workers_end(void)
{
    WRITE_ONCE(workers.is_over, true);
    for (unsigned i = 0; i < workers.threads; i++)
        thread_join(workers.tids[i], NULL);
}

/* ---- probes ------------------------------------------------------------------------ */

enum kind { COUNT, PRE, POST, BOTH, IRQS_OFF, RETURN, KINDS };

struct slot {
    struct kretprobe rp; /* all kinds but RETURN use only its .kp */
    enum kind kind;
    size_t insn; /* in text.addrs[] */
    bool is_in;
    uint64_t pre, post, wrong;
};

#define STAYING 4 /* the first slots, whose probes stay during a round */
#define SLOTS 20  /* all; the probes of the other slots come and go */
#define ENTRIES 1
#define PLACES 4 /* addresses in a round: few, so that the probes there change often */

_Static_assert(offsetof(struct slot, rp.kp) == 0, "a probe is where its slot is");

static struct slot slots[SLOTS];
static size_t places[PLACES]; /* indices in text.addrs[]; the first ENTRIES are entries */
static unsigned refused;

static void places_choose(void)
{
    for (size_t i = 0; i < PLACES; i++)
        places[i] = ktest_random() % text.count;
    for (size_t i = 0; i < ENTRIES; i++)
        places[i] = text.entries[ktest_random() % FIXTURES];
}

static void count(uint64_t *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

#define PROD_ONE_IN 61

/* count_handled - add 1 to @counter. One of PROD_ONE_IN calls makes this CPU switch
 * threads as soon as it may: before the probed instruction, or after it.
 */
static void count_handled(uint64_t *counter)
{
    if (__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED) % PROD_ONE_IN)
        return;
    WRITE_ONCE(this_cpu()->need_resched, true);
    smp_send_reschedule(cpu_id());
}

static int pre(struct kprobe *p, struct pt_regs *regs)
{
    struct slot *s = (struct slot *)p;

    count_handled(&s->pre);
    if (regs->ip != p->addr + 1)
        count(&s->wrong);
    return 0;
}

static void post(struct kprobe *p, struct pt_regs *regs UNUSED, unsigned long fl UNUSED)
{
    count_handled(&((struct slot *)p)->post);
}

static int returned(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    struct slot *s = (struct slot *)ri->rp;

    count_handled(&s->post);
    if (regs->ip != ri->ret_addr)
        count(&s->wrong);
    return 0;
}

static bool has_pre(const struct slot *s)
{
    return s->kind == PRE || s->kind == BOTH || s->kind == IRQS_OFF;
}

static bool has_post(const struct slot *s)
{
    return s->kind == POST || s->kind == BOTH;
}

static void slot_make(struct slot *s)
{
    *s = (struct slot){ .kind = (enum kind)(ktest_random() % KINDS) };
    s->insn = places[ktest_random() % (s->kind == RETURN ? ENTRIES : PLACES)];
    s->rp.kp.addr = text.addrs[s->insn];
    s->rp.kp.pre_handler = has_pre(s) ? pre : NULL;
    s->rp.kp.post_handler = has_post(s) ? post : NULL;
    s->rp.kp.flags = s->kind == IRQS_OFF ? KPROBE_FLAG_IRQS_OFF : 0;
    s->rp.handler = returned;
}

static void slot_in(struct slot *s)
{
    struct probe_reject why;

    slot_make(s);
    if (s->kind == RETURN)
        s->is_in = !register_kretprobe_why(&s->rp, &why);
    else
        s->is_in = !register_kprobe_why(&s->rp.kp, &why);
    if (s->is_in)
        return;
    refused++;
    ktest_note("0x%lx, kind %u: %s, at 0x%lx", s->rp.kp.addr, s->kind, why.why, why.at);
}

/* slots_out - unregister the probes of @count slots in one batch. So a thread in the
 * detour of any of them is in a detour that is removed.
 */
static void slots_out(struct slot *const *out, size_t count)
{
    struct kretprobe *rps[SLOTS];
    struct kprobe *ps[SLOTS];
    size_t rn = 0, n = 0;

    for (size_t i = 0; i < count; i++) {
        if (out[i]->is_in && out[i]->kind == RETURN)
            rps[rn++] = &out[i]->rp;
        else if (out[i]->is_in)
            ps[n++] = &out[i]->rp.kp;
        out[i]->is_in = false;
    }
    unregister_kprobes(ps, n);
    unregister_kretprobes(rps, rn);
}

/* slot_is_right - has the probe of @s counted each execution of its instruction? @cycles
 * were run while it was registered.
 */
static bool slot_is_right(const struct slot *s, uint64_t cycles)
{
    uint64_t wanted = cycles * text.executed[s->insn];
    const struct kprobe *p = &s->rp.kp;
    bool right = p->hits == wanted && !p->nmissed && !s->wrong && !s->rp.nmissed;

    right &= s->pre == (has_pre(s) ? wanted : 0);
    right &= s->post == (has_post(s) || s->kind == RETURN ? wanted : 0);
    if (!right)
        ktest_note("0x%lx, kind %u: %lu executions, %lu hits, %lu missed, %lu and %lu "
                   "handlers, %lu wrong",
                   p->addr, s->kind, wanted, p->hits, p->nmissed + s->rp.nmissed, s->pre,
                   s->post, s->wrong);
    return right;
}

/* ---- changes ----------------------------------------------------------------------- */

/* half_changes - change about half of the slots that may change: unregister the probe if
 * it is registered, else register a new one.
 */
static void half_changes(void)
{
    struct slot *out[SLOTS];
    size_t n = 0;

    for (size_t i = STAYING; i < SLOTS; i++) {
        if (ktest_random() % 2)
            continue;
        if (slots[i].is_in)
            out[n++] = &slots[i];
        else
            slot_in(&slots[i]);
    }
    slots_out(out, n);
}

static void switch_off_or_on(struct slot *s)
{
    if (!s->is_in || s->kind == RETURN)
        return;
    if (s->rp.kp.flags & KPROBE_FLAG_DISABLED)
        enable_kprobe(&s->rp.kp);
    else
        disable_kprobe(&s->rp.kp);
}

static void change_something(void)
{
    struct slot *s = &slots[STAYING + ktest_random() % (SLOTS - STAYING)];
    uint64_t what = ktest_random() % 16;

    if (what < 9)
        half_changes();
    else if (what < 12)
        switch_off_or_on(s);
    else if (what < 15)
        optimize_run();
    else
        optimize_set_method((enum optimize_method)(ktest_random() % OPTIMIZE_METHODS));
}

/* one_round - run the workers, and make @changes changes meanwhile. Return: how many of
 * the probes that stayed have counted wrong.
 */
static unsigned one_round(unsigned changes)
{
    uint64_t before = workers.cycles;
    struct slot *stay[STAYING];
    bool was_in[STAYING];
    unsigned wrong = 0;

    places_choose();
    for (unsigned i = 0; i < STAYING; i++)
        slot_in(&slots[i]);
    optimize_set_method(ktest_random() % 3 ? OPTIMIZE_PUN : OPTIMIZE_REGION);
    workers_go_on();
    for (unsigned i = 0; i < changes; i++) {
        change_something();
        thread_sleep_ns(1000000); /* with one CPU, the workers run now */
    }
    workers_park();
    for (size_t i = 0; i < STAYING; i++) {
        stay[i] = &slots[i];
        was_in[i] = slots[i].is_in;
    }
    slots_out(stay, STAYING);
    for (size_t i = 0; i < STAYING; i++)
        wrong += was_in[i] && !slot_is_right(stay[i], workers.cycles - before);
    return wrong;
}

static void report_rounds(unsigned rounds)
{
    struct slot *all[SLOTS];
    unsigned wrong = 0;

    refused = 0;
    workers_start();
    workers_park();
    for (unsigned i = 0; i < rounds; i++)
        wrong += one_round(30);
    for (size_t i = 0; i < SLOTS; i++)
        all[i] = &slots[i];
    slots_out(all, SLOTS);
    workers_end();
    ktest_note("%lu cycles, preempted %lu times", workers.cycles, workers.preempted);
    ktest_report(!refused, "none of the probes is refused, but for %u", refused);
    ktest_report(!workers.wrong, "each result is right, but for %lu", workers.wrong);
    ktest_report(!wrong, "each execution of what stays is a hit, but for %u", wrong);
    ktest_report(workers.cycles >= rounds && workers.preempted >= rounds,
                 "all of it was under preemption");
}

/* sweep - register and unregister a return probe. Before the test this
 * allocates shadows for all threads, which stay. After the test it frees what
 * other return probes have left.
 */
static void sweep(void)
{
    struct kretprobe rp = { .kp.addr = (uintptr_t)short_ones, .handler = returned };

    if (!register_kretprobe(&rp))
        unregister_kretprobe(&rp);
}

static NOINLINE void hit_when_due(void)
{
    __asm__ volatile("nopl (%%rax)" ::: "memory");
}

/* One step of a thread alone: while another thread ran in its place, the step would never
 * end. The flag is clear when threads have been switched.
 */
KTEST(preempt, a_hit_does_not_switch_threads_while_interrupts_are_kept_away)
{
    struct kprobe p = { .addr = (uintptr_t)hit_when_due };
    bool is_due;

    ktest_report(!register_kprobe(&p), "the probe is there");
    preempt_disable();
    write_cr8(15);
    WRITE_ONCE(this_cpu()->need_resched, true);
    preempt_enable_no_resched();
    hit_when_due();
    is_due = READ_ONCE(this_cpu()->need_resched);
    write_cr8(0);
    ktest_report(is_due, "the switch is still due behind the hit");
    unregister_kprobe(&p);
}

KTEST(preempt, probes_of_all_kinds_come_and_go)
{
    uint64_t before = text_sum();
    size_t heap;

    jumps_by(OPTIMIZE_PUN);
    sweep();
    heap = heap_in_use();
    results_note();
    insns_note();
    executions_count();
    report_rounds((unsigned)ktest_rounds(4, 20));
    jumps_as_before();
    sweep();
    ktest_report(text_sum() == before, "the text is as it was");
    ktest_report(!registry_count() && !pad_pages() && !insn_slot_pages(),
                 "no site, pad or cell is left");
    ktest_report(heap_in_use() == heap, "%ld bytes of the heap are left",
                 (long)(heap_in_use() - heap));
}
