/* test_trigger.c - tests of probes/trace/trigger: a line becomes a trigger or is refused,
 * and a trigger is shown as a line.
 */
#include "probes/trace/language/trigger.h"

#include "tests/unit/trace_host.h"
#include "tests/unit/unit.h"

static struct trigger *parsed(const char *line)
{
    struct trigger *trigger;
    int err = trigger_parse(&trace_host, line, &trigger);

    if (err)
        unit_note("%s: %d", line, err);
    CHECK_EQ(err, 0);
    return trigger;
}

UNIT_TEST(lines_and_how_they_are_listed)
{
    static const char *const rows[][2] = {
        { "traceoff", "traceoff:unlimited" },
        { " traceon \n", "traceon:unlimited" },
        { "traceon:5", "traceon:count=5" },
        { "traceon: 0x10", "traceon:count=16" },
        { "traceon:", "traceon:unlimited" },
        { "traceoff if a == 1", "traceoff:unlimited if a == 1" },
        { "stacktrace:3 if  a == 1 && b", "stacktrace:count=3 if  a == 1 && b" },
        { "snapshot", "snapshot:unlimited" },
        { "enable_event:kprobes:ev2", "enable_event:kprobes:ev2:unlimited" },
        { "disable_event:g:e:2 if a", "disable_event:g:e:count=2 if a" },
        { "traceoff:18446744073709551615", "traceoff:unlimited" },
        { "traceoff:9223372036854775808", "traceoff:count=-9223372036854775808" },
        { "enable_hist:g:e", "enable_hist:g:e:unlimited" },
        { "set_wprobe:w:field", "set_wprobe:w:field+0:unlimited" },
        { "set_wprobe:w:f+8:2 if a == 1", "set_wprobe:w:f+8:count=2 if a == 1" },
        { "set_wprobe:w:f-0x10", "set_wprobe:w:f-16:unlimited" },
        { "set_wprobe:w:f+0:count=3", "set_wprobe:w:f+0:count=3" },
        { "clear_wprobe:w", "clear_wprobe:w:unlimited" },
        { "clear_wprobe:w:unlimited", "clear_wprobe:w:unlimited" },
        { "clear_wprobe:w:7 if a", "clear_wprobe:w:count=7 if a" },
        { "clear_wprobe:w:f+4:unlimited", "clear_wprobe:w:f+4:unlimited" },
    };
    char text[128];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trigger *trigger = parsed(rows[i][0]);

        CHECK(trigger_print(trigger, text, sizeof(text)) == strlen(text));
        CHECK_STR(text, rows[i][1]);
        CHECK(!trigger->remove);
        trigger_free(&trace_host, trigger);
    }
}

UNIT_TEST(lines_that_are_refused)
{
    static const char *const rows[] = {
        "",
        "\n",
        "dump",
        "traceoff+1",
        "traceon:5x",
        "traceon:x",
        "traceon 5 a == 1",
        "traceoff if",
        "traceoff if ",
        "traceoff ifa == 1",
        "traceoff a == 1",
        "enable_event",
        "enable_event:",
        "enable_event:kprobes",
        "enable_event::ev",
        "enable_event:kprobes:",
        "enable_event:kprobes:ev:x",
        "set_wprobe",
        "set_wprobe:",
        "set_wprobe:w",
        "set_wprobe:w:3",
        "set_wprobe:w:f+x",
        "set_wprobe:w:+4",
        "set_wprobe:w:f:x",
        "clear_wprobe",
        "clear_wprobe:w:",
        "hist",
        "hist:",
        "hist if a == 1",
    };
    struct trigger *trigger;
    long before = trace_host_blocks();

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int err = trigger_parse(&trace_host, rows[i], &trigger);

        if (!err && trigger->kind == TRIGGER_HIST && trigger->spec[0] == 'i')
            err = -EINVAL; /* hist_parse() would refuse "if" */
        else if (!err)
            unit_note("'%s' is accepted", rows[i]);
        CHECK_EQ(err, -EINVAL);
        if (trigger)
            trigger_free(&trace_host, trigger);
    }
    CHECK_EQ(trace_host_blocks(), before);
    trace_host_fail_after(1);
    CHECK_EQ(trigger_parse(&trace_host, "traceon", &trigger), -ENOMEM);
}

/* As on Linux, a line that removes a trigger may have any text in place of a filter. Only
 * for a histogram the filter is read: it says which histogram is removed.
 */
UNIT_TEST(a_removal_reads_no_filter)
{
    static const char *const rows[] = {
        "!traceoff",          "!traceoff if",          "!traceoff if nosuch",
        "!stacktrace a == 1", "!enable_event:g:e ifa",
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trigger *trigger = parsed(rows[i]);

        CHECK(trigger->remove && !trigger->filter);
        trigger_free(&trace_host, trigger);
    }
}

UNIT_TEST(histograms_have_a_line_of_their_own)
{
    struct trigger *trigger = parsed("hist:keys=a,b:vals=c:sort=c if a > 1 && s ~ \"x\"");

    CHECK(trigger->kind == TRIGGER_HIST);
    CHECK_STR(trigger->spec, "keys=a,b:vals=c:sort=c");
    CHECK_STR(trigger->filter, "a > 1 && s ~ \"x\"");
    trigger_free(&trace_host, trigger);
    trigger = parsed("hist:keys=a if, b \tif  a == 1");
    CHECK_STR(trigger->spec, "keys=a if, b");
    CHECK_STR(trigger->filter, " a == 1");
    trigger_free(&trace_host, trigger);
    trigger = parsed("!hist:keys=a");
    CHECK(trigger->remove);
    CHECK(!trigger->filter);
    trigger_free(&trace_host, trigger);
}

static void check_same(const char *a, const char *b, bool same)
{
    struct trigger *one = parsed(a), *two = parsed(b);

    if (trigger_is_same(one, two) != same)
        unit_note("%s, %s", a, b);
    CHECK(trigger_is_same(one, two) == same);
    CHECK(trigger_is_same(two, one) == same);
    trigger_free(&trace_host, one);
    trigger_free(&trace_host, two);
}

UNIT_TEST(which_triggers_exclude_each_other)
{
    check_same("traceon", "traceon:5 if a", true);
    check_same("traceon", "traceoff", true);
    check_same("traceoff", "!traceoff", true);
    check_same("traceon", "stacktrace", false);
    check_same("stacktrace", "stacktrace:1", true);
    check_same("snapshot", "stacktrace", false);
    check_same("enable_event:g:e", "enable_event:g:e:1", true);
    check_same("enable_event:g:e", "enable_event:g:f", false);
    check_same("enable_event:g:e", "disable_event:g:e", true);
    check_same("enable_event:g:e", "disable_event:g:f", false);
    check_same("enable_event:g:e", "traceon", false);
    check_same("set_wprobe:w:f", "set_wprobe:w:g+4:1", true);
    check_same("set_wprobe:w:f", "set_wprobe:v:f", false);
    check_same("set_wprobe:w:f", "clear_wprobe:w:f", false);
    check_same("hist:keys=a", "hist:keys=a", false);
}

UNIT_TEST(a_trigger_acts_as_often_as_it_may)
{
    struct trigger *trigger = parsed("traceon:2");

    CHECK(trigger_take(trigger));
    CHECK(trigger_take(trigger));
    CHECK(!trigger_take(trigger));
    CHECK(!trigger_take(trigger));
    CHECK_EQ(trigger->count, 0);
    trigger_free(&trace_host, trigger);
    trigger = parsed("traceon");
    for (int i = 0; i < 5; i++)
        CHECK(trigger_take(trigger));
    trigger_free(&trace_host, trigger);
    trigger = parsed("traceon:0");
    CHECK(!trigger_take(trigger));
    trigger_free(&trace_host, trigger);
    trigger = parsed("traceon:9223372036854775808");
    CHECK_EQ(trigger->count, INT64_MIN);
    CHECK(trigger_take(trigger));
    CHECK_EQ(trigger->count, INT64_MAX);
    trigger_free(&trace_host, trigger);
}

UNIT_TESTS()
