/* test_hist.c - tests of probes/trace/hist: the lines that define histograms, counting
 * and output; and hits in several threads and in signal handlers at the same time.
 */
#define _GNU_SOURCE /* REG_EFL */
#include "probes/trace/language/hist_parts.h"

#include "tests/unit/trace_host.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

static const struct filter_field fields[] = {
    { "a", 8, 4, false, FILTER_NUMBER },      { "b", 12, 4, true, FILTER_NUMBER },
    { "ip", 16, 8, false, FILTER_NUMBER },    { "s", 24, 4, false, FILTER_STRING },
    { "array", 8, 16, false, FILTER_NUMBER }, { "odd", 8, 3, false, FILTER_NUMBER },
};

struct record {
    uint16_t type;
    uint8_t flags, preempt;
    int32_t pid;
    uint32_t a;
    int32_t b;
    uint64_t ip;
    uint32_t s;
    char text[100];
};

/* The other event, k.start, and the synthetic event "lat u64 value; char text[]". */
static struct hist *world_start;
static struct hist_synth world_lat = { "lat", 2, 2, 0 };

static void world_each(bool (*fn)(struct hist *hist, const char *group, const char *event,
                                  void *arg),
                       void *arg)
{
    fn(world_start, "k", "start", arg);
}

static struct hist_synth *world_synth(const char *name, size_t len)
{
    return len == 3 && !memcmp(name, "lat", len) ? &world_lat : NULL;
}

static const struct hist_world world = { "k", "end", world_each, world_synth };

static struct hist *made(const char *spec)
{
    struct hist_error error;
    struct hist *hist;
    int err = hist_parse(&trace_host, spec, fields, ARRAY_LEN(fields),
                         world_start ? &world : NULL, &hist, &error);

    if (err)
        unit_note("%s: %s at %u", spec, hist_error_text(error.id), error.column);
    CHECK_EQ(err, 0);
    return hist;
}

static char emitted[256]; /* by synthetic events */

static void emit(const struct hist_hit *hit UNUSED, struct hist_synth *synth,
                 const uint64_t *values)
{
    size_t len = strlen(emitted);

    snprintf(emitted + len, sizeof(emitted) - len, "%s %lu %s\n", synth->name, values[0],
             (const char *)values[1]);
}

static void add_at(struct hist *hist, uint64_t ns, uint32_t a, int32_t b, const char *s)
{
    struct record record = { .pid = 7, .a = a, .b = b, .ip = VFS_READ + a };
    static const uint64_t stack[] = { VFS_READ + 4, VFS_WRITE + 8 };
    struct hist_hit hit = { &record, sizeof(record), 2, "init", stack, 2, emit };
    const struct hist_time time = { ns, true };

    record.s = (uint32_t)((strlen(s) + 1) << 16 | offsetof(struct record, text));
    strcpy(record.text, s);
    hist_add_at(hist, &hit, &time);
}

static void add(struct hist *hist, uint32_t a, int32_t b, const char *s)
{
    add_at(hist, 5600, a, b, s);
}

static size_t symbol_text(char *buf, size_t size, uintptr_t addr)
{
    return (size_t)snprintf(buf, size, "fn+0x%lx/0x90", addr & 0xfff);
}

/* shown - return the content of the file `hist`, from its first entry on. */
static const char *shown(const struct hist *hist)
{
    static char text[65536];
    static uint32_t numbers[HIST_SIZE_MAX];
    size_t count = hist_sorted(hist, numbers), len = 0;

    for (size_t i = 0; i < count && len < sizeof(text); i++)
        len += hist_print_entry(hist, numbers[i], symbol_text, text + len,
                                sizeof(text) - len);
    if (len < sizeof(text))
        hist_print_totals(hist, text + len, sizeof(text) - len);
    return text;
}

#define TOTALS(hits, entries)                                                            \
    "\nTotals:\n    Hits: " hits "\n    Entries: " entries "\n    Dropped: 0\n"

UNIT_TEST(lines_and_how_they_are_listed)
{
    static const char *const rows[][2] = {
        { "keys=a", "hist:keys=a:vals=hitcount:sort=hitcount:size=2048 [active]" },
        { "keys=a:vals=hitcount,b:sort=b.descending,a:size=200",
          "hist:keys=a:vals=hitcount,b:sort=b.descending,a:size=256 [active]" },
        { "key=ip.sym,b.hex,a.log2:val=a:pause",
          "hist:keys=ip.sym,b.hex,a.log2:vals=hitcount,a:sort=hitcount:size=2048 "
          "[paused]" },
        { "keys=a.buckets=16:values=b.max:sort=a.ascending:name=n:nohitcount",
          "hist:name=n:keys=a.buckets=16:vals=b.max:sort=a.buckets=16:size=2048"
          ":nohitcount [active]" },
        { "keys=stacktrace,common_pid.execname,cpu:size=65",
          "hist:keys=stacktrace,common_pid.execname,common_cpu:vals=hitcount:sort="
          "hitcount"
          ":size=128 [active]" },
        { "keys=s,ip.sym-offset",
          "hist:keys=s,ip.sym-offset:vals=hitcount:sort=hitcount:size=2048 [active]" },
        { "keys=common_stacktrace,s.hex,a.syscall:vals=b.usecs",
          "hist:keys=common_stacktrace,s.hex,a.syscall:vals=hitcount,b.usecs:sort="
          "hitcount"
          ":size=2048 [active]" },
        { "keys=a.bucket=3:vals=hitcount,b,a",
          "hist:keys=a.buckets=3:vals=hitcount,b,a:sort=hitcount:size=2048 [active]" },
        { "keys=s.log2,common_pid:vals=common_pid.execname:clock=mono",
          "hist:keys=s.log2,common_pid:vals=hitcount,common_pid.execname:sort=hitcount"
          ":size=2048 [active]" },
        { "keys=common_timestamp:vals=a:nohitcount:clock=mono",
          "hist:keys=common_timestamp:vals=a:sort=hitcount:size=2048:clock=mono:"
          "nohitcount "
          "[active]" },
        { "name=n:keys=a:vals=common_timestamp.usecs",
          "hist:name=n:keys=a:vals=hitcount,common_timestamp.usecs:sort=hitcount:size="
          "2048"
          ":clock=global [active]" },
        { "keys=a:x=b,y=common_timestamp.usecs-$ts0:vals=$x:onmatch(k.start).lat($y,s)"
          ":onmax($y).save(b,comm)",
          "hist:keys=a:vals=hitcount,$x:x=b,y=common_timestamp.usecs-$ts0:sort=hitcount"
          ":size=2048:clock=global:onmatch(k.start).lat($y,s):onmax($y).save(b,comm) "
          "[active]" },
    };
    char text[256];

    world_start = made("keys=a:ts0=common_timestamp.usecs");

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct hist *hist = made(rows[i][0]);

        CHECK(hist_print_spec(hist, NULL, text, sizeof(text)) == strlen(text));
        CHECK_STR(text, rows[i][1]);
        hist_free(&trace_host, hist);
    }
    hist_free(&trace_host, world_start);
    world_start = NULL;
}

UNIT_TEST(a_filter_stands_before_the_state)
{
    struct hist *hist = made("keys=a");
    char text[128];

    hist_pause(hist, true);
    hist_print_spec(hist, "a > 1", text, sizeof(text));
    CHECK_STR(text,
              "hist:keys=a:vals=hitcount:sort=hitcount:size=2048 if a > 1 [paused]");
    hist_free(&trace_host, hist);
}

UNIT_TEST(lines_that_are_refused)
{
    static const struct {
        const char *spec, *error;
        unsigned column;
    } rows[] = {
        { "vals=a", "No error", 0 },
        { "keys=", "Empty assignment", 5 },
        { "keys=a:sort=", "Empty assignment", 12 },
        { "keys=nosuch", "Couldn't find field", 10 },
        { "keys=a,nosuch", "Couldn't find field", 12 },
        { "keys=a:vals=nosuch", "Couldn't find field", 17 },
        { "keys=a.none", "Invalid field modifier", 12 },
        { "keys=a.min", "Invalid field modifier", 12 },
        { "keys=a.buckets=0", "Invalid field modifier", 20 },
        { "keys=a:vals=b.log2", "Invalid field modifier", 17 },
        { "keys=a:vals=b.nosuch", "Invalid field modifier", 19 },
        { "keys=a:vals=b.execname", "Invalid field modifier", 19 },
        { "keys=a:vals=b.buckets=10", "Invalid field modifier", 17 },
        { "keys=a:vals=b.percents", "Invalid field modifier", 19 },
        { "keys=a:x=b.percent", "Invalid field modifier", 14 },
        { "keys=a.percent", "Invalid field modifier", 12 },
        { "keys=a:vals=hitcount.hex", "Couldn't find field", 17 },
        { "keys=a:vals=hitcount.nosuch", "Invalid field modifier", 26 },
        { "keys=a.buckets", "Invalid field modifier", 0 },
        { "keys=a.buckets=-1", "Invalid field modifier", 0 },
        { "keys=a.hex.hex", "Couldn't find field", 12 },
        { "keys=nosuch:vals=none", "Couldn't find field", 22 },
        { "keys=h", "Couldn't find field", 0 },
        { "keys=a:vals=b,a,b", "No error", 0 },
        { "keys=a:vals=s", "No error", 0 },
        { "keys=a:vals=comm", "Couldn't find field", 17 },
        { "keys=common_timestamp.execname", "Invalid field modifier", 27 },
        { "keys=a:vals=common_timestamp.log2", "Invalid field modifier", 17 },
        { "keys=a:clock=", "Empty assignment", 12 },
        { "keys=a,a,a,a", "No error", 0 },
        { "keys=a:vals=a,a,a,a", "No error", 0 },
        { "keys=a:sort=b", "Sort field must be a key or a val", 17 },
        { "keys=ip:sort=p", "Sort field must be a key or a val", 11 },
        { "keys=a:sort=a.up", "Invalid sort modifier", 19 },
        { "keys=a:sort=a,", "Empty sort field", 12 },
        { "keys=a:sort=a.", "Invalid sort modifier", 0 },
        { "keys=a.hex:sort=a.hex", "Invalid sort modifier", 12 },
        { "keys=a:sort=a,hitcount,a", "Too many sort fields (Max = 2)", 12 },
        { "keys=a:size=x", "No error", 0 },
        { "keys=a:size=131073", "No error", 0 },
        { "keys=a:x=none", "Couldn't find field", 14 },
        { "keys=a:x=b:x=a", "Variable already defined", 12 },
        { "keys=a:x=b+1-a+b+2", "Too many subexpressions (3 max)", 14 },
        { "keys=a:x=-b", "Unary minus not supported in sub-expressions", 14 },
        { "keys=a:x=b*1z", "Expecting numeric literal", 16 },
        { "keys=a:x=b/0", "Division by zero", 16 },
        { "keys=a:x=b+", "Couldn't find field", 14 },
        { "keys=a:x=comm", "String type can not be an operand in expression", 14 },
        { "keys=a:x=b-$no", "Couldn't find field", 16 },
        { "keys=a:vals=$no", "Couldn't find field", 17 },
        { "keys=a:x=b-k.start.$none", "Couldn't find field", 24 },
        { "keys=a:x=b-k.other.$ts0", "Couldn't find field", 24 },
        { "keys=a,b:x=b-$ts0", "Matching event histogram not found", 19 },
        { "keys=a:x=common_timestamp-$ts0", "Timestamp units in expression don't match",
          32 },
        { "keys=$x:x=b+1", "Using variable references in keys not supported", 10 },
        { "keys=a:onmatch(k.start).foo(b)", "Couldn't find synthetic event", 29 },
        { "keys=a:onmatch(k.start).trace(foo,b)", "Couldn't find synthetic event", 35 },
        { "keys=a:onmatch(start).lat(b)", "Missing subsystem", 20 },
        { "keys=a:onmatch(k.).lat(b)", "Invalid subsystem or event name", 20 },
        { "keys=a:onmatch(k.start", "No closing paren found", 20 },
        { "keys=a:onmatch(k.start).lat(b", "No closing paren found", 33 },
        { "keys=a:onmatch(k.start).lat", "Action not found", 29 },
        { "keys=a:onmatch(k.start)", "Action not found", 0 },
        { "keys=a:onmatch(k.start).lat(b)",
          "Param count doesn't match synthetic event "
          "field count",
          29 },
        { "keys=a:onmatch(k.start).lat(b,a)",
          "Param type doesn't match synthetic event "
          "field type",
          10 },
        { "keys=a:onmatch(k.start).lat(b,none)", "Couldn't find param", 35 },
        { "keys=a:onmatch(k.start).lat($x,s)", "Couldn't find param", 33 },
        { "keys=a:onmatch(k.start).save(b)", "Handler doesn't support action", 29 },
        { "keys=a:onmax(b).save(b)", "For onmax(x) or onchange(x), x must be a variable",
          18 },
        { "keys=a:onmax($no).save(b)", "Couldn't find onmax or onchange variable", 18 },
        { "keys=a:x=b:onmax($x).save()", "No params found for save()", 26 },
        { "keys=a:x=b:onmax($x).save(a):onchange($x).save(a)",
          "Can't have more than one save() action per hist", 26 },
        { "keys=a:x=b:onmax($x).snapshot()", "Action not found", 26 },
        { "x=b", "No error", 0 },
        { "keys=a:junk", "No error", 0 },
        { "keys=a:size=64", "No error", 0 },
        { "keys=a.execname", "Invalid field modifier", 12 },
        { "keys=array", "No error", 0 },
        { "keys=array.hex", "No error", 0 },
        { "keys=a:vals=array", "No error", 0 },
        { "keys=odd", "No error", 0 },
        { "keys=a.", "Invalid field modifier", 0 },
        { "keys=a,", "Couldn't find field", 0 },
        { "keys=a::pause", "No error", 0 },
    };
    struct hist_error error;
    struct hist *hist;
    long before;

    world_start = made("keys=a:ts0=common_timestamp.usecs");
    before = trace_host_blocks();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int err = hist_parse(&trace_host, rows[i].spec, fields, ARRAY_LEN(fields), &world,
                             &hist, &error);

        if (err != -EINVAL || error.column != rows[i].column)
            unit_note("%s: %s at %u", rows[i].spec, hist_error_text(error.id),
                      error.column);
        CHECK_EQ(err, -EINVAL);
        CHECK_EQ(error.err, -EINVAL);
        CHECK_STR(hist_error_text(error.id), rows[i].error);
        CHECK_EQ(error.column, rows[i].column);
    }
    trace_host_fail_after(1);
    CHECK_EQ(hist_parse(&trace_host, "keys=a", fields, 1, NULL, &hist, &error), -ENOMEM);
    CHECK_EQ(trace_host_blocks(), before);
    CHECK(!hist_is_read(world_start));
    CHECK_EQ(world_lat.users, 0);
    hist_free(&trace_host, world_start);
    world_start = NULL;
}

UNIT_TEST(nothing_to_show)
{
    struct hist_error error;
    struct hist *hist;

    CHECK_EQ(hist_parse(&trace_host, "keys=a:nohitcount", fields, 1, NULL, &hist, &error),
             -ENOENT);
    CHECK_EQ(error.err, -ENOENT);
    CHECK_STR(hist_error_text(error.id),
              "Non-hitcount value is required for 'nohitcount'");
    CHECK_EQ(error.column, 0);
}

UNIT_TEST(hits_are_counted_by_key)
{
    struct hist *hist = made("keys=a:vals=b");

    for (int i = 0; i < 6; i++)
        add(hist, i < 3 ? 5 : (uint32_t)i, i, "");
    add(hist, 3, 1, "");
    CHECK_STR(shown(hist),
              "{ a:          4 } hitcount:          1  b:          4\n"
              "{ a:          3 } hitcount:          2  b:          4\n"
              "{ a:          5 } hitcount:          4  b:          8\n" TOTALS("7", "3"));
    hist_free(&trace_host, hist);
}

#define BLANKS43 "                                           "

UNIT_TEST(keys_are_shown_by_their_modifiers)
{
    static const char *const rows[][2] = {
        { "keys=a.hex", "{ a: 12 } hitcount:          1\n" },
        { "keys=a.log2", "{ a: ~ 2^5  } hitcount:          1\n" },
        { "keys=a.buckets=8", "{ a: ~ 16-23 } hitcount:          1\n" },
        { "keys=ip.sym",
          "{ ip: [ffffffff80001012] fn" BLANKS43 " } hitcount:          1\n" },
        { "keys=ip.sym-offset",
          "{ ip: [ffffffff80001012] fn+0x12/0x90" BLANKS43 " } hitcount:          1\n" },
        { "keys=common_pid.execname",
          "{ common_pid: init            [         7] } hitcount:          1\n" },
        { "keys=s,cpu", "{ s: text                                              , "
                        "common_cpu:          2 } hitcount:          1\n" },
        { "keys=s.hex", "{ s: 74786574 } hitcount:          1\n" },
        { "keys=a.syscall",
          "{ a: unknown_syscall               [ 18] } hitcount:          1\n" },
        { "keys=a.usecs", "{ a:         18 } hitcount:          1\n" },
        { "keys=comm", "{ comm: init                                               } "
                       "hitcount:          1\n" },
        { "keys=stacktrace", "{ stacktrace:\n"
                             "         fn+0x4/0x90\n"
                             "         fn+0x8/0x90\n"
                             "} hitcount:          1\n" },
        { "keys=a:vals=a.hex:nohitcount", "{ a:         18 }  a:         12\n" },
        { "keys=a:vals=hitcount.percent:nohitcount",
          "{ a:         18 }  hitcount (%): 100.00\n" },
        { "keys=s.usecs", "{ s: text                                               } "
                          "hitcount:          1\n" },
        { "keys=s.syscall",
          "{ s: unknown_syscall               [1954047348] } hitcount:          1\n" },
        { "keys=common_timestamp",
          "{ common_timestamp:       5600 } hitcount:          1\n" },
        { "keys=common_timestamp.buckets=1000",
          "{ common_timestamp: ~ 5000-5999 } hitcount:          1\n" },
        { "keys=common_timestamp.usecs",
          "{ common_timestamp:          5 } hitcount:          1\n" },
        { "keys=a:vals=common_timestamp.usecs,common_timestamp",
          "{ a:         18 } hitcount:          1  common_timestamp:          5"
          "  common_timestamp:          5\n" },
        { "keys=a:vals=a,a.hex,a.max",
          "{ a:         18 } hitcount:          1"
          "  a:         18  a:         12  a:         18\n" },
    };
    char want[512];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct hist *hist = made(rows[i][0]);

        add(hist, 18, -5, "text");
        snprintf(want, sizeof(want), "%s" TOTALS("1", "1"), rows[i][1]);
        CHECK_STR(shown(hist), want);
        CHECK(hist_wants_stack(hist) == !strcmp(rows[i][0], "keys=stacktrace"));
        hist_free(&trace_host, hist);
    }
}

UNIT_TEST(shares_in_all_entries)
{
    struct hist *hist = made("keys=a:vals=hitcount.percent,b.graph");

    add(hist, 1, 5, "x");
    add(hist, 2, 10, "x");
    add(hist, 2, 10, "x");
    CHECK_STR(shown(hist), "{ a:          1 } hitcount:          1  hitcount (%):  33.33"
                           "  b: #####               \n"
                           "{ a:          2 } hitcount:          2  hitcount (%):  66.66"
                           "  b: ####################\n" TOTALS("3", "2"));
    hist_free(&trace_host, hist);
    hist = made("keys=a:vals=b.percent");
    add(hist, 1, -1, "x");
    add(hist, 2, 0, "x");
    CHECK(strstr(shown(hist), "b (%): 100.00"));
    CHECK(strstr(shown(hist), "b (%):   0.00"));
    hist_free(&trace_host, hist);
}

/* Sums wrap at 64 bits: that of all entries may be less than that of one, and 0. */
UNIT_TEST(shares_above_the_whole)
{
    static const int32_t others[] = { 1, 5, 7, 105 };

    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct hist *hist = made("keys=a:vals=b.percent");

        add(hist, 1, -5, "x");
        add(hist, 2, others[i], "x");
        CHECK(
            strstr(shown(hist), "{ a:          1 } hitcount:          1  b (%): 100.00"));
        CHECK(i == 0 || strstr(shown(hist), "{ a:          2 } hitcount:          1"
                                            "  b (%): 100.00"));
        hist_free(&trace_host, hist);
    }
}

/* The unit of this clock is not known, so its times are not converted to microseconds. */
UNIT_TEST(times_of_other_clocks_are_as_they_are)
{
    struct hist *hist = made("keys=common_timestamp.usecs:clock=x86-tsc");
    struct record record = { .pid = 7 };
    struct hist_hit hit = { &record, sizeof(record), 0, "init", NULL, 0, NULL };
    static const struct hist_time time = { 5600, false };

    CHECK_STR(hist_clock(hist), "x86-tsc");
    hist_add_at(hist, &hit, &time);
    CHECK_STR(shown(hist),
              "{ common_timestamp:       5600 } hitcount:          1\n" TOTALS("1", "1"));
    hist_free(&trace_host, hist);
    hist = made("keys=a:clock=x86-tsc");
    CHECK(!hist_clock(hist));
    hist_free(&trace_host, hist);
}

UNIT_TEST(powers_of_two)
{
    static const uint32_t rows[][2] = {
        { 0, 0 }, { 1, 0 },     { 2, 1 },     { 3, 2 },           { 4, 2 },
        { 5, 3 }, { 1024, 10 }, { 1025, 11 }, { UINT32_MAX, 32 },
    };
    char want[128];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct hist *hist = made("keys=a.log2");

        add(hist, rows[i][0], 0, "");
        snprintf(want, sizeof(want),
                 "{ a: ~ 2^%-2u } hitcount:          1\n" TOTALS("1", "1"), rows[i][1]);
        CHECK_STR(shown(hist), want);
        hist_free(&trace_host, hist);
    }
}

UNIT_TEST(least_and_greatest)
{
    struct hist *hist = made("keys=s:vals=b.min,b.max");
    char want[256];

    add(hist, 7, 3, "x");
    add(hist, 9, -2, "x");
    add(hist, 8, 1, "x");
    snprintf(
        want, sizeof(want),
        "{ s: %-50s } hitcount:          3  b: %10llu  b:          3\n" TOTALS("3", "1"),
        "x", -2ull);
    CHECK_STR(shown(hist), want);
    hist_free(&trace_host, hist);
}

static void check_order(const char *spec, const char *keys)
{
    struct hist *hist = made(spec);
    static uint32_t numbers[HIST_SIZE_DEFAULT];
    char line[256], got[64] = "";
    size_t count;

    add(hist, 1, 5, "d");
    add(hist, 2, -9, "c");
    add(hist, 3, 5, "b");
    add(hist, 4, 2, "a");
    add(hist, 4, 2, "a");
    count = hist_sorted(hist, numbers);
    for (size_t i = 0; i < count; i++) {
        hist_print_entry(hist, numbers[i], NULL, line, sizeof(line));
        strncat(got, strstr(line, "s: ") + 3, 1);
    }
    CHECK_STR(got, keys);
    hist_free(&trace_host, hist);
}

UNIT_TEST(the_order_of_entries)
{
    check_order("keys=s", "dcba");
    check_order("keys=s:sort=hitcount.descending", "adcb");
    check_order("keys=s:sort=s", "abcd");
    check_order("keys=s:sort=s.descending", "dcba");
    check_order("keys=s:vals=b:sort=b", "cadb");
    check_order("keys=s:vals=b:sort=b.descending,s", "bdac");
    check_order("keys=s,b:sort=b,s.descending", "cadb");
}

UNIT_TEST(a_full_table_counts_what_it_drops)
{
    struct hist *hist = made("keys=a:size=128");
    char totals[128];

    for (uint32_t i = 0; i < 300; i++)
        add(hist, i, 0, "");
    for (uint32_t i = 0; i < 128; i++)
        add(hist, i, 0, "");
    hist_print_totals(hist, totals, sizeof(totals));
    CHECK_STR(totals, "\nTotals:\n    Hits: 256\n    Entries: 128\n    Dropped: 172\n");
    hist_clear(hist);
    add(hist, 999, 0, "");
    CHECK_STR(shown(hist), "{ a:        999 } hitcount:          1\n" TOTALS("1", "1"));
    hist_pause(hist, true);
    add(hist, 999, 0, "");
    CHECK_STR(shown(hist), "{ a:        999 } hitcount:          1\n" TOTALS("1", "1"));
    hist_free(&trace_host, hist);
}

UNIT_TEST(strings_that_are_too_long_are_cut)
{
    struct hist *hist = made("keys=s");
    char text[90];

    memset(text, 'x', sizeof(text));
    text[89] = '\0';
    add(hist, 0, 0, text);
    text[HIST_STRING_MAX - 1] = '\0';
    add(hist, 0, 0, text);
    CHECK(strstr(shown(hist), "hitcount:          2"));
    hist_free(&trace_host, hist);
}

UNIT_TEST(histograms_of_one_name_share_a_table)
{
    struct hist *first = made("name=n:keys=a:vals=b"), *second, *other;

    add(first, 1, 10, "");
    second = made("name=n:keys=a:vals=b:pause");
    CHECK(!hist_share(&trace_host, second, first));
    add(second, 2, 5, "");
    hist_pause(second, false);
    add(second, 2, 5, "");
    CHECK_STR(shown(first),
              "{ a:          1 } hitcount:          1  b:         10\n"
              "{ a:          2 } hitcount:          1  b:          5\n" TOTALS("2", "2"));
    hist_hold(first, true);
    add(second, 2, 5, "");
    hist_clear(second);
    hist_hold(first, false);
    add(first, 3, 1, "");
    hist_free(&trace_host, first);
    CHECK_STR(shown(second),
              "{ a:          3 } hitcount:          1  b:          1\n" TOTALS("1", "1"));
    other = made("name=n:keys=a:vals=a");
    CHECK_EQ(hist_share(&trace_host, other, second), -EINVAL);
    hist_free(&trace_host, other);
    hist_free(&trace_host, second);
    CHECK_STR(hist_name(other = made("keys=a:name=x")), "x");
    CHECK_EQ(hist_value_column("keys=a:name=x", "name="), strlen("hist:keys=a:name="));
    hist_free(&trace_host, other);
}

/* The field that save() keeps is a number of one event, and a text of the other one. */
UNIT_TEST(a_text_is_not_saved_in_the_room_of_a_number)
{
    static const char line[] = "name=n:keys=a:x=a:onchange($x).save(b)";
    const struct filter_field others[] = { fields[0],
                                           { "b", 24, 4, false, FILTER_STRING } };
    struct hist *number = made(line), *text;
    struct hist_error error;

    CHECK(!hist_parse(&trace_host, line, others, 2, NULL, &text, &error));
    CHECK_EQ(hist_share(&trace_host, text, number), -EINVAL);
    hist_free(&trace_host, text);
    hist_free(&trace_host, number);
}

/* Key 1 starts twice, and ends twice; key 2 only ends; key 3 only starts. */
UNIT_TEST(the_time_between_two_events)
{
    struct hist *end;

    world_start = made("keys=a:ts0=common_timestamp.usecs");
    end = made("keys=a:vals=$d:d=common_timestamp.usecs-$ts0,half=$d/2"
               ":onmatch(k.start).lat($half,s):onmatch(k.start).trace(lat,b,k.end.s)");
    emitted[0] = '\0';
    add_at(world_start, 1000000, 1, 0, "");
    add_at(world_start, 2000000, 1, 0, "");
    add_at(world_start, 2000000, 3, 0, "");
    add_at(end, 6000000, 2, 0, "two");
    add_at(end, 6000000, 1, 9, "one");
    add_at(end, 7000000, 1, 9, "again");
    CHECK_STR(emitted, "lat 2000 one\nlat 9 one\n");
    CHECK_STR(shown(end), "{ a:          1 } hitcount:          1  d:       4000\n"
                          "\nTotals:\n    Hits: 1\n    Entries: 1\n    Dropped: 0\n"
                          "    Unmatched: 2\n");
    CHECK_STR(shown(world_start), "{ a:          3 } hitcount:          1\n"
                                  "{ a:          1 } hitcount:          2\n"
                                  "\nTotals:\n    Hits: 3\n    Entries: 2\n"
                                  "    Dropped: 0\n    Unread: 2\n");
    hist_clear(end);
    hist_clear(world_start);
    CHECK(!strcmp(shown(end), TOTALS("0", "0")) &&
          !strcmp(shown(world_start), TOTALS("0", "0")));
    CHECK(hist_is_read(world_start) && !hist_is_read(end));
    CHECK_EQ(world_lat.users, 2);
    hist_free(&trace_host, end);
    CHECK(!hist_is_read(world_start));
    CHECK_EQ(world_lat.users, 0);
    hist_free(&trace_host, world_start);
    world_start = NULL;
}

UNIT_TEST(what_is_saved_at_the_greatest_value)
{
    struct hist *hist;

    world_start = made("keys=a");
    hist = made("keys=$k:k=a:x=b*10+1:onmax($x).save(s,b):onchange($x).trace(lat,$x,s)");
    emitted[0] = '\0';
    add(hist, 1, 4, "four");
    add(hist, 1, 5, "five");
    add(hist, 1, 5, "again");
    add(hist, 1, 2, "two");
    CHECK_STR(emitted, "lat 41 four\nlat 51 five\nlat 21 two\n");
    CHECK_STR(shown(hist), "{ a:          1 } hitcount:          4\n"
                           "\tmax:         51  s: five                              b:"
                           "          5\n\tchanged:         21\n" TOTALS("4", "1"));
    hist_free(&trace_host, hist);
    hist_free(&trace_host, world_start);
    world_start = NULL;
}

UNIT_TEST(requests_and_which_histogram_is_meant)
{
    struct hist *hist = made("keys=a:vals=b:sort=b"), *other;
    static const struct {
        const char *spec;
        bool same;
        enum hist_request request;
    } rows[] = {
        { "keys=a:vals=b:sort=b:pause", true, HIST_PAUSE },
        { "keys=a:vals=b:sort=b:cont", true, HIST_CONTINUE },
        { "keys=a:vals=b:sort=b:continue", true, HIST_CONTINUE },
        { "keys=a:vals=b:sort=b:clear:size=128", true, HIST_CLEAR },
        { "keys=a:vals=b:sort=b:clear:pause", true, HIST_PAUSE },
        { "keys=a:vals=b", false, HIST_MAKE },
        { "keys=a.hex:vals=b:sort=b", false, HIST_MAKE },
        { "keys=b:vals=b:sort=b", false, HIST_MAKE },
        { "keys=a:vals=b:sort=b.descending", false, HIST_MAKE },
        { "keys=a:vals=b:sort=b:name=x", false, HIST_MAKE },
        { "keys=a,b:vals=b:sort=b", false, HIST_MAKE },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        other = made(rows[i].spec);
        if (hist_is_same(hist, other) != rows[i].same)
            unit_note("%s", rows[i].spec);
        CHECK(hist_is_same(hist, other) == rows[i].same);
        CHECK(hist_request(other) == rows[i].request);
        CHECK(hist_needs_another(other) == (strstr(rows[i].spec, ":c") != NULL));
        hist_free(&trace_host, other);
    }
    hist_free(&trace_host, hist);
}

/* ---- interrupts between two instructions ---- */

/* A try takes some thousand traps, so the interrupt comes at every 97th instruction only.
 * Making an entry takes some hundred instructions, so a try always interrupts that.
 */
#define STRIDE 97

#define TRAP_FLAG 0x100

/* From a SIGUSR1 until `stepping` is false, the thread gets a SIGTRAP after each
 * instruction. At step number `interrupt_at` the signal handler adds a hit, as an NMI
 * would.
 */
static struct hist *stepped;
static bool stepping;
static unsigned steps, interrupt_at;

static void step(int signal, siginfo_t *info UNUSED, void *context)
{
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

    if (signal == SIGTRAP && ++steps == interrupt_at)
        add(stepped, 7, 3, "");
    *flags = stepping ? *flags | TRAP_FLAG : *flags & ~TRAP_FLAG;
}

static void add_in_steps(void)
{
    steps = 0;
    stepping = true;
    raise(SIGUSR1);
    add(stepped, 7, 2, "");
    stepping = false;
}

UNIT_TEST(a_hit_in_the_middle_of_another_finds_the_same_entry)
{
    struct sigaction action = { .sa_sigaction = step, .sa_flags = SA_SIGINFO };
    unsigned all = 1;

    CHECK_EQ(sigaction(SIGTRAP, &action, NULL), 0);
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    stepped = made("keys=a,b.buckets=100:vals=b,b.max:size=128");
    for (interrupt_at = 1; interrupt_at <= all; interrupt_at += STRIDE) {
        const char *text;

        hist_clear(stepped);
        add_in_steps();
        all = steps;
        if (steps < interrupt_at)
            break;
        text = shown(stepped);
        if (strcmp(text, "{ a:          7, b: ~ 0-99 } hitcount:          2"
                         "  b:          5  b:          3\n" TOTALS("2", "1")) != 0) {
            unit_note("interrupted at %u of %u", interrupt_at, all);
            CHECK_STR(text, "both in one entry");
            break;
        }
    }
    CHECK(all > 100);
    hist_free(&trace_host, stepped);
}

/* ---- from everywhere at once ---- */

enum { THREADS = 4, ROUNDS = 20000, KEYS = 100 };

static struct hist *crowded;
static volatile sig_atomic_t by_signals;

/* interrupt - add a hit in a signal handler. Like an NMI, a signal may come between any
 * two instructions.
 */
static void interrupt(int signal UNUSED)
{
    add(crowded, (uint32_t)(by_signals % KEYS), 1, "");
    by_signals = by_signals + 1;
}

static void *writer(void *arg)
{
    sigset_t none;

    sigemptyset(&none);
    sigaddset(&none, SIGALRM);
    if (arg) /* only the first thread takes the signals */
        pthread_sigmask(SIG_BLOCK, &none, NULL);
    for (uint32_t i = 0; i < ROUNDS; i++)
        add(crowded, (i * 7 + (uint32_t)(uintptr_t)arg) % KEYS, 1, "");
    return NULL;
}

UNIT_TEST(hits_from_threads_and_interrupts_are_all_counted)
{
    struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { 0 };
    struct sigaction action = { .sa_handler = interrupt };
    pthread_t threads[THREADS];
    char totals[128], want[128];
    static uint32_t numbers[128];
    uint64_t sum = 0, hits_wanted = THREADS * ROUNDS;
    size_t count;

    crowded = made("keys=a:vals=b:size=128");
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (uintptr_t i = 1; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, writer, (void *)i), 0);
    writer(NULL);
    for (; by_signals < 100; hits_wanted++)
        add(crowded, (uint32_t)(hits_wanted % KEYS), 1, "");
    for (uintptr_t i = 1; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);

    hist_print_totals(crowded, totals, sizeof(totals));
    hits_wanted += (uint64_t)by_signals;
    snprintf(want, sizeof(want),
             "\nTotals:\n    Hits: %llu\n    Entries: %d\n    Dropped: 0\n",
             (unsigned long long)hits_wanted, KEYS);
    CHECK_STR(totals, want);
    count = hist_sorted(crowded, numbers);
    CHECK_EQ(count, KEYS);
    for (size_t i = 0; i < count; i++) {
        unsigned long long hits, values;
        unsigned key;
        char line[128];

        hist_print_entry(crowded, numbers[i], NULL, line, sizeof(line));
        CHECK_EQ(sscanf(line, "{ a: %u } hitcount: %llu b: %llu", &key, &hits, &values),
                 3);
        CHECK_EQ(hits, values);
        sum += hits;
    }
    CHECK_EQ(sum, hits_wanted);
    hist_free(&trace_host, crowded);
    CHECK_EQ(trace_host_blocks(), 0);
}

UNIT_TESTS()
