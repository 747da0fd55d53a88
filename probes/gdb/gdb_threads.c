/* gdb_threads.c - tells the debugger what threads there are, and what they do. */
#include "probes/gdb/gdb_threads.h"

#include "kernel/thread/sched.h"
#include "probes/gdb/gdb_stop.h"
#include "probes/port/port_held.h"

#include <stdio.h>

unsigned gdb_thread_id(const struct thread *t)
{
    if (!thread_is_idle(t))
        return (unsigned)t->tid;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        if (sched_idle_threads[cpu] == t)
            return GDB_IDLE + cpu;
    return GDB_IDLE + MAX_CPUS;
}

void gdb_thread_put(struct gdb_out *to, const struct thread *t)
{
    gdb_put_number(to, gdb_thread_id(t));
}

struct wanted_thread {
    unsigned id;
    struct thread *found;
};

static bool is_wanted_thread(struct thread *t, void *arg)
{
    struct wanted_thread *wanted = arg;

    if (gdb_thread_id(t) == wanted->id)
        wanted->found = t;
    return !wanted->found;
}

struct thread *gdb_thread_find(unsigned id)
{
    struct wanted_thread wanted = { .id = id };

    port_threads(is_wanted_thread, &wanted);
    return wanted.found;
}

void gdb_thread_state(const struct thread *t, char *text, size_t len)
{
    int cpu = gdb_cpu_of(t);

    if (cpu >= 0)
        scnprintf(text, len, "on CPU %d", cpu);
    else
        scnprintf(text, len, "%s", thread_state_name(t->state));
}
