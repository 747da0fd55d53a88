/* work_machine.c - workloads about the machine: time, calls of functions on other CPUs,
 * stop_machine() and quiesce().
 */
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/sync/quiesce.h"
#include "kernel/sync/stop_machine.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "kernel/work/work.h"

/* -- timer: the clock on every CPU --------------------------------------------------- */

static int timer_task(struct work_task *t)
{
    uint64_t last = clock_ns();

    t->calls++;
    for (unsigned i = 0; i < 50; i++) {
        uint64_t now = clock_ns();

        t->calls++;
        if (now < last)
            return -EIO;
        last = now;
    }
    t->result = t->calls;
    return 0;
}

static int timer_run(struct work *w)
{
    struct clock_wait wait = { .last = clock_ns() };
    uint64_t before = READ_ONCE(jiffies);

    w->function = "clock_ns";
    while (READ_ONCE(jiffies) == before) {
        if (clock_waited(&wait, UINT64_C(10000000000)))
            return -ETIMEDOUT;
        thread_sleep_ns(1000000);
    }
    return work_spread(w, timer_task, NULL);
}
WORKLOAD(timer, timer_run, "the clock of all CPUs, and a tick of the timer");

/* -- ipi: functions run on other CPUs ------------------------------------------------ */

struct machine_call {
    uint64_t in, out;
    unsigned cpu;
};

static void answer_call(void *arg)
{
    struct machine_call *call = arg;

    call->out = work_hash(call->in);
    call->cpu = cpu_id();
}

static void count_call(void *arg)
{
    __atomic_fetch_add((unsigned *)arg, 1, __ATOMIC_RELAXED);
}

static int ipi_run(struct work *w)
{
    unsigned answers = 0;

    w->function = "smp_call";
    for (unsigned i = 0; i < 60; i++) {
        struct machine_call call = { .in = work_random(w) };
        unsigned cpu = i % cpu_count();

        smp_call(cpu, answer_call, &call);
        w->calls++;
        if (call.cpu != cpu)
            return -EIO;
        work_mix(w, call.out);
    }
    smp_call_all(count_call, &answers);
    return answers == cpu_count() ? 0 : -EIO;
}
WORKLOAD(ipi, ipi_run, "call functions on all CPUs in turn");

/* -- stop: all CPUs but one stand still ---------------------------------------------- */

static int stop_run(struct work *w)
{
    w->function = "stop_machine";
    for (unsigned i = 0; i < 5; i++) {
        struct machine_call call = { .in = work_random(w) };

        stop_machine(answer_call, &call);
        w->calls++;
        work_mix(w, call.out);
    }
    return 0;
}
WORKLOAD(stop, stop_run, "act while all other CPUs stand still");

/* -- quiesce: wait until every thread was outside of removable code ------------------ */

static int quiesce_run(struct work *w)
{
    w->function = "quiesce";
    for (unsigned i = 0; i < 2; i++) {
        quiesce();
        w->calls++;
        work_mix(w, work_random(w));
    }
    return 0;
}
WORKLOAD(quiesce, quiesce_run, "wait until every thread was outside of removable code");
