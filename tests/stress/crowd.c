/* crowd.c - threads on all CPUs, interrupts and NMIs that call the probed functions. */
#include "kernel/cpu/instr.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/thread/thread.h"
#include "probes/kprobe.h"
#include "tests/stress/stress.h"

#define US UINT64_C(1000)

static struct crowd {
    int tids[3 * MAX_CPUS];
    unsigned threads;
    bool is_over, takes_nmis, goes_deep;
    uint64_t seed;
    uint64_t nmis, interrupts;
} crowd;

/* ---- how a thread calls ---- */

static void call_any(uint64_t chance)
{
    stress_call((enum stress_target)(chance % TARGETS_ANYWHERE),
                chance / 256 % STRESS_INPUTS);
}

static void call_in_thread(uint64_t chance)
{
    static const enum stress_target good[] = { TARGET_LOAD, TARGET_DIVIDE, TARGET_OUTER,
                                               TARGET_STRINGS_BAD, TARGET_STI };
    uint64_t n = chance % (TARGETS_ANYWHERE + ARRAY_LEN(good));

    stress_call(n < TARGETS_ANYWHERE ? (enum stress_target)n : good[n - TARGETS_ANYWHERE],
                chance / 256 % STRESS_INPUTS);
}

/* call_deep - call a target when about @left bytes of the stack are left. */
static NOINLINE void call_deep(uint64_t chance, size_t left)
{
    const struct thread *self = thread_current();
    uintptr_t base = (uintptr_t)self->stack_top - self->stack_len;
    volatile char room[256];

    room[0] = 0;
    if ((uintptr_t)__builtin_frame_address(0) - base > left)
        call_deep(chance, left);
    else
        call_any(chance);
    room[1] = room[0];
}

static void call_somehow(uint64_t chance)
{
    unsigned long flags;

    switch (chance / 65536 % 16) {
    case 0:
        preempt_disable();
        call_any(chance);
        preempt_enable();
        break;
    case 1:
        flags = irq_save();
        call_any(chance);
        irq_restore(flags);
        break;
    case 2:
        if (crowd.goes_deep)
            call_deep(chance, PROBE_STACK_MIN + (chance >> 32) % 2048 - 512);
        break;
    default:
        call_in_thread(chance);
    }
}

/* expect_free - check that preemption and interrupts are on, between two calls. */
static void expect_free(void)
{
    if (preempt_count())
        stress_differs("the preemption count of a thread", "", (uint64_t)preempt_count(),
                       0);
    if (!irqs_enabled())
        stress_differs("interrupts in a thread", "", 0, 1);
}

static int caller(void *arg)
{
    uint64_t state = crowd.seed + (uintptr_t)arg;

    while (!READ_ONCE(crowd.is_over)) {
        for (unsigned i = 0; i < 16; i++)
            call_somehow(stress_next(&state));
        expect_free();
        if (stress_next(&state) % 32 == 0)
            thread_yield();
        if (stress_next(&state) % 128 == 0)
            thread_sleep_ns(US * 200); /* the idle thread is interrupted, too */
    }
    return 0;
}

/* prod - make the other CPUs switch threads, at random times. */
static int prod(void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg;
    uint64_t state = crowd.seed - self - 1;

    while (!READ_ONCE(crowd.is_over)) {
        unsigned cpu = (unsigned)(stress_next(&state) % cpu_count());

        if (cpu != self) {
            WRITE_ONCE(percpu_of(cpu)->need_resched, true);
            smp_send_reschedule(cpu);
        }
        for (uint64_t n = stress_next(&state) % 512; n > 0; n--)
            pause();
        thread_yield();
    }
    return 0;
}

/* ---- interrupts and NMIs ---- */

/* It has a higher priority than the vector of calls. So when smp_call_all() has returned,
 * no interrupt of this vector is pending.
 */
#define VECTOR_STRESS 0xe8

static void interrupt(struct pt_regs *regs UNUSED)
{
    uint64_t n = __atomic_add_fetch(&crowd.interrupts, 1, __ATOMIC_RELAXED);

    lapic_eoi();
    call_any(stress_mix(crowd.seed - n));
    call_any(stress_mix(crowd.seed - n - 1));
}

static void call_with_interrupts_off(void *arg)
{
    call_any(stress_mix((uintptr_t)arg + cpu_id()));
}

static void nothing(void *arg UNUSED)
{
}

static bool nmi(struct pt_regs *regs UNUSED)
{
    uint64_t n;

    if (!READ_ONCE(crowd.takes_nmis))
        return false;
    n = __atomic_add_fetch(&crowd.nmis, 1, __ATOMIC_RELAXED);
    call_any(stress_mix(crowd.seed + n));
    call_any(stress_mix(crowd.seed + n + 1));
    return true;
}

void stress_crowd_init(void)
{
    trap_set_handler(TRAP_NMI, nmi);
    irq_set_handler(VECTOR_STRESS, "stress", interrupt);
}

static unsigned any_cpu(uint64_t *state)
{
    return (unsigned)(stress_next(state) % cpu_count());
}

void stress_crowd_disturb(uint64_t *state)
{
    uint64_t chance = stress_next(state);

    call_in_thread(stress_next(state));
    for (unsigned i = 0; i < chance % 8; i++)
        smp_send_nmi(any_cpu(state));
    for (unsigned i = 0; i < chance / 8 % 8; i++)
        lapic_send(percpu_of(any_cpu(state))->apic_id, LAPIC_IPI | VECTOR_STRESS);
    if (chance / 64 % 8 == 0)
        smp_call_all(call_with_interrupts_off, (void *)stress_next(state));
}

/* ---- the crowd ---- */

static void add(int (*fn)(void *arg), uintptr_t arg, uint64_t cpus, const char *name)
{
    struct clone_args args = { .fn = fn, .arg = (void *)arg, .name = name, .cpus = cpus };
    int tid = kernel_clone(&args);

    if (tid > 0)
        crowd.tids[crowd.threads++] = tid;
    else
        stress_differs("no thread", name, (uint64_t)(long)tid, 0);
}

void stress_crowd_start(uint64_t seed)
{
    crowd = (struct crowd){ .seed = seed, .takes_nmis = true, .goes_deep = seed % 2 };
    for (uintptr_t cpu = 0; cpu < cpu_count(); cpu++) {
        add(caller, 2 * cpu, BIT(cpu), "caller");
        add(caller, 2 * cpu + 1, 0, "caller");
        add(prod, cpu, BIT(cpu), "prod");
    }
}

/* When the threads end, their shadows are freed. Entries that are still in these are
 * counted as dropped. The first call of all CPUs comes behind all NMIs that were sent; the
 * second one behind an NMI of the debugger, which has come late, and which nmi() takes for
 * one of them.
 */
void stress_crowd_end(void)
{
    WRITE_ONCE(crowd.is_over, true);
    for (unsigned i = 0; i < crowd.threads; i++)
        thread_join(crowd.tids[i], NULL);
    smp_call_all(nothing, NULL);
    WRITE_ONCE(crowd.takes_nmis, false);
    smp_call_all(nothing, NULL);
}
