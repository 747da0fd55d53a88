/* passers.c - a thread on each CPU that calls a function, and a thread that sends NMIs.
 */
#include "tests/kernel/passers.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/thread/thread.h"
#include "tests/kernel/nmi_send.h"

static volatile bool stop;
static uint64_t (*pass)(uint64_t n);
static int tids[MAX_CPUS + 1];

struct passers passers;

static int pass_forever(void *unused UNUSED)
{
    uint64_t n = 0;

    while (!stop)
        pass(n++);
    __atomic_fetch_add(&passers.calls, n, __ATOMIC_RELAXED);
    return 0;
}

static bool pass_in_nmi(struct pt_regs *regs UNUSED)
{
    if (stop)
        return false;
    pass(1);
    __atomic_fetch_add(&passers.in_nmis, 1, __ATOMIC_RELAXED);
    return true;
}

static int send_nmis(void *unused UNUSED)
{
    for (unsigned cpu = 0; !stop; cpu = (cpu + 1) % cpu_count()) {
        smp_send_nmi(cpu);
        thread_yield();
    }
    return 0;
}

void passers_start(uint64_t (*fn)(uint64_t n))
{
    nmi_take(pass_in_nmi);
    pass = fn;
    stop = false;
    passers = (struct passers){ 0 };
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        tids[cpu] = kernel_clone(&(struct clone_args){
            .fn = pass_forever, .name = "passer", .cpus = BIT(cpu) });
    tids[cpu_count()] =
        kernel_clone(&(struct clone_args){ .fn = send_nmis, .name = "nmis" });
}

void passers_end(void)
{
    stop = true;
    for (unsigned i = 0; i <= cpu_count(); i++)
        thread_join(tids[i], NULL);
}

bool passers_add_to(const volatile uint64_t *counter)
{
    uint64_t before = *counter;

    for (unsigned n = 0; n < 10000 && *counter == before; n++)
        thread_yield();
    return *counter != before;
}
