/* trace_command.c - the console's `trace`: reads a question of one line, and prints the
 * answer as a table.
 *
 * It uses only what the files of the tracer offer: an event in the group `trace`, or the
 * event of a marker, and a filter or a histogram. -n prints the lines that would be
 * written to the files. -p prints how the question was understood: its parts, and each
 * place with the names that the question may use there.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/params.h"
#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "kernel/time/sample.h"
#include "probes/console/commands.h"
#include "probes/console/place.h"
#include "probes/console/place_line.h"
#include "probes/console/trace_graph.h"
#include "probes/console/trace_interval.h"
#include "probes/console/trace_table.h"
#include "probes/core/life.h"
#include "probes/jump/platform_jump.h"
#include "probes/many/walk.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/clocks.h"
#include "probes/trace/files/files.h"
#include "probes/trace/language/def_mark.h"
#include "probes/trace/language/hist_parts.h"
#include "probes/trace/language/synth.h"
#include "probes/trace/live/live.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP "trace"
#define LOOK_NS UINT64_C(100000000)
#define SHOW_NS UINT64_C(1000000000)
#define ROWS_MOST 100 /* on a terminal, whose line is slow, without `top N` */

struct session {
    struct shell *sh;
    struct trace_line line;
    char text[TRACE_LINE_MAX];   /* the question, as typed */
    char filter[TRACE_LINE_MAX]; /* its condition; that of @line may ask for more */
    bool only_print;             /* -n */
    bool only_parts;             /* -p */
    bool watch;                  /* -w */
    uint64_t for_ns;             /* 0: until Ctrl-C, or until the command ends */
    unsigned hz_at_end; /* samples in a second; fewer than @line asks for, perhaps */
    int command;        /* argv index of the command's first word; 0: none */
    const char *group;
    char event[DEF_NAME_MAX]; /* the name of the event */
    size_t defined, refused;
    bool is_pattern;                   /* the place that is being defined is one */
    size_t place_at;                   /* and where it stands in @text */
    const struct trace_line *defining; /* an event for its places is being defined */
    const char *ending;                /* of the name of that event */
    char definition[TRACE_LINE_MAX];   /* of the last place of @line */
    int err;
    uint64_t shown; /* when -w has printed last */
    uint64_t since; /* records with an earlier time are old, or printed already */
    uint64_t until; /* and those with a later time came behind the command */
    uint16_t id;    /* the number of the event */
    uint8_t *window[TRACE_ANSWERS_MAX + 2]; /* 0: what happens now is in the answer */
    struct live_event *e; /* [trace lock] NULL: deleted meanwhile; see find_again() */
};

/* ---- lines for the files ---- */

static void show_line(struct session *s, const char *file, const char *text)
{
    shell_printf(s->sh, "echo '%s' >> /sys/kernel/tracing/%s\n", text, file);
}

/* last_error - return why the last line was refused. */
static const char *last_error(int err)
{
    unsigned last = (live_errors.next + ERROR_LOG_KEPT - 1) % ERROR_LOG_KEPT;

    return live_errors.count ? live_errors.entry[last].text : err_text(err);
}

/* show_problem - print the question, and below it a caret with the problem. */
static NOINLINE int show_problem(struct session *s)
{
    shell_error(s->sh, 0, "trace: %s", s->text);
    shell_error(s->sh, 0, "       %*s^ %s", (int)s->line.at, "", s->line.problem);
    return -EINVAL;
}

static void show_problem_at(struct session *s, size_t at, const char *problem)
{
    s->line.problem = problem;
    s->line.at = at;
    show_problem(s);
}

/* show_last_error - show the newest entry of the tracer's log below the part of the question
 * that it is about: the filter, or the expression of a field.
 * Return: false: this part is not in the question as it stands there.
 */
static bool show_last_error(struct session *s)
{
    unsigned last = (live_errors.next + ERROR_LOG_KEPT - 1) % ERROR_LOG_KEPT;
    const char *whole = live_errors.entry[last].command, *found = NULL;
    const char *part = s->filter[0] ? strstr(whole, s->filter) : NULL;
    size_t column = live_errors.entry[last].column;
    char word[TRACE_WORD_MAX];

    if (part) {
        found = s->text + s->line.filter_at;
    } else if (column < strlen(whole)) {
        for (part = whole + column; part > whole && !strchr("= ", part[-1]);)
            part--;
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(part, " "), part);
        found = strstr(s->text, word);
    }
    if (!found)
        return false;
    s->line.problem = live_errors.entry[last].text;
    s->line.at = (size_t)(found - s->text) + column - (size_t)(part - whole);
    show_problem(s);
    return true;
}

static const char no_probe[] = "this place takes no probe";

/* tell_refusal - print why the line @text was refused. The texts in the tracer's log of
 * errors are those of Linux and name no place. If no probe can be there, the engine's text
 * is printed, because it tells why.
 */
static void tell_refusal(struct session *s, const char *place, uintptr_t addr,
                         const char *text, int err)
{
    struct kprobe p = { .addr = addr, .flags = KPROBE_FLAG_DISABLED };
    struct probe_reject why;
    struct place named;

    if (!place_parse(&named, place)) {
        if (register_kprobe_why(&p, &why)) {
            show_problem_at(s, s->place_at, no_probe);
            place_refused(s->sh, &named, &why);
            return;
        }
        unregister_kprobe(&p);
    }
    if (!live_errors.count || !show_last_error(s))
        shell_error(s->sh, 0, "trace: %s: %s", text, last_error(err));
}

/* print_known_at - print a place of the question, and the names that are known there. */
static void print_known_at(struct session *s, uintptr_t addr)
{
    struct param param;

    shell_printf(s->sh, "at 0x%lx", addr);
    for (unsigned i = 0; params_get(addr, i, &param); i++)
        shell_printf(s->sh, " %.*s", (int)param.name_len, param.name);
    shell_printf(s->sh, "\n");
}

/* refuse_parameter - say that @place has no parameter @bad, and which ones it has. */
static void refuse_parameter(struct session *s, const char *place, uintptr_t addr,
                             const struct trace_word *bad)
{
    bool is_result = !strcmp(bad->text, "retval");
    char why[256];
    struct param param;
    size_t len;

    if (is_result && s->defining->is_return)
        len = (size_t)scnprintf(why, sizeof(why), "%s returns nothing", place);
    else if (is_result)
        len = (size_t)scnprintf(why, sizeof(why), "only ret %s has it", place);
    else
        len = (size_t)scnprintf(why, sizeof(why), "%s has no parameter %s", place,
                                bad->text);
    for (unsigned i = 0; !is_result && params_get(addr, i, &param); i++)
        len += (size_t)scnprintf(why + len, sizeof(why) - len, "%s%.*s",
                                 i ? ", " : ": it has ", (int)param.name_len, param.name);
    show_problem_at(s, bad->at, why);
}

/* define_one - define the event for one function. @place: its name in the line */
static int define_one(struct session *s, const char *place, uintptr_t function)
{
    char event[64];
    struct trace_word bad;
    bool is_unknown, is_there = false;
    struct seq text;
    size_t len;
    int err;

    if (s->only_parts) {
        print_known_at(s, function);
        s->defined++;
        return 0;
    }
    snprintf(event, sizeof(event), GROUP "/%s%s", s->event, s->ending);
    seq_init(&text, NULL, NULL);
    err = trace_line_define(s->defining, event, place, function, &text, &bad);
    is_unknown = !s->is_pattern && !params_return(function, &len);
    if (is_unknown && (err || s->defining->all_args))
        show_problem_at(s, s->place_at, "its parameters are not known");
    else if (err == -EINVAL && !s->is_pattern)
        show_problem_at(s, bad.at, bad.problem);
    else if (err && !s->is_pattern)
        refuse_parameter(s, place, function, &bad);
    /* With -n as well: the tracer itself has to say what is refused, or there already. */
    if (!err) {
        err = live_command(seq_str(&text));
        is_there = err == -EEXIST &&
                   !strcmp(last_error(err), trace_error_text(TRACE_SAME_PROBE));
        if (is_there)
            err = 0; /* two of the places are this one */
        if (err && !s->is_pattern)
            tell_refusal(s, place, function, seq_str(&text), err);
    }
    if (!err && s->only_print && !is_there)
        show_line(s, "kprobe_events", seq_str(&text));
    if (s->defining == &s->line)
        strlcpy(s->definition, seq_str(&text), sizeof(s->definition));
    seq_free(&text);
    s->defined += !err;
    s->refused += err != 0;
    return err;
}

static bool define_function(const struct plat_symbol *function, void *arg)
{
    struct session *s = arg;
    char address[24];
    struct ksym sym;

    if (blacklist_why(function->start)) {
        s->refused++;
        return true;
    }
    snprintf(address, sizeof(address), "0x%lx", function->start);
    if (ksyms_find(function->name, &sym) || sym.start != function->start)
        define_one(s, address, function->start);
    else
        define_one(s, function->name, function->start);
    return !shell_interrupted(s->sh);
}

/* define_line - define the event for all places that the source line was compiled to. */
static int define_line(struct session *s, const char *line)
{
    char at[PLACE_TEXT_MAX];
    struct plat_symbol in;
    struct ksym sym;
    uintptr_t addr;
    size_t before = s->defined;
    int err = 0;

    for (size_t i = 0; !err && !place_line_get(line, i, &addr); i++) {
        if (plat_symbol_at(addr, &in) || ksyms_find(in.name, &sym) ||
            sym.start != in.start)
            snprintf(at, sizeof(at), "0x%lx", addr);
        else
            place_text(at, addr);
        err = define_one(s, at, addr);
    }
    if (err || s->defined != before)
        return err;
    show_problem_at(s, s->place_at, no_probe);
    return place_line_refused(s->sh, line);
}

/* define_place - define the event for @place, one of the question's. */
static int define_place(struct session *s, const char *text)
{
    char at[PLACE_TEXT_MAX], problem[TRACE_PLACES_MAX + 40];
    struct place place;
    struct probe_reject why;
    size_t before = s->defined, refused = s->refused;
    uintptr_t addr;
    int err;

    s->is_pattern = strpbrk(text, "*?[") != NULL;
    if (s->is_pattern) {
        walk_functions(text, define_function, s);
        if (s->defined != before)
            return 0;
        snprintf(problem, sizeof(problem),
                 s->refused != refused ? "no function of %s can answer this"
                                       : "no function matches %s",
                 text);
        show_problem_at(s, s->place_at, problem);
        return -ENOENT;
    }
    if (place_line_is(text))
        return define_line(s, text);
    err = place_parse(&place, text);
    if (err) {
        show_problem_at(s, s->place_at, no_probe);
        return place_no_place(s->sh, text);
    }
    err = place_find(&place, &addr, &why);
    if (err) {
        show_problem_at(s, s->place_at, no_probe);
        return place_refused(s->sh, &place, &why);
    }
    if (strchr(text, '#')) { /* the files of the tracer do not know SYM#N */
        snprintf(at, sizeof(at), "0x%lx", addr);
        text = at;
    }
    return define_one(s, text, addr);
}

static int define_places(struct session *s, const struct trace_line *line,
                         const char *ending)
{
    char text[TRACE_PLACES_MAX];
    int err = 0;

    s->defining = line;
    s->ending = ending;
    for (unsigned i = 0; !err && trace_line_place(line, i, text); i++) {
        s->place_at = line->place_at[i];
        err = define_place(s, text);
    }
    return err;
}

static const struct fetch_arg *event_field(const struct live_event *e, const char *name)
{
    for (unsigned i = 0; i < e->event.arg_count; i++)
        if (!strcmp(e->event.args[i].name, name))
            return &e->event.args[i];
    return NULL;
}

static void complete_marks(struct shell_completion *c, int index UNUSED)
{
    for (const struct live_event *e = NULL; (e = live_event_next(e)) != NULL;)
        if (!strcmp(e->group, DEF_MARK_GROUP))
            shell_offer(c, e->name);
}

/* find_mark - check that the marker has an event that is free, and that it has the fields
 * of the question. A marker's event exists already, so none is defined.
 */
static int find_mark(struct session *s)
{
    const struct live_event *e = live_event_find(s->group, s->event);
    char suggestion[SHELL_SUGGESTION_MAX], why[2 * DEF_NAME_MAX + SHELL_SUGGESTION_MAX];

    if (!e) {
        snprintf(why, sizeof(why), "no marker is called %s%s", s->event,
                 shell_suggest(suggestion, s->event, complete_marks, 1));
        show_problem_at(s, s->line.place_at[0], why);
        return -ENOENT;
    }
    if (e->armed || e->attached) {
        show_problem_at(s, s->line.place_at[0], "this marker is in use");
        return -EBUSY;
    }
    for (unsigned i = 0; i < s->line.arg_count; i++)
        if (!event_field(e, s->line.arg[i])) {
            snprintf(why, sizeof(why), "mark %s has no field %s", s->event,
                     s->line.arg[i]);
            show_problem_at(s, s->line.arg_at[i], why);
            return -EINVAL;
        }
    for (unsigned i = 0; i < s->line.answer_count; i++) {
        const struct trace_answer *answer = &s->line.answer[i];

        if (answer->value[0] &&
            event_field(e, answer->value)->type->kind == FETCH_STRING) {
            show_problem_at(s, answer->value_at, trace_no_number);
            return -EINVAL;
        }
    }
    return 0;
}

/* write_line - write a line to the file, or show it. @e: the event of a trigger; NULL: the
 * line makes a synthetic event, which -n makes as well, to check what uses it.
 */
static int write_line(struct session *s, const char *file, const struct seq *text,
                      struct live_event *e)
{
    unsigned before;
    int err;

    if (s->only_print)
        show_line(s, file, seq_str(text));
    if (s->only_print && e)
        return 0;
    before = live_errors.next;
    err = e ? live_trigger_write(e, seq_str(text)) : live_synth_command(seq_str(text));
    if (!err || (live_errors.next != before && show_last_error(s)))
        return err;
    if (err == -EINVAL && e && !s->e) /* an end, and the question names no line of it */
        show_problem_at(s, s->line.from.match_at, "the two are not of one type");
    else
        shell_error(s->sh, err, "trace: %s", seq_str(text));
    return err;
}

/* end_of - find the event of one place of an interval. NULL: there is none. */
static struct live_event *end_of(const struct session *s, const char *ending)
{
    char name[DEF_NAME_MAX];

    snprintf(name, sizeof(name), "%s%s", s->event, ending);
    return live_event_find(GROUP, name);
}

static int define_synth_of(struct session *s)
{
    struct seq text;
    int err;

    seq_init(&text, NULL, NULL);
    trace_interval_synth(&s->line, s->event, s->definition, &text);
    err = write_line(s, "synthetic_events", &text, NULL);
    seq_free(&text);
    return err;
}

/* interval_clock - return the chosen clock, if it counts nanoseconds. */
static const char *interval_clock(void)
{
    const char *name, *found = NULL;
    bool is_chosen;

    for (size_t i = 0; !found && (name = trace_clock_name(i, &is_chosen)) != NULL; i++)
        if (is_chosen)
            found = name;
    return found && !trace_clock_is_cycles() ? found : "global";
}

static int attach_end(struct session *s, const char *ending, bool is_start)
{
    char file[32 + 2 * DEF_NAME_MAX];
    bool paused = !s->only_print;
    struct seq text;
    int err;

    seq_init(&text, NULL, NULL);
    if (is_start)
        trace_interval_start(&s->line, interval_clock(), paused, &text);
    else
        trace_interval_end(&s->line, GROUP, s->event, s->definition, interval_clock(),
                           paused, &text);
    snprintf(file, sizeof(file), "events/" GROUP "/%s%s/trigger", s->event, ending);
    err = write_line(s, file, &text, end_of(s, ending));
    seq_free(&text);
    return err;
}

/* define_interval - define the events of both places, and the synthetic event that happens
 * at each end of an interval. That of the ends comes first: if both places are the same, a
 * hit ends the interval that the hit before has started.
 */
static int define_interval(struct session *s)
{
    struct trace_line *from = kzalloc(sizeof(*from));
    int err;

    if (!from)
        return -ENOMEM;
    trace_line_from(&s->line, from);
    err = define_places(s, &s->line, TRACE_TO);
    if (!err)
        err = define_places(s, from, TRACE_FROM);
    kfree(from);
    if (!err)
        err = define_synth_of(s);
    if (!err)
        err = attach_end(s, TRACE_FROM, true);
    return err ? err : attach_end(s, TRACE_TO, false);
}

static int define_all(struct session *s)
{
    return trace_line_is_interval(&s->line) ? define_interval(s)
                                            : define_places(s, &s->line, "");
}

/* attach_table - add the histogram of answer @i to the event. */
static int attach_table(struct session *s, unsigned i)
{
    char file[32 + 2 * DEF_NAME_MAX];
    struct seq text;
    int err;

    seq_init(&text, NULL, NULL);
    trace_line_trigger(&s->line, i, !s->only_print, &text);
    snprintf(file, sizeof(file), "events/%s/%s/trigger", s->group, s->event);
    err = write_line(s, file, &text, s->e);
    seq_free(&text);
    return err;
}

/* session_set_filter - set the filter of the event; with -n only to check it. */
static int session_set_filter(struct session *s)
{
    int err = live_set_filter(s->e, s->line.filter[0] ? s->line.filter : "0", false);

    if (err && !show_last_error(s))
        shell_error(s->sh, err, "trace: %s", s->line.filter);
    return err;
}

/* attach_print - set the filter of the event, and enable it. */
static int attach_print(struct session *s)
{
    char file[32 + 2 * DEF_NAME_MAX];
    int err;

    if (s->only_print) {
        snprintf(file, sizeof(file), "events/%s/%s/filter", s->group, s->event);
        if (s->line.filter[0])
            show_line(s, file, s->line.filter);
        snprintf(file, sizeof(file), "events/%s/%s/enable", s->group, s->event);
        show_line(s, file, "1");
        return 0;
    }
    err = session_set_filter(s);
    if (err)
        return err;
    err = live_switch(&s->e, 1, true);
    return err ? shell_error(s->sh, err, "trace: %s", s->text) : 0;
}

/* note_hex - note the ARGs that are printed in base 16. Those of an interval are fields of
 * its end; in the synthetic event they have no base.
 */
static void note_hex(struct session *s)
{
    const struct live_event *e =
        trace_line_is_interval(&s->line) ? end_of(s, TRACE_TO) : s->e;
    char name[TRACE_WORD_MAX];

    for (unsigned i = 0; e && i < s->line.arg_count; i++) {
        trace_line_field(&s->line, s->line.arg[i], name, sizeof(name));
        for (unsigned j = 0; j < e->event.arg_count; j++)
            if (!strcmp(e->event.args[j].name, name))
                s->line.arg_in_hex[i] = e->event.args[j].type->kind == FETCH_HEX;
    }
}

/* attach - let the event answer. */
static int attach(struct session *s)
{
    unsigned made = 0;
    char hz[12];
    int err = 0;

    snprintf(hz, sizeof(hz), "%u", s->line.hz);
    if (s->line.hz && s->only_print)
        show_line(s, "profile_hz", hz);
    s->e = live_event_find(s->group, s->event);
    note_hex(s);
    if (s->only_print && s->line.filter[0])
        err = session_set_filter(s);
    if (!err && trace_line_prints(&s->line))
        return attach_print(s);
    for (unsigned i = 0; !err && i < s->line.answer_count; i++)
        if (trace_line_hist(&s->line, i) == made) {
            err = attach_table(s, i);
            made++;
        }
    return err;
}

/* make_name - choose the first free name for the event. A marker's event has its own
 * name.
 */
static void make_name(struct session *s)
{
    unsigned number = 1;

    s->group = s->line.is_mark                    ? DEF_MARK_GROUP
               : trace_line_is_interval(&s->line) ? SYNTH_GROUP
                                                  : GROUP;
    if (s->line.is_mark) {
        strlcpy(s->event, s->line.place, sizeof(s->event));
        return;
    }
    do {
        snprintf(s->event, sizeof(s->event), "q%u", number++);
    } while (live_event_find(GROUP, s->event) || live_event_find(SYNTH_GROUP, s->event));
}

/* remove_event - take everything off @e, and delete it. */
static void remove_event(struct session *s, struct live_event *e,
                         int (*command)(const char *line), const char *deletes)
{
    char line[2 * DEF_NAME_MAX];

    if (!e)
        return;
    live_clear_hists(e);
    live_switch(&e, 1, false);
    live_set_filter(e, "0", false);
    if (!command)
        return;
    snprintf(line, sizeof(line), "%s%s", deletes, e->name);
    if (command(line))
        shell_error(s->sh, EBUSY, "trace: %s/%s stays", e->group, e->name);
}

static void remove_all(struct session *s)
{
    struct live_event *e = live_event_find(s->group, s->event), *to;

    if (!trace_line_is_interval(&s->line)) {
        remove_event(s, e, s->line.is_mark ? NULL : live_command, "-:" GROUP "/");
        return;
    }
    to = end_of(s, TRACE_TO);
    if (to)
        live_clear_hists(to); /* first: it reads the other, and lets @e happen */
    remove_event(s, e, live_synth_command, "!");
    remove_event(s, to, live_command, "-:" GROUP "/");
    remove_event(s, end_of(s, TRACE_FROM), live_command, "-:" GROUP "/");
}

/* ---- the answer ---- */

/* find_again - find the event. Other threads may delete it while the lock is not held. */
static NOINLINE struct live_event *find_again(struct session *s)
{
    s->e = live_event_find(s->group, s->event);
    if (s->e && s->e->event.id != s->id)
        s->e = NULL;
    return s->e;
}

/* next_record - find the next record of the event that is in the answer. */
static bool next_record(const struct session *s, struct merge *m, struct merged *one,
                        uint64_t *lost)
{
    while (buffer_merge_next(m, one)) {
        const struct page_event *event = &one->event;

        if (event->time < s->since || event->time > s->until)
            continue;
        *lost += one->missed;
        if (event_of(event->data, event->len, event->time) == &s->e->event)
            return true;
    }
    return false;
}

/* print_records - print the records of the event that are newer than the last printed
 * record.
 */
static void print_records(struct session *s)
{
    struct merged one;
    struct merge m;
    struct print p;
    uint64_t lost = 0;

    if (buffer_merge(&m, -1, BUFFER_LIVE, MERGE_LOOK))
        return;
    trace_printer(&p, shell_out(s->sh));
    while (next_record(s, &m, &one, &lost)) {
        s->since = one.event.time + 1;
        print_record(&p, &s->e->event, one.ring, one.event.time, one.event.data,
                     one.event.len);
    }
    buffer_merge_end(&m);
    if (lost)
        shell_printf(s->sh, "records were lost: buffer_size_kb is too small\n");
}

/* print_graph - print all records as a tree of calls. Those that began before the command
 * are not in it.
 */
static void print_graph(struct session *s)
{
    const struct fetch_arg *args = s->e->event.args;
    size_t count = 0, room = 0;
    struct graph_call *calls = NULL;
    struct merged one;
    struct merge m;
    struct print p;
    uint64_t lost = 0;

    if (buffer_merge(&m, -1, BUFFER_LIVE, MERGE_LOOK))
        return;
    while (next_record(s, &m, &one, &lost)) {
        const struct record_return *record = (const void *)one.event.data;
        const uint8_t *values = (const uint8_t *)(record + 1);
        struct graph_call call = { .func = record->func,
                                   .pid = record->head.pid,
                                   .cpu = one.ring };

        memcpy(&call.depth, values + args[0].offset, sizeof(call.depth));
        memcpy(&call.ns, values + args[1].offset, sizeof(call.ns));
        if (count == room) {
            struct graph_call *more = krealloc(calls, (2 * room + 64) * sizeof(*calls));

            if (!more)
                break;
            calls = more;
            room = 2 * room + 64;
        }
        if (one.event.time - call.ns >= s->since)
            calls[count++] = call;
    }
    buffer_merge_end(&m);
    trace_printer(&p, shell_out(s->sh));
    trace_graph_print(calls, count, &p);
    if (lost)
        shell_printf(s->sh, "calls were lost: buffer_size_kb is too small\n");
    kfree(calls);
}

/* hist_of - the histogram number @i: the newest trigger comes first. */
static NOINLINE struct hist *hist_of(const struct live_event *e, unsigned i)
{
    const struct live_attached *attached = e->attached;

    return attached && i < attached->count
               ? attached->trigger[attached->count - 1 - i]->hist
               : NULL;
}

static void print_answer(struct session *s)
{
    struct hist *view;

    trace_lock();
    if (find_again(s) && trace_line_prints(&s->line)) {
        if (s->line.is_graph)
            print_graph(s);
        else
            print_records(s);
    }
    for (unsigned i = 0; s->e && i < s->line.answer_count; i++) {
        struct hist *hist = hist_of(s->e, trace_line_hist(&s->line, i));

        s->line.answer[i].most = shell_is_read(s->sh) ? ROWS_MOST : 0;
        view = hist ? live_hist_view(hist) : NULL;
        if (view)
            trace_table_print(&s->line, i, view, shell_out(s->sh));
        live_hist_view_free(view);
    }
    trace_unlock();
    seq_pass_on(shell_out(s->sh)); /* with -w it is long until more is printed */
}

/* session_window - open the window of each answer, or close it: one store each. */
static void session_window(void *arg, bool open)
{
    struct session *s = arg;

    if (open)
        WRITE_ONCE(s->since, buffer_now());
    WRITE_ONCE(s->until, open ? UINT64_MAX : buffer_now());
    for (unsigned i = 0; i < ARRAY_LEN(s->window) && s->window[i]; i++)
        WRITE_ONCE(*s->window[i], !open);
}

/* set_rate - of `profile`: let samples come, or no more. */
static void set_rate(struct session *s, unsigned hz)
{
    int err;

    trace_lock();
    err = s->line.hz ? sample_set_hz(hz) : 0;
    trace_unlock();
    if (err)
        shell_error(s->sh, err, "trace: profile");
}

/* begin_session - make jumps of the probes, and find the windows. The optimizer's thread ends
 * its work first; else it would do it while the command runs.
 */
static void begin_session(struct session *s)
{
    unsigned n = 0;

    plat_optimize_settle();
    trace_lock();
    find_again(s);
    for (; s->e && n < s->line.answer_count && hist_of(s->e, n); n++)
        s->window[n] = hist_pause_byte(hist_of(s->e, n));
    for (unsigned at_end = 0; trace_line_is_interval(&s->line) && at_end < 2; at_end++) {
        const struct live_event *e = end_of(s, at_end ? TRACE_TO : TRACE_FROM);

        if (e && hist_of(e, 0))
            s->window[n++] = hist_pause_byte(hist_of(e, 0));
    }
    trace_unlock();
    set_rate(s, s->line.hz);
}

/* stop_session - stop counting; what was counted until now can still be printed. */
static void stop_session(struct session *s)
{
    s->hz_at_end = sample_hz();
    set_rate(s, 0);
    trace_lock();
    if (find_again(s) && trace_line_prints(&s->line))
        live_switch(&s->e, 1, false);
    for (unsigned i = 0; s->e && i < s->line.answer_count && hist_of(s->e, i); i++)
        live_hist_pause(hist_of(s->e, i), true);
    trace_unlock();
}

/* print_refused - with -n this is a remark among the lines. */
static void print_refused(struct session *s)
{
    if (s->refused)
        shell_printf(s->sh, "%s%zu functions of %s are not among them\n",
                     s->only_print ? "# " : "", s->refused,
                     s->line.is_graph ? "the kernel" : s->line.place);
}

static void print_losses_of(struct session *s, const struct live_event *e)
{
    for (unsigned i = 0; e && i < LIVE_LOSSES; i++) {
        uint64_t lost = live_lost(e, i);

        if (lost)
            shell_printf(s->sh, "%s: %lu\n", live_loss_name(i), lost);
    }
}

/* print_unmatched - print what an interval has lost at one of its places. */
static void print_unmatched(struct session *s, const char *ending, const char *text)
{
    const struct live_event *e = end_of(s, ending);
    const struct hist *hist = e ? hist_of(e, 0) : NULL;
    uint64_t count = hist ? hist_unmatched(hist) + hist_unread(hist) : 0;
    uint64_t dropped = hist ? hist_dropped(hist) : 0;

    if (count)
        shell_printf(s->sh, "%lu %s\n", count, text);
    if (dropped)
        shell_printf(s->sh, "%lu hits had no room in the table\n", dropped);
    print_losses_of(s, e);
}

static void print_losses(struct session *s)
{
    trace_lock();
    print_losses_of(s, find_again(s));
    if (trace_line_is_interval(&s->line)) {
        print_unmatched(s, TRACE_FROM, "starts had no end");
        print_unmatched(s, TRACE_TO, "ends had no start");
    }
    trace_unlock();
    if (s->line.hz && s->hz_at_end < s->line.hz)
        shell_printf(s->sh, "NMIs took too long: at last %u samples in a second\n",
                     s->hz_at_end);
    print_refused(s);
}

/* session_look - with -w: print the answer as it is now, if it is time. On a terminal each
 * page takes the place of the page before.
 */
static void session_look(void *arg)
{
    struct session *s = arg;
    size_t top[TRACE_ANSWERS_MAX], rows;

    if (!s->watch || (!trace_line_prints(&s->line) && clock_ns() - s->shown < SHOW_NS))
        return;
    s->shown = clock_ns();
    rows = trace_line_prints(&s->line) ? 0 : shell_page(s->sh) / s->line.answer_count;
    for (unsigned i = 0; i < s->line.answer_count; i++) {
        size_t *shown = &s->line.answer[i].top;

        top[i] = *shown;
        if (rows && (!*shown || *shown >= rows))
            *shown = rows - 1; /* and its head */
    }
    print_answer(s);
    for (unsigned i = 0; i < s->line.answer_count; i++)
        s->line.answer[i].top = top[i];
}

static void wait(struct session *s)
{
    uint64_t start = clock_ns();

    while (!shell_interrupted(s->sh) && (!s->for_ns || clock_ns() - start < s->for_ns)) {
        thread_sleep_ns(LOOK_NS);
        session_look(s);
    }
}

/* leave_out_own - let the question not be about this thread, which prints while it counts.
 */
static void leave_out_own(struct session *s)
{
    snprintf(s->line.filter, sizeof(s->line.filter),
             s->filter[0] ? "common_pid != %d && (%s)" : "common_pid != %d",
             thread_current()->tid, s->filter);
}

static int ask_question(struct session *s, int argc, char **argv)
{
    int err;

    strlcpy(s->filter, s->line.filter, sizeof(s->filter));
    if (s->watch)
        leave_out_own(s);
    trace_lock();
    make_name(s);
    err = s->line.is_mark ? find_mark(s) : define_all(s);
    if (err && s->line.is_mark) {
        trace_unlock();
        return err;
    }
    if (!err)
        err = attach(s);
    if (!err && s->only_print)
        print_refused(s);
    if (err || s->only_print) {
        remove_all(s);
        trace_unlock();
        return err;
    }
    s->since = buffer_now();
    s->id = s->e->event.id;
    trace_unlock();
    begin_session(s);
    if (s->command && s->watch) {
        err = shell_run_beside(s->sh, argc - s->command, argv + s->command,
                               session_window, session_look, s);
    } else if (s->command) {
        err = shell_run_around(s->sh, argc - s->command, argv + s->command,
                               session_window, s);
    } else {
        session_window(s, true);
        wait(s);
        session_window(s, false);
    }
    stop_session(s);
    if (shell_take_interrupt(s->sh) && err == -EINTR)
        err = 0;
    print_answer(s);
    print_losses(s);
    trace_lock();
    if (find_again(s))
        remove_all(s);
    else
        err = shell_error(s->sh, ENOENT, "trace: " GROUP "/%s was deleted", s->event);
    trace_unlock();
    return err;
}

static int print_parts(struct session *s)
{
    trace_line_parts(&s->line, shell_out(s->sh));
    return s->line.is_mark || s->line.is_pattern || trace_line_is_interval(&s->line)
               ? 0
               : define_all(s);
}

/* ---- words ---- */

/* take_seconds - return the time that @word says, in ns; 0: it is no number of seconds. */
static uint64_t take_seconds(const char *word)
{
    uint64_t seconds;

    if (parse_u64(word, 10, &seconds) || seconds > UINT64_MAX / SHOW_NS)
        return 0;
    return seconds * SHOW_NS;
}

/* take_profile - join the words of `profile [HZ] [by WORD]`. */
static int take_profile(int argc, char **argv, char *text, size_t size)
{
    size_t len = 0;
    int i = 0;

    for (; i < argc && strcmp(argv[i], "--") != 0 && strcmp(argv[i], "for") != 0; i++)
        len += (size_t)scnprintf(text + len, size - len, i ? " %s" : "%s", argv[i]);
    return i;
}

/* take_question - copy "QUESTION", or write out a short form and its place. Return: how
 * many words were taken; 0: there is no question.
 */
static int take_question(int argc, char **argv, char *text, size_t size)
{
    if (argc && !strcmp(argv[0], "profile"))
        return take_profile(argc, argv, text, size);
    if (argc >= 2 && !trace_line_short(argv[0], argv[1], text, size))
        return 2;
    if (!argc || !strcmp(argv[0], "--"))
        return 0;
    strlcpy(text, argv[0], size);
    return 1;
}

#define USAGE "[-w] [-n] [-p] 'QUESTION' [for SECONDS | -- COMMAND]"

static int usage(struct shell *sh)
{
    shell_error(sh, 0, "usage: trace " USAGE);
    return -EINVAL;
}

/* refuse_rest - refuse @word, which stands where nothing more can come. */
static int refuse_rest(struct shell *sh, const char *word)
{
    if (!strcmp(word, "for") || !strcmp(word, "--"))
        return usage(sh);
    shell_error(sh, 0,
                "trace: %s comes behind the question; a question of several words is "
                "written '...'",
                word);
    return -EINVAL;
}

/* parse_words - parse the options, the question, and the words behind it. */
static int parse_words(struct session *s, int argc, char **argv)
{
    struct shell *sh = s->sh;
    int i = 1, taken, err;

    for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
        char option = argv[i][1];

        if (strlen(argv[i]) != 2 || !strchr("npw", option)) {
            shell_blame_option(sh, "trace", USAGE, 1, argv + i);
            return usage(sh);
        }
        s->only_print |= option == 'n';
        s->only_parts |= option == 'p';
        s->watch |= option == 'w';
    }
    taken = take_question(argc - i, argv + i, s->text, sizeof(s->text));
    if (!taken)
        return usage(sh);
    i += taken;
    if (i + 1 < argc && !strcmp(argv[i], "for")) {
        s->for_ns = take_seconds(argv[i + 1]);
        i += 2;
        if (!s->for_ns)
            return usage(sh);
    }
    if (i + 1 < argc && !strcmp(argv[i], "--"))
        s->command = i + 1;
    else if (i < argc)
        return refuse_rest(sh, argv[i]);
    if (s->command && s->for_ns)
        return shell_error(sh, EINVAL, "trace: a command, or for SECONDS, not both");
    err = s->only_parts ? trace_line_split(&s->line, s->text)
                        : trace_line_parse(&s->line, s->text);
    if (!err && s->watch && s->line.is_graph && trace_line_prints(&s->line))
        return shell_error(sh, EINVAL, "trace: a graph is printed at its end");
    return err ? show_problem(s) : 0;
}

static int trace_run(struct shell *sh, int argc, char **argv)
{
    struct session *s = kzalloc(sizeof(*s));
    int err;

    if (!s)
        return shell_error(sh, ENOMEM, "trace");
    s->sh = sh;
    err = parse_words(s, argc, argv);
    if (!err)
        err = s->only_parts ? print_parts(s) : ask_question(s, argc, argv);
    kfree(s);
    return err;
}

/* trace_complete - offer the short commands, and the functions of which they may ask. */
static void trace_complete(struct shell_completion *c, int index)
{
    const char *word;

    for (unsigned i = 0; index == 1 && (word = trace_line_short_word(i)) != NULL; i++)
        shell_offer(c, word);
    if (index == 2)
        shell_complete_symbols(c, index);
}

const struct shell_command trace_command = {
    "trace",
    "[-w] [-n] [-p] 'QUESTION' [for SECONDS | -- COMMAND]",
    "ask what happens in functions, and get a table\n"
    "QUESTION: PLACE,... [with NAME=EXPRESSION,...] [if FILTER] "
    "{ ACTION [by KEY,...] [top N] [percent]; ... }\n"
    "          from PLACE to PLACE [by thread|cpu|ARG|ARG=ARG] ... { ... }\n"
    "PLACE:    FUNCTION, ret FUNCTION, FUNCTION+OFF, FILE:LINE, a pattern: 'vfs_*',\n"
    "          mark NAME, profile [HZ]: what the CPUs execute, HZ times a second,\n"
    "          or graph FUNCTION: all calls below it, as a tree without { ... }\n"
    "ACTION:   count, print ARG,..., hist(ARG), lhist(ARG,MIN,MAX,STEP), sum(ARG),\n"
    "          min(ARG), max(ARG), avg(ARG), stack\n"
    "KEY:      func, cpu, caller, comm, pid, or an ARG\n"
    "ARG:      a parameter's name, retval, ns (in a ret or from), a field of a marker, "
    "or\n"
    "          as in kprobe_events\n"
    "Short:    trace count 'vfs_*'   trace args FUNCTION   trace time FUNCTION\n"
    "          trace callers FUNCTION   trace profile [HZ] [by stack|func|thread]\n"
    "          trace graph FUNCTION\n"
    "It ends with COMMAND, after SECONDS, or at Ctrl-C.\n"
    "-w  show the answer while it grows\n"
    "-n  print what would be written to the files of the tracer\n"
    "-p  print the parts of the question, its places, and the names that are known there",
    trace_run,
    trace_complete,
};
