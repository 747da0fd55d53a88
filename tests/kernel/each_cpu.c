/* each_cpu.c - starts one thread on each CPU. */
#include "tests/kernel/each_cpu.h"

#include "kernel/cpu/percpu.h"
#include "kernel/thread/thread.h"
#include "probes/core/platform.h"

struct run {
    int (*fn)(void *arg);
    void *arg;
    unsigned arrived; /* threads that are on their CPU */
    bool go;          /* all threads are on their CPU */
};

/* Each thread waits here until all of them exist. Otherwise a short @fn could end on one
 * CPU before the thread of the next CPU is made.
 */
static int start_together(void *arg)
{
    struct run *run = arg;

    __atomic_add_fetch(&run->arrived, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&run->go, __ATOMIC_ACQUIRE))
        thread_yield();
    return run->fn(run->arg);
}

static unsigned start(struct run *run, int tids[MAX_CPUS])
{
    unsigned started = 0;

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        struct clone_args args = {
            .fn = start_together, .arg = run, .name = "each_cpu", .cpus = BIT(cpu)
        };

        tids[cpu] = kernel_clone(&args);
        started += tids[cpu] > 0;
    }
    return started;
}

unsigned each_cpu_run(int (*fn)(void *arg), void *arg)
{
    struct run run = { .fn = fn, .arg = arg };
    int tids[MAX_CPUS];
    unsigned started = start(&run, tids), bad = 0;

    while (__atomic_load_n(&run.arrived, __ATOMIC_ACQUIRE) < started)
        thread_yield();
    __atomic_store_n(&run.go, true, __ATOMIC_RELEASE);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        int code = 1;

        if (tids[cpu] > 0)
            thread_join(tids[cpu], &code);
        bad += code != 0;
    }
    return bad;
}

uint64_t each_cpu_syncs(void)
{
    uint64_t count = 0;

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        count += plat_sync_count(cpu);
    return count;
}
