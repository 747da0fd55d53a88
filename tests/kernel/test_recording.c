/* test_recording.c - recording under difficult conditions: values that fault inside of an
 * NMI, two readers at once, a buffer that gets another size while all CPUs record, a
 * snapshot while a reader reads, and an event on the clock, which every record calls. In
 * each case every hit is found as a record, or is reported as lost.
 */
#include "kernel/debug/ksyms.h"
#include "kernel/fs/vfs.h"
#include "probes/jump/platform_jump.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/snapshot.h"
#include "probes/trace/language/hist_parts.h"
#include "probes/trace/live/live.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"
#include "tests/kernel/records.h"
#include "tests/kernel/trace_put.h"

#include <stdio.h>
#include <stdlib.h>

NOINLINE long recording_target(long x);
NOINLINE long recording_target(long x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 3 + 1;
}

/* NMIs call this function instead of recording_target(): a hit inside of a hit of the
 * same probe would be missed.
 */
NOINLINE long recording_in_nmi(long x);
NOINLINE long recording_in_nmi(long x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 5 + 1;
}

/* define - empty the buffer, define the event or events @line, and switch
 * the event @name on.
 */
static void define(const char *line, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "events/kprobes/%s/enable", name);
    trace_put("trace", "", VFS_TRUNC);
    ktest_report(!trace_put("kprobe_events", line, VFS_APPEND) &&
                     !trace_put(path, "1", 0),
                 "%s", name);
}

static uint64_t hits_of(const char *name)
{
    const struct live_probe *p;
    uint64_t hits = 0;

    trace_lock();
    list_for_each(p, &live_event_find("kprobes", name)->probes, sibling)
        hits += live_probe_hits(p);
    trace_unlock();
    return hits;
}

static uint64_t count_of(const char *name, enum live_loss cause)
{
    uint64_t count;

    trace_lock();
    count = live_event_find("kprobes", name)->lost[cause];
    trace_unlock();
    return count;
}

static void forget_all(void)
{
    trace_put("events/enable", "0", 0);
    ktest_report(!trace_put("kprobe_events", "", VFS_TRUNC), "all events go");
    trace_put("trace", "", VFS_TRUNC);
}

/* ---- what a reader finds ---- */

static uint64_t told_lost; /* [a] the sum of m in lines "CPU:n [LOST m EVENTS]" */
static uint8_t *seen;      /* [a] for each call, how often its record was read */
static uint64_t seen_size;

static void take_line(const char *line)
{
    const char *value = strstr(line, " n="), *lost = strstr(line, " [LOST ");
    uint64_t n;

    if (!strncmp(line, "CPU:", 4) && lost) {
        __atomic_add_fetch(&told_lost, strtoul(lost + 7, NULL, 10), __ATOMIC_RELAXED);
    } else if (value) {
        n = strtoul(value + 3, NULL, 0);
        if (n < seen_size)
            __atomic_add_fetch(&seen[n], 1, __ATOMIC_RELAXED);
    }
}

/* read_file - read the file @name, and count its lines in told_lost and seen[].
 * Return: false when it cannot be opened.
 */
static bool read_file(const char *name)
{
    struct file file = { .flags = VFS_READ };
    char path[128], *line, *next;

    snprintf(path, sizeof(path), ROOT "%s", name);
    if (vfs_open(path, &file))
        return false;
    for (line = file.text.text; line && file.text.len && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        take_line(line);
    }
    vfs_close(&file);
    return true;
}

static uint64_t seen_times(unsigned times)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < seen_size; i++)
        count += seen[i] == times;
    return count;
}

static void seen_start(uint64_t calls)
{
    seen = kzalloc(calls);
    seen_size = seen ? calls : 0;
    told_lost = 0;
    ktest_report(seen != NULL, "a mark for each of %lu calls", calls);
}

/* all_found_but - report that each call was read once, or was reported as lost. @others:
 * records of other events that were lost in the same buffer, and so are reported as well
 */
static void all_found_but(uint64_t others, uint64_t hits)
{
    ktest_report(read_file("trace"), "the rest");
    ktest_report(hits == seen_size, "each call is a hit");
    ktest_report(seen_times(0) + seen_times(1) == seen_size, "no record is read twice");
    ktest_report(seen_times(1) + told_lost == hits + others,
                 "%lu read, %lu told as lost, of %lu and %lu", seen_times(1), told_lost,
                 hits, others);
    kfree(seen);
    seen = NULL;
    seen_size = 0;
}

static void all_found(uint64_t hits)
{
    all_found_but(0, hits);
}

/* ---- two readers, and a buffer that changes ---- */

static uint64_t problems;

/* call_some - call the function with the numbers from @from up to @to. Interrupts are off
 * meanwhile, so that code which waits for this CPU waits longer.
 */
static void call_some(uint64_t from, uint64_t to)
{
    unsigned long flags = irq_save();

    for (uint64_t n = from; n < to; n++)
        recording_target((long)n);
    irq_restore(flags);
}

#define STEP 256

static void (*do_meanwhile)(uint64_t step);

static int call_and_act(void *arg)
{
    uint64_t each = *(const uint64_t *)arg, first = cpu_id() * each;

    for (uint64_t n = 0; n < each; n += STEP) {
        call_some(first + n, first + n + STEP);
        do_meanwhile(n / STEP);
    }
    return 0;
}

/* record_while - let all CPUs record @steps times 256 calls, and call @act after each step.
 * The event stays defined; it is switched off.
 */
static void record_while(void (*act)(uint64_t step), uint64_t steps, const char *what)
{
    uint64_t each = steps * STEP;

    seen_start(each * cpu_count());
    problems = 0;
    do_meanwhile = act;
    define("p:each recording_target n=%di:u64\n", "each");
    ktest_report(each_cpu_run(call_and_act, &each) == 0, "%lu %s", steps, what);
    ktest_report(problems == 0, "each of them succeeds");
    trace_put("events/kprobes/each/enable", "0", 0);
}

static void read_by_two(uint64_t step UNUSED)
{
    if (cpu_id() < 2)
        problems += !read_file("trace_pipe");
}

KTEST(recording, two_readers_share_what_is_recorded)
{
    record_while(read_by_two, ktest_rounds(16, 400), "reads by up to two CPUs");
    all_found(hits_of("each"));
    forget_all();
}

static void resize(uint64_t step)
{
    static const char *const sizes[] = { "8", "64", "16", "1408", "12", "100" };

    if (cpu_id() == 0)
        problems += trace_put("buffer_size_kb", sizes[step % ARRAY_LEN(sizes)], 0) != 0;
    if (cpu_id() == cpu_count() - 1)
        problems += !read_file("trace_pipe");
}

KTEST(recording, the_buffer_gets_another_size_under_writers)
{
    record_while(resize, ktest_rounds(24, 400), "sizes");
    all_found(hits_of("each"));
    forget_all();
    trace_put("buffer_size_kb", "1408", 0);
}

static void take_snapshot(uint64_t step)
{
    problems += cpu_id() == 0 && trace_put("snapshot", "1", 0) != 0;
    if (cpu_id() == cpu_count() - 1)
        problems += !read_file(step % 2 ? "snapshot" : "trace_pipe");
}

/* A snapshot may be read more than once. So the test only counts the calls whose record
 * was never read.
 */
KTEST(recording, snapshots_are_taken_while_others_read)
{
    uint64_t hits, missing;

    record_while(take_snapshot, ktest_rounds(16, 400), "snapshots");
    ktest_report(read_file("snapshot") && read_file("trace"), "the rest");
    hits = hits_of("each");
    missing = seen_times(0);
    ktest_report(hits == seen_size && missing <= told_lost,
                 "%lu of %lu were not read, %lu told as lost", missing, hits, told_lost);
    kfree(seen);
    seen = NULL;
    seen_size = 0;
    forget_all();
    trace_put("snapshot", "0", 0);
}

static bool trigger_says(const char *text)
{
    struct file file = { .flags = VFS_READ };
    bool found = false;

    if (!vfs_open(ROOT "events/kprobes/each/trigger", &file)) {
        found = strstr(seq_str(&file.text), text) != NULL;
        vfs_close(&file);
    }
    return found;
}

/* A thread of the tracer makes room for the next snapshot. It needs the lock that the
 * test holds, so only the first of two hits can take a snapshot.
 */
KTEST(recording, a_snapshot_that_is_not_taken_does_not_count)
{
    define("p:each recording_target n=%di:u64\n", "each");
    ktest_report(!trace_put("events/kprobes/each/trigger", "snapshot:3", 0), "three");
    trace_lock();
    recording_target(1);
    recording_target(2);
    trace_unlock();
    ktest_report(trigger_says("snapshot:count=2"), "the first of two hits takes one");
    trace_lock();
    snapshot_settle();
    snapshot_hold();
    recording_target(3);
    trace_unlock();
    ktest_report(trigger_says("snapshot:count=2"), "none while the buffer changes");
    trace_lock();
    snapshot_release();
    recording_target(4);
    trace_unlock();
    ktest_report(trigger_says("snapshot:count=1"), "and behind it again");
    trace_lock();
    snapshot_hold();
    heap_fail_after(1);
    snapshot_release();
    heap_fail_after(-1);
    recording_target(5);
    trace_unlock();
    ktest_report(trigger_says("snapshot:count=1"), "none without memory for the next");
    ktest_report(!trace_put("events/kprobes/each/trigger", "!snapshot", 0), "no trigger");
    forget_all();
    trace_put("snapshot", "0", 0);
}

KTEST(recording, what_a_full_buffer_drops_is_counted)
{
    struct ring_stats stats;
    uint64_t entries = 0, lost;

    define("p:each recording_target n=%di:u64\n", "each");
    ktest_report(!trace_put("buffer_size_kb", "8", 0) &&
                     !trace_put("options/overwrite", "0", 0),
                 "a small buffer");
    for (long n = 0; n < 2000; n++)
        recording_target(n);
    lost = count_of("each", LIVE_LOST_RING);
    trace_lock();
    for (unsigned i = 0; i < cpu_count(); i++) {
        buffer_stats(i, BUFFER_LIVE, &stats);
        entries += stats.entries;
    }
    trace_unlock();
    ktest_report(entries && lost && entries + lost == 2000, "%lu records, %lu lost",
                 entries, lost);
    trace_put("options/overwrite", "1", 0);
    trace_put("buffer_size_kb", "1408", 0);
    forget_all();
}

/* ---- a read ends, whatever is probed ---- */

#define SMALL_KB 16
#define RECORDS_MAX (4 * SMALL_KB * 1024 / sizeof(struct record_probe)) /* of a CPU */
#define STORM_CALLS (4 * RECORDS_MAX)
#define READER_HITS                                                                      \
    4000 /* before and behind the loops that print: they count for nothing */
#define READER "if common_pid == %d && !(common_flags & 0x48)" /* and no interrupt */

/* probe_the_reader - define the event for all functions with which files are read, records
 * and tables are sorted and printed, and addresses are named.
 */
static void probe_the_reader(void)
{
    static const char *const begins[] = { "buffer_", "event_", "filter_", "hist_",
                                          "ksyms_",  "live_",  "mem",     "merge_",
                                          "page_",   "print",  "ring_",   "seq_",
                                          "str",     "trace_", "vfs_",    "vsn" };
    struct ksym sym;
    char line[160];

    for (size_t i = 0; ksyms_get(i, &sym); i++)
        for (size_t k = 0; k < ARRAY_LEN(begins); k++)
            if ((sym.type == 't' || sym.type == 'T') &&
                !strncmp(sym.name, begins[k], strlen(begins[k]))) {
                snprintf(line, sizeof(line), "p:all %s\n", sym.name);
                trace_put("kprobe_events", line, VFS_APPEND); /* some carry no probe */
            }
}

/* hits_of_reader - return how many hits the table of stacks has counted. */
static uint64_t hits_of_reader(void)
{
    const struct hist_table *table;
    uint64_t hits;

    trace_lock();
    table = live_event_find("kprobes", "all")->attached->trigger[0]->hist->table;
    hits = table->hits + table->dropped;
    trace_unlock();
    return hits;
}

/* read_counted - read the file @name, and report its lines and the reader's hits. */
static void read_counted(const char *name, uint64_t at_least, uint64_t at_most)
{
    struct file file = { .flags = VFS_READ };
    uint64_t before = hits_of_reader(), hits, lines = 0;
    char path[64];

    snprintf(path, sizeof(path), ROOT "%s", name);
    ktest_report(!vfs_open(path, &file), "%s", name);
    hits = hits_of_reader() - before;
    for (size_t i = 0; i < file.text.len; i++)
        lines += file.text.text[i] == '\n';
    vfs_close(&file);
    ktest_report(lines >= at_least && lines <= at_most, "%lu lines", lines);
    ktest_report(hits && hits < READER_HITS, "%lu hits of the reader", hits);
}

static int call_often(void *arg UNUSED)
{
    for (uint64_t n = 0; n < STORM_CALLS; n++)
        recording_target((long)n);
    return 0;
}

/* All functions of a reader have an event, which is recorded, and a table of the reader's
 * stacks. On another CPU a thread makes more records than the buffer has room for.
 */
KTEST(recording, a_read_ends_although_all_functions_of_the_reader_are_probed)
{
    uint64_t capacity = cpu_count() * RECORDS_MAX;
    char trigger[128], begins[128];
    int tid = thread_current()->tid;

    snprintf(trigger, sizeof(trigger), "hist:keys=stacktrace:pause " READER, tid);
    snprintf(begins, sizeof(begins), "hist:keys=stacktrace:continue " READER, tid);
    tid = 0;
    trace_put("trace", "", VFS_TRUNC);
    trace_put("buffer_size_kb", "16", 0);
    trace_put("kprobe_events", "p:all recording_target\n", VFS_APPEND);
    probe_the_reader();
    ktest_report(!trace_put("events/kprobes/all/trigger", trigger, 0) &&
                     !trace_put("events/kprobes/all/enable", "1", 0),
                 "all functions");
    plat_optimize_settle();
    ktest_report(!trace_put("events/kprobes/all/trigger", begins, 0), "as jumps");
    call_often(NULL);
    if (cpu_count() > 1)
        tid = ktest_thread(call_often, NULL, BIT(cpu_count() - 1));
    ktest_report(tid >= 0, "the buffer is full");
    read_counted("trace_pipe", 300, capacity);
    read_counted("trace", 300, capacity);
    read_counted("events/kprobes/all/hist", 100, UINT64_MAX);
    if (tid > 0)
        thread_join(tid, NULL);
    snprintf(trigger, sizeof(trigger), "!hist:keys=stacktrace " READER,
             thread_current()->tid);
    ktest_report(!trace_put("events/kprobes/all/trigger", trigger, 0),
                 "without the table");
    forget_all();
    trace_put("buffer_size_kb", "1408", 0);
}

/* ---- a pause while `trace` is read ---- */

static int switch_off(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    if (regs->di == BUFFER_PAUSED)
        buffer_switch(false);
    return 0;
}

KTEST(recording, only_a_look_pauses)
{
    struct kprobe p = { .symbol_name = "buffer_stop", .pre_handler = switch_off };

    ktest_report(!register_kprobe(&p) && !trace_put("options/pause-on-trace", "1", 0),
                 "the option");
    ktest_report(read_file("trace_pipe") && kprobe_hits(&p) == 0, "takes and goes on");
    ktest_report(read_file("trace") && kprobe_hits(&p) == 2, "looks: off, and on");
    ktest_report(!buffer_is_on(),
                 "a hit has switched tracing off meanwhile, and it stays off");
    trace_put("options/pause-on-trace", "0", 0);
    unregister_kprobe(&p);
    buffer_switch(true);
}

/* ---- values that fault in an NMI ---- */

static volatile uint64_t nmis;
static volatile bool storm;

static NOINLINE bool nmi_of_recording(struct pt_regs *regs UNUSED)
{
    if (!storm)
        return false;
    nmis++;
    recording_in_nmi((long)nmis);
    return true;
}

static int call_under_nmis(void *arg)
{
    uint64_t calls = *(const uint64_t *)arg;

    if (cpu_id() == 0)
        nmi_send_many(cpu_count() - 1, calls / 20, &nmis);
    else
        for (uint64_t i = 0; i < calls; i++)
            recording_target((long)i);
    return 0;
}

#define BAD "a=@16:u64 b=+0(\\16):string c=+0(\\16):u32[3]\n"

KTEST(recording, values_fault_in_an_nmi_and_in_what_it_interrupts)
{
    uint64_t calls = ktest_count(20000, 500000), hits, lost;

    if (ktest_lacks_cpus(2))
        return;
    nmi_take(nmi_of_recording);
    define("p:bad recording_target " BAD "p:bad recording_in_nmi " BAD, "bad");
    nmis = 0;
    storm = true;
    ktest_report(each_cpu_run(call_under_nmis, &calls) == 0, "%lu calls", calls);
    storm = false;
    trace_put("events/kprobes/bad/enable", "0", 0);
    hits = hits_of("bad");
    lost = count_of("bad", LIVE_LOST_RING);
    ktest_report(nmis == calls / 20, "%lu NMIs have come", nmis);
    ktest_report(hits == nmis + calls * (cpu_count() - 1), "each call is a hit");
    ktest_report(lost == 0 && count_of("bad", LIVE_FAULT) == 5 * hits,
                 "%lu values could not be read in %lu hits, and %lu are lost",
                 count_of("bad", LIVE_FAULT), hits, lost);
    forget_all();
}

/* recorded_by - set @filter, and make ten calls. Return: how many of them were recorded.
 */
static uint64_t recorded_by(const char *filter)
{
    struct ring_stats stats;
    uint64_t entries = 0;

    trace_put("trace", "", VFS_TRUNC);
    ktest_report(!trace_put("events/kprobes/bad/filter", filter, 0), "%s", filter);
    for (long n = 0; n < 10; n++)
        recording_target(n);
    trace_lock();
    for (unsigned i = 0; i < cpu_count(); i++) {
        buffer_stats(i, BUFFER_LIVE, &stats);
        entries += stats.entries;
    }
    trace_unlock();
    return entries;
}

KTEST(recording, a_filter_looks_at_what_could_not_be_read)
{
    define("p:bad recording_target " BAD, "bad");
    ktest_report(!trace_put("events/kprobes/bad/trigger", "hist:keys=b,a", 0), "a table");
    ktest_report(recorded_by("b == \"x\" || b ~ \"*y*\" || a > 0") == 0, "none passes");
    ktest_report(recorded_by("b != \"x\" && a == 0") == 10, "each passes");
    ktest_report(hits_of("bad") == 20, "all are hits");
    ktest_report(!trace_put("events/kprobes/bad/trigger", "", VFS_TRUNC), "no table");
    forget_all();
}

/* ---- the clock ---- */

/* While a CPU waits for another one that does not answer, as on a loaded host, it reads the
 * clock thousands of times. The buffer has room for that, and what it overwrites even so is
 * reported as lost.
 */
KTEST(recording, an_event_on_the_clock_leaves_room_for_others)
{
    uint64_t calls = 1000, lost;

    trace_put("buffer_size_kb", "1408", 0);
    seen_start(calls);
    define("p:clock clock_ns\n", "clock");
    define("p:each recording_target n=%di:u64\n", "each");
    for (uint64_t n = 0; n < calls; n++)
        recording_target((long)n);
    trace_put("events/enable", "0", 0);
    ktest_report(hits_of("clock") < 100 * calls, "what records asks %lu times in between",
                 hits_of("clock"));
    ktest_report(count_of("each", LIVE_LOST_RING) == 0, "no other event is lost");
    lost = count_of("clock", LIVE_LOST_RING) + overwritten();
    all_found_but(lost, hits_of("each"));
    forget_all();
}
