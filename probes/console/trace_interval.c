/* trace_interval.c - writes the lines of a question about the time between two places. */
#include "probes/console/trace_interval.h"
#include "kernel/base/compiler.h"
#include "probes/trace/language/fetch.h"

#include <stdio.h>
#include <string.h>

#define STARTS_MAX 8192 /* entries: starts without an end so far have one each */

/* Calls @fn for each field of a definition, "p:GROUP/EVENT PLACE NAME=EXPRESSION:TYPE ...",
 * and for what the question needs of its place.
 */
static void each_field(const struct trace_line *line, const char *definition,
                       void (*fn)(const char *name, size_t len, const char *type,
                                  struct seq *out),
                       struct seq *out)
{
    const char *p = strchr(definition, ' ');
    const char *place = line->is_return ? "__probe_func" : "__probe_ip",
               *caller = line->is_return ? "__probe_ret_ip" : NULL;
    bool by_func = false, by_caller = false;

    for (p = p ? strchr(p + 1, ' ') : NULL; p; p = strchr(p + 1, ' ')) {
        size_t len = strcspn(p + 1, " ");
        const char *equals = memchr(p + 1, '=', len), *type = p + 1 + len;

        while (type > p && *type != ':' && *type != ')')
            type--;
        if (equals)
            fn(p + 1, (size_t)(equals - p - 1), *type == ':' ? type + 1 : "u64", out);
    }
    for (unsigned i = 0; i < line->answer_count; i++)
        for (unsigned j = 0; j < line->answer[i].key_count; j++) {
            by_func |= !strcmp(line->answer[i].key[j], "func");
            by_caller |= caller && !strcmp(line->answer[i].key[j], "caller");
        }
    if (by_func)
        fn(place, strlen(place), "u64", out);
    if (by_caller)
        fn(caller, strlen(caller), "u64", out);
}

/* synth_field - print "; TYPE NAME". A number that is shown in another way stays one; the
 * tracer refuses an array.
 */
static void synth_field(const char *name, size_t len, const char *type, struct seq *out)
{
    const struct fetch_type *found = fetch_type_find(type, strcspn(type, " "));

    if (found && found->kind == FETCH_STRING)
        seq_printf(out, "; char %.*s[]", (int)len, name);
    else
        seq_printf(out, "; %.*s %.*s", (int)strcspn(found ? found->field : type, " "),
                   found ? found->field : type, (int)len, name);
}

void trace_interval_synth(const struct trace_line *line, const char *name,
                          const char *definition, struct seq *out)
{
    seq_printf(out, "%s u64 ns", name);
    each_field(line, definition, synth_field, out);
}

static void passed_field(const char *name, size_t len, const char *type UNUSED,
                         struct seq *out)
{
    seq_printf(out, ",%.*s", (int)len, name);
}

static void interval_hist(const char *key, const char *variable, const char *clock,
                          bool paused, struct seq *out)
{
    seq_printf(out, "hist:keys=%s:%s:size=%u:clock=%s%s", key, variable, STARTS_MAX,
               clock, paused ? ":pause" : "");
}

void trace_interval_start(const struct trace_line *line, const char *clock, bool paused,
                          struct seq *out)
{
    char key[TRACE_WORD_MAX];

    trace_line_match(line, false, key);
    interval_hist(key, "start=common_timestamp", clock, paused, out);
}

void trace_interval_end(const struct trace_line *line, const char *group,
                        const char *name, const char *definition, const char *clock,
                        bool paused, struct seq *out)
{
    char key[TRACE_WORD_MAX];

    trace_line_match(line, true, key);
    interval_hist(key, "ns=common_timestamp-$start", clock, paused, out);
    seq_printf(out, ":onmatch(%s.%s" TRACE_FROM ").trace(%s,$ns", group, name, name);
    each_field(line, definition, passed_field, out);
    seq_puts(out, ")");
}
