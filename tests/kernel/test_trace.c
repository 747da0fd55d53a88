/* test_trace.c - the buffer of the tracer in the kernel. Hits on all CPUs make records,
 * also in NMIs that interrupt a hit while it writes its record, and a reader takes pages
 * meanwhile. In the end each hit is a record or is counted as lost. The same holds for a
 * host that takes pages by the command `trace-pages`.
 */
#include "kernel/console/shell.h"
#include "kernel/mm/frame.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/ring/page.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"
#include "tests/kernel/records.h"

#include <stdio.h>
#include <stdlib.h>

KTEST_TARGET(recorded, x, x * 3 + 1)

static volatile uint64_t nmis;
static volatile bool storm;

/* This NMI handler has hits, which may interrupt a hit that is writing its record. */
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

/* record - make a record with one more word, which is right only if the record was
 * written to its end.
 */
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

static struct taken records;

static bool is_right(const struct merged *one)
{
    const uint64_t *words = one->event.data;

    return one->event.len == 24 && words[2] == MARK + one->ring &&
           event_of(one->event.data, 24, one->event.time) == &event;
}

static uint64_t dropped(void)
{
    uint64_t sum = 0;

    trace_lock();
    for (unsigned i = 0; i < cpu_count(); i++) {
        struct ring_stats stats;

        buffer_stats(i, BUFFER_LIVE, &stats);
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
            take_records(&records, is_right);
    }
    if (cpu_id() == 0 && cpu_count() > 1)
        nmi_send_many(cpu_count() - 1, calls / 100, &nmis);
    return 0;
}

KTEST(trace, every_hit_is_recorded_or_counted_as_lost)
{
    uint64_t calls = ktest_count(20000, 1000000), total;

    nmi_take(nmi_that_is_recorded);
    records = (struct taken){ 0 };
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
    take_records(&records, is_right);
    ktest_report(records.wrong == 0, "each record is whole, and of its CPU");
    ktest_report(records.seen + dropped() == total,
                 "%lu records and %lu lost are %lu hits", records.seen, dropped(), total);
    ktest_report(total >= calls * cpu_count() - probes[0].nmissed, "each call was a hit");
    trace_lock();
    event_remove(&event);
    buffer_reset(-1);
    trace_unlock();
}

/* ---- the tracer's own work ---- */

KTEST(trace, what_comes_on_top_of_recording_is_no_work_of_the_tracer)
{
    static const struct kprobe_op ops[] = {
        KPROBE_GET(KPROBE_OWN), KPROBE_IF(KPROBE_VALUE, KPROBE_ANY, KPROBE_OWN_BITS, 2),
        KPROBE_COUNT(0),        KPROBE_END,
        KPROBE_COUNT(1),
    };
    static struct kprobe_program own = { .ops = ops, .count = 5, .words = 2 };
    static struct kprobe_program tick = { .ops = ops, .count = 5, .words = 2 };
    struct kprobe p = { .addr = (uintptr_t)recorded, .program = &own };
    struct kprobe irq = { .symbol_name = "sched_tick", .program = &tick };
    uint64_t end = clock_ns() + UINT64_C(60000000000);

    nmi_take(nmi_that_is_recorded);
    ktest_report(register_kprobe(&p) == 0 && register_kprobe(&irq) == 0, "two probes");
    storm = true;
    preempt_disable();
    own_work_begin();
    recorded(1);
    nmi_send_many(cpu_id(), 1, &nmis);
    while (!program_sum(&tick, 1) && clock_ns() < end)
        pause();
    own_work_end();
    recorded(1);
    preempt_enable();
    storm = false;
    ktest_report(program_sum(&own, 0) == 1, "one of three hits is its own work");
    ktest_report(program_sum(&own, 1) == 2, "and not that of an NMI");
    ktest_report(program_sum(&tick, 1) && !program_sum(&tick, 0), "nor an interrupt's");
    unregister_kprobe(&irq);
    unregister_kprobe(&p);
}

/* ---- pages for the host ---- */

struct numbered { /* a record_text with a number in place of the text */
    struct record_head head;
    uint64_t ip;
    uint64_t number; /* the records of a CPU are numbered from 0 on */
};

/* What the host knows of each CPU: the number of the next record, and how many were lost.
 * written: what the CPU knows itself.
 */
static uint64_t next_number[MAX_CPUS], written[MAX_CPUS], lost[MAX_CPUS], out_of_order;

static void write_numbered(uint64_t number)
{
    struct numbered *r;
    struct ring *ring;

    preempt_disable();
    r = record_begin(&event_print, sizeof(*r), FLAGS_IF, &ring);
    if (r) {
        r->ip = MARK;
        r->number = number;
        record_end(ring);
    }
    preempt_enable();
}

struct host_batch {
    uint64_t number, count;
    const struct {
        uint64_t place, missed;
    } * list;
};

static uint64_t number_behind(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    return at ? strtoul(at + strlen(word), NULL, 0) : 0;
}

/* ask - run the command `trace-pages @words`. @b: receives the batch that it prints
 * Return: its status.
 */
static int ask(const char *words, struct host_batch *b)
{
    char line[64];
    struct seq out;
    int err;

    seq_init(&out, NULL, NULL);
    snprintf(line, sizeof(line), "trace-pages %s", words);
    err = shell_execute(line, &out);
    if (!err && b)
        *b = (struct host_batch){ number_behind(seq_str(&out), "batch "),
                                  number_behind(seq_str(&out), "pages "),
                                  phys_to_virt(number_behind(seq_str(&out), "list ")) };
    seq_free(&out);
    return err;
}

static int ask_number(uint64_t number, const char *how, struct host_batch *b)
{
    char words[32];

    snprintf(words, sizeof(words), "%lu%s", number, how);
    return ask(words, b);
}

static const struct ring_page *page_out(const struct host_batch *b, uint64_t i)
{
    return phys_to_virt(b->list[i].place & ~(PAGE_SIZE - 1));
}

/* read_batch - read a batch as a host does. The numbers of each CPU must go on after the
 * last one of the page before; as many as the page says are left out.
 */
static void read_batch(const struct host_batch *b)
{
    for (uint64_t i = 0; i < b->count; i++) {
        const struct ring_page *page = page_out(b, i);
        unsigned cpu = b->list[i].place & (PAGE_SIZE - 1);
        struct page_event one;
        struct page_iter it;

        next_number[cpu] += b->list[i].missed;
        lost[cpu] += b->list[i].missed;
        page_iter_init(&it, page);
        while (page_next(&it, &one)) {
            const struct numbered *r = one.data;

            out_of_order += r->ip != MARK || r->number != next_number[cpu]++;
        }
    }
}

static struct host_batch taken; /* the latest batch that the host has got */

static int write_and_take(void *arg)
{
    uint64_t calls = *(const uint64_t *)arg;

    for (uint64_t i = 0; i < calls; i++) {
        write_numbered(written[cpu_id()]++);
        if (cpu_id() == 0 && i % 512 == 511) {
            out_of_order += ask_number(taken.number + 1, "", &taken) != 0;
            read_batch(&taken);
        }
    }
    return 0;
}

KTEST(trace, pages_come_to_the_host_once)
{
    uint64_t calls = ktest_count(50000, 1000000), seen_by_host = 0, all_written = 0;

    trace_lock();
    buffer_reset(-1);
    ktest_report(buffer_set_size(-1, 64) == 0, "a buffer");
    trace_unlock();
    memset(next_number, 0, sizeof(next_number));
    memset(written, 0, sizeof(written));
    memset(lost, 0, sizeof(lost));
    out_of_order = 0;
    ktest_report(ask("open", &taken) == 0, "the host begins");
    ktest_report(each_cpu_run(write_and_take, &calls) == 0, "all CPUs write");
    do {
        ktest_report(ask_number(taken.number + 1, " all", &taken) == 0, "what is left");
        read_batch(&taken);
    } while (taken.count);
    ktest_report(ask_number(taken.number, " close", NULL) == 0, "the end");
    for (unsigned i = 0; i < cpu_count(); i++) {
        seen_by_host += next_number[i] - lost[i];
        all_written += written[i];
        lost[0] += i ? lost[i] : 0;
    }
    ktest_report(out_of_order == 0,
                 "each record once, in its order, and losses in theirs");
    ktest_report(seen_by_host + lost[0] == all_written && seen_by_host,
                 "%lu records and %lu lost are %lu", seen_by_host, lost[0], all_written);
}

KTEST(trace, pages_stay_until_the_host_has_read_them)
{
    struct frame_stats before, after;
    struct host_batch again, other;
    const struct ring_page *page;
    uint64_t calls = 4000, time, second;

    trace_lock();
    buffer_reset(-1);
    buffer_set_size(-1, 64);
    trace_unlock();
    ask("open", &taken); /* so that the heap has what it keeps */
    ask_number(taken.number, " close", NULL);
    frame_stats_get(&before);
    ktest_report(ask("1", &taken) == -EINVAL, "nothing before the host has begun");
    ktest_report(ask("open", &taken) == 0 && !taken.count, "it begins");
    for (uint64_t i = 0; i < calls; i++)
        write_numbered(i);
    ktest_report(ask_number(taken.number + 1, "", &taken) == 0 && taken.count > 2,
                 "pages");
    page = page_out(&taken, 0);
    time = page->time;
    second = taken.list[1].place;
    for (uint64_t i = 0; i < calls; i++)
        write_numbered(i);
    ktest_report(ask_number(taken.number, "", &again) == 0 &&
                     again.count == taken.count && again.list[1].place == second &&
                     page->time == time,
                 "the same number is the same batch, whatever was written since");
    ktest_report(ask_number(taken.number - 1, "", NULL) == -EINVAL &&
                     ask_number(taken.number + 2, "", NULL) == -EINVAL,
                 "no other number is answered");
    ktest_report(ask("open", &other) == 0 && other.number > taken.number + 1 &&
                     other.count == taken.count && other.list[1].place == second,
                 "another host begins with what was not confirmed");
    ktest_report(ask_number(taken.number + 1, "", NULL) == -EINVAL &&
                     ask_number(taken.number, " close", NULL) == -EINVAL,
                 "the first one cannot free it");
    ktest_report(ask_number(other.number + 1, "", &other) == 0 && other.count,
                 "the next batch");
    ktest_report(ask_number(other.number, " close", NULL) == 0, "the end");
    ktest_report(ask("off", NULL) == 0 && !buffer_is_on() && ask("on", NULL) == 0 &&
                     buffer_is_on(),
                 "recording is switched off and on");
    frame_stats_get(&after);
    ktest_report(before.free == after.free, "no frame is kept");
    trace_lock();
    buffer_reset(-1);
    trace_unlock();
}

/* The move of the tail leaves no bits of an earlier operand in the flags: see ring.h. */
KTEST(trace, the_tail_moves_without_strange_flags)
{
    static struct ring_tail tail;
    unsigned long flags, all = 0;

    for (unsigned bit = 0; bit < 31; bit++) {
        __asm__ volatile("pushfq; popfq; jmp 1f; 1: cmp %[operand], "
                         "%[zero];" RING_CMPXCHG16B "%[tail]; pushfq; pop %[flags]"
                         : [flags] "=&r"(flags), [tail] "+m"(tail)
                         : [operand] "r"(1ul << bit), [zero] "r"(0ul), "a"(0), "d"(0),
                           "b"(0), "c"(0)
                         : "cc", "memory");
        all |= flags;
    }
    ktest_report(!(all & (FLAGS_TF | FLAGS_DF | FLAGS_NT | FLAGS_AC)), "flags %#lx", all);
}
