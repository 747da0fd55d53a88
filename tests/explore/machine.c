/* machine.c - the CPUs of a scenario, and what the kernel has for them. */
#include "tests/explore/machine.h"

#include "kernel/cpu/percpu.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"
#include "kernel/sync/quiesce.h"
#include "kernel/sync/wait_check.h"

struct machine_cpu machine[MACHINE_CPUS];
unsigned cpus_online ALIGNED(64) = MACHINE_CPUS; /* on its own: it never changes */

static struct percpu areas[MACHINE_CPUS];

struct percpu *percpu_of(unsigned cpu)
{
    return &areas[cpu];
}

void machine_irqs(bool on)
{
    machine_self()->irqs_off = !on;
    explore_irqs(on);
}

bool machine_takes_irqs(const void *cpu)
{
    return !((const struct machine_cpu *)cpu)->irqs_off;
}

unsigned long __wrap_plat_irq_save(void);
unsigned long __wrap_plat_irq_save(void)
{
    bool on = !machine_self()->irqs_off;

    if (on)
        machine_irqs(false);
    return on;
}

void __wrap_plat_irq_restore(unsigned long on);
void __wrap_plat_irq_restore(unsigned long on)
{
    if (on)
        machine_irqs(true);
}

/* ---- quiescence ---- */

void machine_enter(void)
{
    machine_self()->inside++;
}

void machine_leave(void)
{
    machine_self()->left += machine_self()->inside == 1;
    machine_self()->inside--;
}

static bool all_were_outside(const void *arg)
{
    const unsigned *before = arg;

    for (unsigned i = 0; i < MACHINE_CPUS; i++)
        if (machine[i].inside && machine[i].left == before[i])
            return false;
    return true;
}

void quiesce(void)
{
    unsigned before[MACHINE_CPUS];

    for (unsigned i = 0; i < MACHINE_CPUS; i++)
        before[i] = machine[i].left;
    explore_wait(all_were_outside, before);
}

/* ---- mutexes, memory ---- */

static bool is_free(const void *arg)
{
    return mutex_is_free(arg);
}

bool mutex_is_free(const struct mutex *m)
{
    return !m->owner;
}

int wait_check(const char *verb UNUSED)
{
    return 0; /* the actors are threads */
}

void mutex_lock(struct mutex *m)
{
    explore_wait(is_free, m);
    m->owner = (struct thread *)(uintptr_t)(explore_cpu() + 1);
}

void mutex_unlock(struct mutex *m)
{
    m->owner = NULL;
}

void *kmalloc(size_t len)
{
    return explore_alloc(len);
}

void *kzalloc(size_t len)
{
    return explore_alloc(len);
}

void kfree(void *p)
{
    explore_free(p);
}
