/* stop_machine.c - calls all CPUs at once: the other CPUs stand still, the caller acts.
 *
 *   1. each other CPU notes the image of the code that it has left, and says that it
 *      waits
 *   2. the caller waits for all other CPUs, and runs fn; meanwhile they only run the
 *      functions of stop_machine_call_all()
 *   3. the caller releases them; each of them serialises, since fn may have changed text
 */
#include "kernel/sync/stop_machine.h"

#include "kernel/cpu/instr.h"
#include "kernel/cpu/smp.h"
#include "kernel/sync/mutex.h"

/* Locks:  M the mutex   w written by its CPU (parked: last), read by the caller   c caller */
static struct {
    struct mutex mutex;
    void (*fn)(void *arg); /* [M] */
    void *arg;             /* [M] */
    struct {
        const struct pt_regs *regs; /* [w] */
        bool parked;                /* [w] */
        bool called;                /* set by the caller, cleared by the CPU */
        bool answered;              /* set by the CPU, cleared by the caller */
    } cpus[MAX_CPUS];
    void (*call_fn)(void *arg); /* [c] */
    void *call_arg;             /* [c] */
    bool released;              /* [c] */
    int acting_cpu;             /* [c] -1: none */
} stop = { .mutex = MUTEX_INIT(stop.mutex), .acting_cpu = -1 };

static void stop_serialise(void)
{
    uint32_t out[4];

    cpuid(0, 0, out);
}

/* stop_answer - run the function of stop_machine_call_all(), if this CPU has been called. */
static void stop_answer(unsigned cpu)
{
    if (!__atomic_load_n(&stop.cpus[cpu].called, __ATOMIC_ACQUIRE))
        return;
    stop.cpus[cpu].called = false;
    stop.call_fn(stop.call_arg);
    __atomic_store_n(&stop.cpus[cpu].answered, true, __ATOMIC_RELEASE);
}

static void stand_still(const struct pt_regs *regs)
{
    unsigned cpu = cpu_id();

    stop.cpus[cpu].regs = regs;
    __atomic_store_n(&stop.cpus[cpu].parked, true, __ATOMIC_RELEASE); /* 1 */
    while (!__atomic_load_n(&stop.released, __ATOMIC_ACQUIRE)) {
        stop_answer(cpu);
        pause();
    }
    stop_serialise(); /* 3 */
}

static void stop_act(void)
{
    unsigned self = cpu_id();

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        if (cpu != self)
            smp_wait(&stop.cpus[cpu].parked, cpu); /* 2 */
    stop.acting_cpu = (int)self;
    stop.fn(stop.arg);
    stop.acting_cpu = -1;
    __atomic_store_n(&stop.released, true, __ATOMIC_RELEASE); /* 3 */
}

static void stop_cpu(void *arg)
{
    const struct pt_regs *regs = smp_call_regs();

    (void)arg;
    if (regs)
        stand_still(regs);
    else
        stop_act();
}

void stop_machine(void (*fn)(void *arg), void *arg)
{
    smp_assert_not_held(__func__);
    mutex_lock(&stop.mutex);
    stop.fn = fn;
    stop.arg = arg;
    stop.released = false;
    for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++) {
        stop.cpus[cpu].regs = NULL;
        stop.cpus[cpu].parked = false;
    }
    smp_call_all(stop_cpu, NULL);
    mutex_unlock(&stop.mutex);
}

void stop_machine_call_all(void (*fn)(void *arg), void *arg)
{
    unsigned self = cpu_id();

    stop.call_fn = fn;
    stop.call_arg = arg;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        if (cpu == self)
            continue;
        stop.cpus[cpu].answered = false;
        __atomic_store_n(&stop.cpus[cpu].called, true, __ATOMIC_RELEASE);
    }
    fn(arg);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        if (cpu != self)
            smp_wait(&stop.cpus[cpu].answered, cpu);
}

const struct pt_regs *stop_machine_regs(unsigned cpu)
{
    return cpu < MAX_CPUS ? stop.cpus[cpu].regs : NULL;
}

bool stop_machine_running(void)
{
    return READ_ONCE(stop.acting_cpu) == (int)cpu_id();
}
