/* machine.c - the CPUs of a scenario. */
#include "tests/explore/machine.h"

#include "kernel/cpu/percpu.h"

struct machine_cpu machine[MACHINE_CPUS];

static struct percpu areas[MACHINE_CPUS];

struct percpu *percpu_of(unsigned cpu)
{
    return &areas[cpu];
}

unsigned cpu_count(void)
{
    return MACHINE_CPUS;
}

void machine_irqs(bool on)
{
    machine_self()->irqs_off = !on;
    explore_irqs(on);
}
