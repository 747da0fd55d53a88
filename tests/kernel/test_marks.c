/* test_marks.c - markers as events of the tracer. */
#include "kernel/debug/marker.h"
#include "kernel/module/module.h"
#include "probes/core/platform.h"
#include "probes/trace/live/live.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/say.h"
#include "tests/kernel/text_sum.h"

#include <stdio.h>

#define ROOT "/sys/kernel/tracing/"
#define MARKS ROOT "events/markers/"

static NOINLINE void traced(unsigned n, const char *text)
{
    MARK(ktest_traced, "n %u text %s", n, text);
}

static NOINLINE void numbered(unsigned n)
{
    MARK(ktest_numbered, "n %u", n);
}

static void begin(void)
{
    say("echo -n > " ROOT "trace");
    say("echo 1 > " ROOT "tracing_on");
}

/* traces - return how often @text is in the trace buffer. */
static unsigned traces(const char *text)
{
    unsigned count = 0;
    const char *p;

    say("cat " ROOT "trace");
    for (p = seq_str(&output); (p = strstr(p, text)) != NULL; p++)
        count++;
    return count;
}

KTEST(marks, each_is_an_event_with_fields)
{
    begin();
    ktest_report(say("cat " MARKS "ktest_traced/format") == 0 &&
                     said("field:u32 n;\toffset:16;\tsize:4;\tsigned:0;") &&
                     said("field:__data_loc char[] text;\toffset:20;") &&
                     said(" n=%u text=\\\"%s\\\"\""),
                 "it says which");
    traced(1, "early");
    say("echo 1 > " MARKS "ktest_traced/enable");
    traced(2, "late");
    say("echo 0 > " MARKS "ktest_traced/enable");
    traced(3, "later");
    ktest_report(traces("ktest_traced: (") == 1 && said(" n=2 text=\"late\""),
                 "it is recorded while it is enabled");
    ktest_report(said("...  "), "in a thread with preemption on");
    say("cat " ROOT "available_events");
    ktest_report(said("markers:vfs_read\n") && said("markers:sched_switch\n"),
                 "those of the kernel are, too");
    traced(4, NULL);
    say("echo 1 > " MARKS "ktest_traced/enable");
    traced(5, (const char *)0x1234);
    say("echo 0 > " MARKS "ktest_traced/enable");
    ktest_report(traces(" n=5 text=(fault)") == 1, "what cannot be read is a fault");
}

KTEST(marks, a_group_is_switched_in_one_batch)
{
    uint64_t start, one, all;
    int err;

    begin();
    start = each_cpu_syncs();
    say("echo 1 > " MARKS "ktest_traced/enable");
    one = each_cpu_syncs() - start;
    say("echo 0 > " MARKS "ktest_traced/enable");
    start = each_cpu_syncs();
    err = say("echo 1 > " MARKS "enable");
    all = each_cpu_syncs() - start;
    traced(1, "group");
    ktest_report(!err && one && all == one, "with as many synchronisations as one: %lu",
                 all);
    start = each_cpu_syncs();
    err = say("echo 0 > " MARKS "enable");
    all = each_cpu_syncs() - start;
    ktest_report(!err && all <= 2 * one, "and off: %lu", all);
    traced(2, "group");
    ktest_report(traces("ktest_traced: (") == 1, "each is recorded meanwhile");
}

KTEST(marks, all_events_are_armed_or_none)
{
    unsigned n, changed = 0;
    uint64_t sum;
    int err = -ENOMEM;

    begin();
    say("echo 'p:one_more vfs_read' >> " ROOT "kprobe_events");
    sum = text_sum();
    for (n = 1; err && n < 500; n++) {
        heap_fail_after((long)n);
        err = say("echo 1 > " ROOT "events/enable");
        heap_fail_after(-1);
        changed += err && text_sum() != sum;
    }
    ktest_report(!err && n > 5, "a probe and markers are armed at the %u. try", n);
    ktest_report(!changed, "until then the text is as it was");
    ktest_report(!say("echo 0 > " ROOT "events/enable") && text_sum() == sum,
                 "and after");
    say("echo '-:one_more' >> " ROOT "kprobe_events");
    begin();
}

KTEST(marks, filters_and_triggers)
{
    begin();
    ktest_report(!say("echo 'n > 10 && text ~ \"b*\"' > " MARKS "ktest_traced/filter"),
                 "a filter");
    say("echo 1 > " MARKS "ktest_traced/enable");
    traced(9, "b");
    traced(11, "b");
    traced(12, "c");
    say("echo 0 > " MARKS "ktest_traced/enable");
    say("echo 0 > " MARKS "ktest_traced/filter");
    ktest_report(traces("ktest_traced: (") == 1 && said(" n=11 text=\"b\""),
                 "the filter is asked");
    begin();
    ktest_report(!say("echo 'hist:keys=n:sort=n' > " MARKS "ktest_traced/trigger") &&
                     !say("echo 'stacktrace:1' >> " MARKS "ktest_traced/trigger"),
                 "a histogram, and a stack");
    for (unsigned i = 0; i < 6; i++)
        traced(i / 4, "x");
    say("cat " MARKS "ktest_traced/hist");
    ktest_report(said("{ n:          0 } hitcount:          4\n") && said("Hits: 6\n"),
                 "hits are counted");
    ktest_report(traces(" => traced\n") == 1 && said(" => ktest_marks_filters") &&
                     !strstr(seq_str(&output), "marker_run"),
                 "the stack begins at the marker");
    say("echo '!stacktrace:1' >> " MARKS "ktest_traced/trigger");
    say("echo '!hist:keys=n:sort=n' >> " MARKS "ktest_traced/trigger");
    traced(1, "none");
    ktest_report(traces("ktest_traced: (") == 0,
                 "nothing is recorded for a trigger alone");
    say("echo hist:keys=n > " MARKS "ktest_numbered/trigger");
    numbered(1);
    thread_set_own_work(true);
    numbered(1);
    thread_set_own_work(false);
    say("cat " MARKS "ktest_numbered/hist");
    ktest_report(said("Hits: 1\n"), "a program leaves the tracer's own hits out");
    say("echo -n > " MARKS "ktest_numbered/trigger");
}

KTEST(marks, they_are_no_lines)
{
    size_t heap;

    /* The arguments are those of the marker, so only the name can be the reason. */
    ktest_report(say("echo 'p:markers/ktest_traced vfs_read n=%%di:u32 "
                     "text=+0(%%si):string' >> " ROOT "kprobe_events") != 0,
                 "a line cannot take such a name");
    say("echo 'p:markers/another vfs_read' >> " ROOT "kprobe_events");
    say("cat " ROOT "kprobe_events");
    ktest_report(said("p:markers/another") && !strstr(seq_str(&output), "ktest_traced"),
                 "but one beside it");
    ktest_report(say("echo -:markers/ktest_traced >> " ROOT "kprobe_events") != 0,
                 "nor delete one");
    ktest_report(say("echo -n > " ROOT "kprobe_events") == 0 &&
                     live_event_find("markers", "ktest_traced") &&
                     !live_event_find("markers", "another"),
                 "nor all lines together");
    say("echo 1 > " MARKS "ktest_traced/enable"); /* the first event makes the buffer */
    say("echo 0 > " MARKS "ktest_traced/enable");
    heap = heap_in_use();
    say("echo 1 > " MARKS "ktest_traced/enable");
    say("echo 0 > " MARKS "ktest_traced/enable");
    ktest_report(heap_in_use() == heap,
                 "an event that was enabled leaves nothing behind");
}

extern const uint8_t module_marks[], module_marks_end[];

KTEST(marks, those_of_modules_wait_for_them)
{
    size_t len = (size_t)(module_marks_end - module_marks);
    char why[MODULE_WHY_MAX];

    begin();
    module_load("marks", module_marks, len, why);
    ktest_report(live_event_find("markers", "ktest_module"), "an event comes with it");
    module_unload("marks", why);
    ktest_report(!live_event_find("markers", "ktest_module"), "and goes");
    module_load("marks", module_marks, len, why);
    ktest_report(say("echo 1 > " MARKS "ktest_module/enable") == 0, "it is enabled");
    module_unload("marks", why);
    ktest_report(live_event_find("markers", "ktest_module"), "then it waits");
    module_load("marks", module_marks, len, why);
    say("echo 0 > " MARKS "ktest_module/enable");
    ktest_report(traces("ktest_module: (") == 3 && said(" i=0\n") && said(" i=2\n"),
                 "what its constructor passes is recorded");
    module_unload("marks", why);
    ktest_report(!live_event_find("markers", "ktest_module"), "and it goes at last");
}

/* ---- while all CPUs pass ---- */

static volatile bool stop;
static uint64_t passed;

static int pass_forever(void *unused UNUSED)
{
    while (!stop) {
        traced(7, "storm");
        __atomic_fetch_add(&passed, 1, __ATOMIC_RELAXED);
    }
    return 0;
}

KTEST(marks, none_is_lost_while_all_changes)
{
    const struct live_event *e = live_event_find("markers", "ktest_traced");
    uint64_t rounds = ktest_rounds(3, 15), hits;
    int tids[MAX_CPUS], failed = 0;
    char line[64];

    begin();
    say("echo 'hist:keys=n' > " MARKS "ktest_traced/trigger");
    stop = false;
    passed = 0;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        tids[cpu] = ktest_thread(pass_forever, NULL, BIT(cpu));
    for (uint64_t i = 0; i < rounds; i++) {
        failed += say("echo 1 > " MARKS "ktest_traced/enable") != 0;
        failed += say("echo 'n == %lu' > " MARKS "ktest_traced/filter", i) != 0;
        thread_sleep_ns(1000000);
        failed += say("echo 0 > " MARKS "ktest_traced/filter") != 0;
        failed += say("echo 0 > " MARKS "ktest_traced/enable") != 0;
    }
    stop = true;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        thread_join(tids[cpu], NULL);
    say("cat " MARKS "ktest_traced/hist");
    hits = passed - e->lost[LIVE_LOST_NESTED];
    snprintf(line, sizeof(line), "Hits: %lu\n", hits);
    ktest_report(!failed && passed > rounds && said(line), "%lu passes, each is a hit",
                 passed);
    say("echo '!hist:keys=n' >> " MARKS "ktest_traced/trigger");
    begin();
}
