/* test_events.c - the events of kprobe_events. They are made and removed while all CPUs
 * hit them, and each hit is either recorded or counted as lost.
 */
#include "kernel/fs/vfs.h"
#include "kernel/sync/quiesce.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/language/hist_parts.h"
#include "probes/trace/live/live.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/engines.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/records.h"
#include "tests/kernel/text_sum.h"
#include "tests/kernel/trace_put.h"

#include <stdio.h>

/* The function on which the events are defined. */
NOINLINE long event_target(long x, const char *text);
NOINLINE long event_target(long x, const char *text)
{
    __asm__ volatile("" : "+r"(x) : "r"(text) : "memory");
    return x * 3 + 1;
}

static long append(const char *name, const char *text)
{
    return trace_put(name, text, VFS_APPEND);
}

/* look - read the whole file @name of the tracer. Return: 0; an error of vfs_open(). */
static long look(const char *name)
{
    struct file file = { .flags = VFS_READ };
    char path[128];
    long err;

    snprintf(path, sizeof(path), ROOT "%s", name);
    err = vfs_open(path, &file);
    if (!err)
        vfs_close(&file);
    return err;
}

/* ---- jumps ---- */

#define OPTIMIZATION "/proc/sys/debug/kprobes-optimization"

static int optimize(const char *on)
{
    struct file file = { .flags = VFS_WRITE };
    uint64_t pos = 0;
    long done = vfs_open(OPTIMIZATION, &file);

    if (done)
        return (int)done;
    done = vfs_write(&file, on, 1, &pos);
    vfs_close(&file);
    return done < 0 ? (int)done : 0;
}

/* ---- the storm ---- */

static volatile bool storm_ends;
static uint64_t calls, problems;
static char text[512] = "some text";

/* A filter that takes long, so that CPUs are evaluating it when it is exchanged. */
#define SLOW_FILTER "s ~ \"*x*x*x*x*x*x*x*y*text\""

/* must - make a hit, and count a problem if @err is an error of the change @what. With
 * one CPU only these hits come between the changes.
 */
static void must(long err, const char *what)
{
    event_target(1, "abc");
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    if (!err)
        return;
    if (!problems++)
        ktest_note("%s: %ld", what, err);
}

/* must_be_sound - count a problem for each probe that was switched off
 * because of a fault.
 */
static void must_be_sound(void)
{
    const struct live_probe *p = NULL;

    trace_lock();
    while ((p = live_probe_next(p)) != NULL)
        must(p->rp.kp.flags & KPROBE_FLAG_TRIPPED, "a handler that faulted");
    trace_unlock();
}

/* live_through - make events with filters and triggers of each kind, change them and
 * remove them, while other CPUs hit the events.
 */
static void live_through(unsigned round)
{
    must(append("kprobe_events", "p:storm/a event_target x=%di s=+0(%si):string c=$comm\n"
                                 "r:storm/b event_target x=$retval\n"
                                 "p:storm/c event_target s=+0(%si):string\n"),
         "definitions");
    must(append("events/storm/enable", "1"), "enable");
    must(append("events/storm/a/filter", round % 2 ? "x < 100" : SLOW_FILTER),
         "a filter");
    must(append("events/storm/a/trigger", "hist:keys=s,common_cpu:vals=x:size=128"),
         "a histogram");
    must(append("events/storm/b/trigger", "stacktrace:50"), "stacks");
    must(append("events/storm/c/trigger", "disable_event:storm:c if common_pid > 0"),
         "a trigger that switches its own event off");
    must(append("events/storm/c/trigger", "enable_event:storm:b"), "another one's");
    for (unsigned i = 0; i < 10; i++) {
        must(append("events/storm/a/filter", "0"), "no filter");
        must(append("events/storm/a/filter", SLOW_FILTER), "a slow filter");
    }
    must(append("events/storm/a/filter", "0"), "no filter");
    must(append("events/storm/a/trigger",
                round % 3 ? "!hist:keys=s,common_cpu:vals=x:size=128"
                          : "hist:keys=s,common_cpu:vals=x:size=128:clear"),
         "the histogram");
    must(trace_put("events/storm/a/trigger", "", VFS_TRUNC), "no histogram");
    must(append("events/storm/c/trigger", "!enable_event:storm:b"), "no trigger");
    must(append("events/storm/c/trigger", "!disable_event:storm:c"), "no trigger");
    must(append("events/storm/b/trigger", "!stacktrace"), "no stacks");
    must_be_sound();
    must(append("events/storm/enable", "0"), "disable");
    must(round % 2 ? trace_put("kprobe_events", "", VFS_TRUNC)
                   : append("kprobe_events", "-:storm/\n"),
         "deletion");
}

/* read_meanwhile - read a file of the tracer while events are made and removed. The
 * records in it need the names and formats of their events.
 */
static void read_meanwhile(unsigned i)
{
    static const char *const files[] = { "trace", "trace_pipe", "kprobe_profile",
                                         "available_events" };

    must(look(files[i % ARRAY_LEN(files)]), "a reader");
}

static int storm(void *arg)
{
    unsigned rounds = *(const unsigned *)arg, reads = 0;

    if (cpu_id() == 0) {
        for (unsigned i = 0; i < rounds; i++)
            live_through(i);
        storm_ends = true;
    }
    while (!storm_ends) {
        /* The end of the string moves while other CPUs copy it. */
        text[calls % (sizeof(text) - 1)] = calls % 300 ? 'x' : '\0';
        event_target((long)(calls % 200), text);
        if (!(__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 1024) && cpu_id() == 1)
            read_meanwhile(reads++);
    }
    if (cpu_id() == 1)
        ktest_note("%u files were read meanwhile", reads);
    return 0;
}

KTEST(events, they_come_and_go_under_hits)
{
    unsigned rounds = (unsigned)ktest_rounds(8, 100);
    uint64_t sum = text_sum();
    size_t heap;

    /* Memory that is kept after the first use is allocated here, before it is counted. */
    live_through(0);
    live_through(1);
    heap = heap_in_use();
    problems = 0;
    storm_ends = false;
    ktest_report(each_cpu_run(storm, &rounds) == 0, "%u rounds", rounds);
    ktest_report(problems == 0, "each change is accepted");
    ktest_report(calls > 0, "under %lu calls", calls);
    ktest_report(text_sum() == sum, "the text is as it was");
    ktest_report(heap_in_use() == heap, "so is the memory: %lu bytes, and %lu before",
                 heap_in_use(), heap);
    trace_put("trace", "", VFS_TRUNC);
}

/* ---- questions ---- */

/* ask_through - ask questions that are programs, change them and take them out, while
 * other CPUs hit them. A value of one cannot be read.
 */
static void ask_through(const char *engine UNUSED, void *jumps)
{
    must(optimize(jumps), "jumps");
    must(append("kprobe_events", "p:storm/d event_target x=%di y=+0(%si):u8\n"
                                 "r:storm/e event_target x=$retval\n"
                                 "p:storm/f event_target z=+0(%di):u8\n"),
         "definitions");
    must(append("events/storm/d/trigger", "hist:keys=x:vals=y"), "a key");
    must(append("events/storm/d/trigger", "hist:keys=y.log2 if x > 100"), "another one");
    must(append("events/storm/e/trigger", "hist:keys=common_cpu:vals=x"), "of returns");
    must(append("events/storm/f/trigger", "hist:keys=z:pause"), "one that pauses");
    must(append("events/storm/f/trigger", "hist:keys=z:continue"), "and goes on");
    must(append("events/storm/d/trigger", "hist:keys=x:vals=y:clear"), "a clear one");
    must(append("events/storm/enable", "1"), "records");
    must(append("events/kept/enable", "1"), "records of what stays");
    must(append("events/storm/d/trigger", "!hist:keys=y.log2 if x > 100"), "one less");
    must(append("events/storm/enable", "0"), "no records");
    must(append("events/kept/enable", "0"), "no records of what stays");
    must(append("events/storm/e/trigger", "!hist:keys=common_cpu:vals=x"), "one less");
    must(append("events/storm/f/trigger", "!hist:keys=z"), "one less");
    must(append("events/storm/d/trigger", "!hist:keys=x:vals=y"), "none");
    must_be_sound();
    must(append("kprobe_events", "-:storm/\n"), "deletion");
}

static int ask_storm(void *arg)
{
    unsigned rounds = *(const unsigned *)arg;

    if (cpu_id() == 0) {
        for (unsigned i = 0; i < rounds; i++) {
            for_each_engine(ask_through, "0");
            for_each_engine(ask_through, "1");
        }
        storm_ends = true;
    }
    while (!storm_ends) {
        event_target((long)(calls % 200), text);
        __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    }
    return 0;
}

static uint64_t dropped; /* by the histogram that was looked at last */

/* counted_by - how many hits the event's histogram has counted. */
static uint64_t counted_by(const char *group, const char *name)
{
    const struct live_event *e;
    struct hist *view;
    uint64_t hits;

    trace_lock();
    e = live_event_find(group, name);
    view = live_hist_view(e->attached->trigger[0]->hist);
    hits = view ? view->table->hits : 0;
    dropped = view ? view->table->dropped : 0;
    live_hist_view_free(view);
    trace_unlock();
    return hits;
}

/* Among them is a question that stays, at the same place: it counts each call. */
KTEST(events, questions_come_and_go_under_hits)
{
    unsigned rounds = (unsigned)ktest_rounds(2, 20);
    uint64_t sum, before;

    sum = text_sum();
    problems = 0;
    storm_ends = false;
    ktest_report(append("kprobe_events", "p:kept/k event_target x=%di\n") == 0 &&
                     append("events/kept/k/trigger", "hist:keys=common_cpu") == 0,
                 "a question that stays");
    before = calls;
    ktest_report(each_cpu_run(ask_storm, &rounds) == 0, "%u rounds", rounds);
    ktest_report(problems == 0, "each change is accepted");
    ktest_report(counted_by("kept", "k") == calls - before,
                 "%lu calls are %lu hits of what stays", calls - before,
                 counted_by("kept", "k"));
    append("events/kept/k/trigger", "!hist:keys=common_cpu");
    append("kprobe_events", "-:kept/k\n");
    ktest_report(optimize("1") == 0 && text_sum() == sum, "the text is as it was");
    trace_put("trace", "", VFS_TRUNC);
}

static void call_with(long first, long last)
{
    for (long i = first; i <= last; i++)
        event_target(i, "abc");
}

KTEST(events, a_probe_that_goes_leaves_its_counts)
{
    static const char *const lines[][2] = {
        { "p:kept/m event_target x=%di\n", "p:kept/m vfs_read x=%di\n" },
        { "r:kept/m event_target x=$retval\n", "r:kept/m vfs_read x=$retval\n" },
    };

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        uint64_t before;
        long err;

        ktest_report(!append("kprobe_events", lines[i][0]) &&
                         !append("kprobe_events", lines[i][1]),
                     "an event with two probes");
        append("events/kept/m/trigger", "hist:keys=x");
        call_with(1, 9);
        before = counted_by("kept", "m");
        err = append("kprobe_events", "-:kept/m event_target\n");
        ktest_report(!err && before >= 9 && counted_by("kept", "m") >= before,
                     "%lu hits, and %lu", before, counted_by("kept", "m"));
        append("events/kept/m/trigger", "!hist:keys=x");
        ktest_report(append("kprobe_events", "-:kept/m\n") == 0, "no event");
    }
}

/* Two events are at one place, and share a histogram. */
KTEST(events, one_of_two_that_share_a_histogram_pauses)
{
    append("kprobe_events", "p:kept/m event_target\np:kept/n event_target\n");
    append("events/kept/m/trigger", "hist:keys=common_cpu:name=both");
    append("events/kept/n/trigger", "hist:keys=common_cpu:name=both");
    call_with(1, 5);
    append("events/kept/n/trigger", "hist:keys=common_cpu:name=both:pause");
    call_with(1, 3);
    ktest_report(counted_by("kept", "m") == 13, "%lu hits", counted_by("kept", "m"));
    append("events/kept/n/trigger", "hist:keys=common_cpu:name=both:continue");
    call_with(1, 2);
    ktest_report(counted_by("kept", "m") == 17, "%lu hits", counted_by("kept", "m"));
    append("events/kept/m/trigger", "hist:keys=common_cpu:name=both:clear");
    ktest_report(counted_by("kept", "n") == 0, "none");
    append("events/kept/m/trigger", "!hist:keys=common_cpu:name=both");
    append("events/kept/n/trigger", "!hist:keys=common_cpu:name=both");
    ktest_report(append("kprobe_events", "-:kept/\n") == 0, "no events");
}

KTEST(events, a_full_table_of_keys_is_empty_when_it_is_clear)
{
    static const char *const lines[] = { "p:kept/m event_target x=%di\n",
                                         "r:kept/m event_target x=$retval\n" };

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        append("kprobe_events", lines[i]);
        append("events/kept/m/trigger", "hist:keys=x:size=128");
        call_with(1, 1000);
        counted_by("kept", "m");
        ktest_report(dropped > 0, "%lu hits have no room", dropped);
        append("events/kept/m/trigger", "hist:keys=x:size=128:clear");
        call_with(5001, 5005);
        ktest_report(counted_by("kept", "m") == 5 && !dropped, "then others have");
        append("events/kept/m/trigger", "!hist:keys=x:size=128");
        append("kprobe_events", "-:kept/m\n");
    }
}

/* ---- each hit ---- */

static int call_often(void *arg)
{
    uint64_t n = *(const uint64_t *)arg;

    for (uint64_t i = 0; i < n; i++)
        event_target((long)i, "abc");
    return 0;
}

static struct taken records;

static bool is_right(const struct merged *one)
{
    const uint64_t *words = one->event.data;

    return one->event.len == 32 && words[1] == (uintptr_t)event_target &&
           words[2] == words[3];
}

static int write_or_read(void *arg)
{
    if (cpu_id() != 0 || cpu_count() == 1)
        return call_often(arg);
    for (unsigned i = 0; i < 20; i++)
        take_records(&records, is_right);
    return call_often(arg);
}

KTEST(events, every_hit_is_recorded_or_lost)
{
    uint64_t n = ktest_count(20000, 10000000) / cpu_count(), hits, lost;
    const struct live_event *e;

    records = (struct taken){ 0 };
    trace_put("trace", "", VFS_TRUNC);
    ktest_report(append("kprobe_events", "p:each event_target a=%di b=$arg1\n") == 0 &&
                     append("events/kprobes/each/enable", "1") == 0,
                 "an event of two arguments");
    ktest_report(each_cpu_run(write_or_read, &n) == 0, "%lu hits on each CPU", n);
    append("events/kprobes/each/enable", "0");
    take_records(&records, is_right);
    trace_lock();
    e = live_event_find("kprobes", "each");
    hits = kprobe_hits(&list_first(&e->probes, struct live_probe, sibling)->rp.kp);
    lost = e->lost[LIVE_LOST_RING];
    trace_unlock();
    ktest_report(hits == n * cpu_count(), "each call is a hit");
    ktest_report(records.wrong == 0, "each record is whole");
    ktest_report(records.seen + lost + overwritten() == hits,
                 "%lu read, %lu lost, %lu overwritten", records.seen, lost,
                 overwritten());
    ktest_report(trace_put("kprobe_events", "", VFS_TRUNC) == 0, "no event");
    trace_put("trace", "", VFS_TRUNC);
}

/* ---- what the program was doing ---- */

/* count_recorded - take all records. Return: the count of preemption in the record, if
 * there is exactly one; -1: there is none, or more than one.
 */
static int count_recorded(void)
{
    struct merged one;
    struct merge m;
    int count = -1, records = 0;

    trace_lock();
    if (!buffer_merge(&m, -1, BUFFER_LIVE, MERGE_TAKE)) {
        while (buffer_merge_next(&m, &one)) {
            const struct record_head *head = one.event.data;

            count = head->preempt_count;
            records++;
        }
        buffer_merge_end(&m);
    }
    trace_unlock();
    return records == 1 ? count : -1;
}

static void count_by(const char *line, const char *way)
{
    int inside, outside;

    trace_put("trace", "", VFS_TRUNC);
    ktest_report(append("kprobe_events", line) == 0 &&
                     append("events/kprobes/enable", "1") == 0,
                 "%s", way);
    event_target(1, "abc");
    outside = count_recorded();
    preempt_disable();
    event_target(1, "abc");
    preempt_enable();
    inside = count_recorded();
    ktest_report(outside == 0 && inside == 1, "recorded are %d and %d", outside, inside);
    append("events/kprobes/enable", "0");
    trace_put("kprobe_events", "", VFS_TRUNC);
}

KTEST(events, the_count_of_preemption_is_the_programs)
{
    static const struct {
        const char *line, *way;
    } ways[] = {
        { "p:own event_target a=%di\n", "by code of its own" },
        { "p:image event_target s=+0(%si):string\n", "with an image" },
        { "r:return event_target\n", "at the return" },
    };

    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        count_by(ways[i].line, ways[i].way);
    ktest_report(optimize("0") == 0, "without jumps");
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        count_by(ways[i].line, ways[i].way);
    ktest_report(optimize("1") == 0, "and with them again");
    trace_put("trace", "", VFS_TRUNC);
}

/* ---- printing ---- */

#define FEW 40 /* printing would make at least one hit for each record, and so on */

static uint64_t hits_of_printer(void)
{
    uint64_t hits = 0;

    trace_lock();
    for (const struct live_probe *p = NULL; (p = live_probe_next(p)) != NULL;)
        hits += live_probe_hits(p);
    trace_unlock();
    return hits;
}

/* print_counted - report how many hits it costs to read the file @name. */
static void print_counted(const char *name)
{
    uint64_t before = hits_of_printer();

    ktest_report(!look(name), "%s", name);
    ktest_report(hits_of_printer() - before < FEW, "%lu hits",
                 hits_of_printer() - before);
}

/* The functions print each record, and each row of the table, so a read would not end. */
KTEST(events, printing_is_no_part_of_what_is_printed)
{
    ktest_report(!append("kprobe_events", "p:text seq_write\np:each snprintf x=%si\n"),
                 "two events of the printer");
    append("events/kprobes/enable", "1");
    ktest_report(!append("events/kprobes/each/trigger", "hist:keys=x,stacktrace"),
                 "and a table of one");
    print_counted("trace_pipe");
    print_counted("trace");
    print_counted("events/kprobes/each/hist");
    append("events/kprobes/each/trigger", "!hist:keys=x,stacktrace");
    append("events/kprobes/enable", "0");
    trace_put("kprobe_events", "", VFS_TRUNC);
    trace_put("trace", "", VFS_TRUNC);
}

KTEST(events, a_record_leaves_the_mark_of_its_thread)
{
    ktest_report(!append("kprobe_events", "p:one event_target\n") &&
                     !append("events/kprobes/enable", "1"),
                 "an event");
    thread_set_own_work(true);
    event_target(1, "abc");
    ktest_report(own_work() && count_recorded() == 0,
                 "the thread still works for the tracer");
    ktest_report(thread_set_own_work(false), "until it says so");
    append("events/kprobes/enable", "0");
    trace_put("kprobe_events", "", VFS_TRUNC);
}
