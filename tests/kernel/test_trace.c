/* test_trace.c - the buffer of the tracer in the kernel: hits record on all CPUs, in NMIs
 * on top of each other, while a reader takes pages; and none is missing in the end.
 */
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "probes/kprobe.h"
#include "probes/trace/files/buffer.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"

static NOINLINE long recorded(long x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 3 + 1;
}

static volatile uint64_t nmis;
static volatile bool storm;

/* In its NMI a hit may come on top of one that writes. */
static NOINLINE bool nmi_that_is_recorded(struct pt_regs *regs UNUSED)
{
    if (!storm)
        return false;
    nmis++;
    recorded((long)nmis);
    return true;
}

static struct event event = { .group = "test", .name = "storm", .shape = EVENT_PROBE };

#define MARK UINT64_C(0x5eedbeefcafe0000)

/* A record has a word more, which is only right when all of it was written. */
static int record(struct kprobe *p, struct pt_regs *regs)
{
    struct {
        struct record_probe probe;
        uint64_t mark;
    } PACKED *r;
    struct ring *ring;

    r = record_begin(&event, sizeof(*r), regs->flags, &ring);
    if (!r)
        return 0;
    r->probe.ip = p->addr;
    r->mark = MARK + cpu_id();
    record_end(ring);
    return 0;
}

static struct kprobe probes[] = {
    { .addr = (uintptr_t)recorded, .pre_handler = record },
    { .symbol_name = "nmi_dispatch", .pre_handler = record },
};
static struct kprobe *const pointers[] = { &probes[0], &probes[1] };

/* ---- what is read ---- */

static uint64_t seen, missed, wrong;

static void read_all(void)
{
    struct merged one;
    struct merge m;

    trace_lock();
    if (buffer_merge(&m, -1, MERGE_TAKE)) {
        wrong++;
    } else {
        while (buffer_merge_next(&m, &one)) {
            const uint64_t *words = one.event.data;

            seen++;
            missed += one.missed;
            wrong += one.event.len != 24 || words[2] != MARK + one.ring ||
                     event_of(one.event.data, 24, one.event.time) != &event;
        }
        buffer_merge_end(&m);
    }
    trace_unlock();
}

static uint64_t dropped(void)
{
    uint64_t sum = 0;

    trace_lock();
    for (unsigned i = 0; i < cpu_count(); i++) {
        struct ring_stats stats;

        buffer_stats(i, &stats);
        sum += stats.dropped + stats.overrun + stats.overwritten;
    }
    trace_unlock();
    return sum;
}

/* ---- the storm ---- */

static int call_often(void *arg)
{
    uint64_t calls = *(const uint64_t *)arg;

    for (uint64_t i = 0; i < calls; i++) {
        recorded((long)i);
        if (cpu_id() == 0 && i % 512 == 0)
            read_all();
    }
    if (cpu_id() == 0 && cpu_count() > 1)
        nmi_send_many(cpu_count() - 1, calls / 100, &nmis);
    return 0;
}

KTEST(trace, every_hit_is_recorded_or_counted_as_lost)
{
    uint64_t calls = ktest_count(20000, 1000000), total;
    static bool is_set;

    if (!is_set)
        trap_set_handler(TRAP_NMI, nmi_that_is_recorded);
    is_set = true;
    seen = missed = wrong = 0;
    trace_lock();
    event_add(&event, buffer_now());
    buffer_reset(-1);
    ktest_report(buffer_set_size(-1, 64) == 0, "a buffer");
    trace_unlock();
    ktest_report(register_kprobes((struct kprobe **)pointers, 2) == 0, "two probes");
    storm = true;
    ktest_report(each_cpu_run(call_often, &calls) == 0, "called on each CPU");
    storm = false;
    ktest_report(unregister_kprobes((struct kprobe **)pointers, 2) == 0, "no probe");
    total = probes[0].hits + probes[1].hits;
    read_all();
    ktest_report(wrong == 0, "each record is whole, and of its CPU");
    ktest_report(seen + dropped() == total, "%lu records and %lu lost are %lu hits", seen,
                 dropped(), total);
    ktest_report(total >= calls * cpu_count() - probes[0].nmissed, "each call was a hit");
    trace_lock();
    event_remove(&event);
    buffer_reset(-1);
    trace_unlock();
}
