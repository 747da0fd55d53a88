/* each_cpu.c - one thread per CPU, for tests of what CPUs share. */
#include "tests/kernel/each_cpu.h"

#include "kernel/cpu/percpu.h"
#include "kernel/thread/thread.h"

unsigned each_cpu_run(int (*fn)(void *arg), void *arg)
{
    unsigned count = cpu_count(), bad = 0;
    int tids[MAX_CPUS];

    for (unsigned cpu = 0; cpu < count; cpu++) {
        struct clone_args args = {
            .fn = fn, .arg = arg, .name = "each_cpu", .cpus = BIT(cpu)
        };

        tids[cpu] = kernel_clone(&args);
    }
    for (unsigned cpu = 0; cpu < count; cpu++) {
        int code = 1;

        if (tids[cpu] > 0)
            thread_join(tids[cpu], &code);
        bad += code != 0;
    }
    return bad;
}
