/* trace_line.c - parses one-line questions. */
#include "probes/console/trace_line.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/base/regs.h"
#include "kernel/time/sample.h"
#include "probes/trace/language/fetch_parse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROFILE_HZ 1000 /* without a HZ */

/* ---- words ---- */

struct line_scan {
    struct trace_line *line;
    const char *text, *p;
    const char *word; /* where the word begins that was taken last */
};

static int refuse_line(struct line_scan *s, const char *problem)
{
    s->line->problem = problem;
    s->line->at = (size_t)(s->p - s->text);
    return -EINVAL;
}

/* refuse_word - the same, because of the word that was taken last. */
static int refuse_word(struct line_scan *s, const char *problem)
{
    s->p = s->word;
    return refuse_line(s, problem);
}

static void scan_blanks(struct line_scan *s)
{
    s->p = skip_blanks(s->p);
}

static const char set[] = "CPUS{"; /* of a filter, which ends at a brace outside of it */

/* take_until - copy the text up to one of the characters @ends outside of parentheses,
 * without blanks at its end.
 */
static int take_until(struct line_scan *s, const char *ends, char *buf, size_t size)
{
    const char *start = s->p;
    bool in_set = false;
    int depth = 0;
    size_t len;

    s->word = start;
    for (; *s->p; s->p++) {
        in_set = in_set ? *s->p != '}' : !strncmp(s->p, set, sizeof(set) - 1);
        if (!in_set && depth <= 0 && strchr(ends, *s->p))
            break;
        depth += (*s->p == '(') - (*s->p == ')');
    }
    len = cut_blanks(start, (size_t)(s->p - start));
    if (len >= size)
        return refuse_word(s, "this is too long");
    memcpy(buf, start, len);
    buf[len] = '\0';
    scan_blanks(s);
    return 0;
}

static int take_word(struct line_scan *s, char *buf, size_t size)
{
    return take_until(s, " \t{},;", buf, size);
}

/* ---- the parts ---- */

/* need_common - let a hit record @arg. @at: where it stands in the question
 * @is_common: only if the function has such a parameter; else a field of all events is meant
 */
static int need_common(struct line_scan *s, const char *arg, const char *at,
                       bool is_common)
{
    struct trace_line *line = s->line;

    for (unsigned i = 0; i < line->arg_count; i++)
        if (!strcmp(line->arg[i], arg)) {
            line->arg_is_common[i] &= is_common;
            return 0;
        }
    if (line->arg_count == TRACE_ARGS_MAX)
        return refuse_word(s, "too many arguments");
    line->arg_is_common[line->arg_count] = is_common;
    line->arg_at[line->arg_count] = (size_t)(at - s->text);
    strlcpy(line->arg[line->arg_count++], arg, TRACE_WORD_MAX);
    return 0;
}

static int need_arg(struct line_scan *s, const char *arg, const char *at)
{
    return need_common(s, arg, at, false);
}

/* take_place - take a word that is place @i of the question. */
static int take_place(struct line_scan *s, unsigned i, char *buf, size_t size)
{
    s->line->place_at[i] = (uint16_t)(s->p - s->text);
    return take_word(s, buf, size);
}

/* more_places - append the places behind a comma. */
static int more_places(struct line_scan *s)
{
    char *place = s->line->place;
    size_t size = sizeof(s->line->place);
    unsigned count = 1;

    while (*s->p == ',') {
        size_t len = strlen(place);
        int err;

        s->p++;
        scan_blanks(s);
        if (len + 2 >= size)
            return refuse_word(s, "this is too long");
        if (s->line->is_mark)
            return refuse_line(s, "a marker is the only place of a question");
        place[len++] = ',';
        err = take_place(s, count++, place + len, size - len);
        if (err)
            return err;
        if (!place[len])
            return refuse_line(s, "a function, or a pattern, is missing");
    }
    return 0;
}

const char *trace_line_place(const struct trace_line *line, unsigned i, char *buf)
{
    const char *p = line->place;
    size_t len;

    for (; i && *p; i--) {
        p += strcspn(p, ",");
        p += *p == ',';
    }
    len = strcspn(p, ",");
    memcpy(buf, p, len);
    buf[len] = '\0';
    return len ? buf : NULL;
}

static bool takes_keyword(struct line_scan *s, const char *word)
{
    size_t len = strlen(word);

    if (strncmp(s->p, word, len) != 0 ||
        (s->p[len] && !isspace((unsigned char)s->p[len])))
        return false;
    s->p += len;
    scan_blanks(s);
    return true;
}

/* common_of_match - return the field that each event has for "thread", "pid" and "cpu". */
static const char *common_of_match(const char *match)
{
    if (!strcmp(match, "thread") || !strcmp(match, "pid"))
        return "common_pid";
    return strcmp(match, "cpu") != 0 ? NULL : "common_cpu";
}

/* one_place - take one end of an interval. */
static int one_place(struct line_scan *s, char *place, bool *is_return)
{
    int err;

    *is_return = takes_keyword(s, "ret");
    err = take_place(s, 0, place, TRACE_PLACES_MAX);
    if (!err && !place[0])
        return refuse_line(s, "a function is missing");
    if (!err && (strpbrk(place, "*?[") || !strcmp(place, "mark") || *s->p == ','))
        return refuse_word(s, "from and to take a single place each");
    return err;
}

/* parse_interval - take "PLACE to PLACE [by MATCH]". */
static int parse_interval(struct line_scan *s)
{
    struct trace_line *line = s->line;
    char *match = line->from.match[0], *equals;
    int err = one_place(s, line->from.place, &line->from.is_return);

    line->from.place_at = line->place_at[0];
    if (!err && !takes_keyword(s, "to"))
        err = refuse_line(s, "here comes: to PLACE");
    if (!err)
        err = one_place(s, line->place, &line->is_return);
    if (err)
        return err;
    strlcpy(match, "thread", TRACE_WORD_MAX);
    s->word = s->p;
    if (takes_keyword(s, "by"))
        err = take_word(s, match, TRACE_WORD_MAX);
    if (!err && !match[0])
        err = refuse_line(s, "here comes one of: thread pid cpu ARG ARG=ARG");
    equals = strchr(match, '=');
    if (equals)
        *equals = '\0';
    strlcpy(line->from.match[1], equals ? equals + 1 : match, TRACE_WORD_MAX);
    if (!err && (!match[0] || !line->from.match[1][0]))
        err = refuse_word(s, "it is by ARG, or by ARG=ARG");
    line->from.match_at = (size_t)(s->word - s->text);
    if (err || common_of_match(line->from.match[1]))
        return err;
    return need_arg(s, line->from.match[1],
                    s->word + (equals ? (size_t)(equals + 1 - match) : 0));
}

/* parse_profile - take "[HZ]". A hit in an NMI records the place that the NMI has
 * interrupted.
 */
static int parse_profile(struct line_scan *s)
{
    struct trace_line *line = s->line;
    uint64_t hz = PROFILE_HZ;
    char word[16];
    int err;

    if (isdigit((unsigned char)*s->p)) {
        err = take_word(s, word, sizeof(word));
        if (err)
            return err;
        if (parse_u64(word, 10, &hz) || hz < SAMPLE_HZ_MIN || hz > SAMPLE_HZ_MAX)
            return refuse_word(s, "HZ is a number from 19 to 10000");
    }
    line->hz = (unsigned)hz;
    strlcpy(line->place, TRACE_SAMPLER, sizeof(line->place));
    strlcpy(line->arg[0], "sample", TRACE_WORD_MAX);
    snprintf(line->with, sizeof(line->with), "+%zu(%%di):symbol",
             offsetof(struct pt_regs, ip));
    line->expression[0] = line->with;
    line->arg_count = 1;
    return 0;
}

/* parse_graph - take "FUNCTION". All functions are asked, and the depth of a call tells
 * whether it is within a call of that one.
 */
static int parse_graph(struct line_scan *s)
{
    struct trace_line *line = s->line;
    char word[TRACE_WORD_MAX];
    int err = take_place(s, 0, word, sizeof(word));

    if (err)
        return err;
    if (!word[0] || strpbrk(word, "*?[:+") || *s->p == ',')
        return refuse_word(s, "graph takes the name of one function, without its module");
    snprintf(line->place, sizeof(line->place), "%s,*", word);
    snprintf(line->with, sizeof(line->with), "$depth(%s):s32", word);
    strlcpy(line->arg[0], "depth", TRACE_WORD_MAX);
    strlcpy(line->arg[1], "ns", TRACE_WORD_MAX);
    line->expression[0] = line->with;
    line->arg_count = 2;
    line->is_return = line->is_pattern = line->is_graph = true;
    return 0;
}

static int parse_probed(struct line_scan *s)
{
    struct trace_line *line = s->line;
    int err;

    if (takes_keyword(s, "from"))
        return parse_interval(s);
    if (takes_keyword(s, "profile"))
        return parse_profile(s);
    if (takes_keyword(s, "graph"))
        return parse_graph(s);
    err = take_place(s, 0, line->place, sizeof(line->place));

    line->is_return = !strcmp(line->place, "ret");
    line->is_mark = !strcmp(line->place, "mark");
    if (!err && (line->is_return || line->is_mark))
        err = take_place(s, 0, line->place, sizeof(line->place));
    if (err)
        return err;
    if (!line->place[0])
        return refuse_line(s, line->is_mark ? "the name of a marker is missing"
                                            : "a function, or a pattern, is missing");
    err = more_places(s);
    if (err)
        return err;
    line->is_pattern = strpbrk(line->place, "*?[") != NULL;
    return 0;
}

/* Names that mean the same at all places. Name COMMON_FIELDS is the first that is a field of
 * each event, name COMMON_KEYS the last that is a key.
 */
enum { COMMON_FIELDS = 4, COMMON_KEYS = 5 };

/* common_name - return the number of such a name, from 1; 0: it is none. */
static size_t common_name(const char *name, size_t len)
{
    static const char *const names[] = {
        "func",       "caller",     "pid",         "cpu",          "comm",
        "CPU",        "COMM",       "common_type", "common_flags", "common_preempt_count",
        "common_pid", "common_cpu",
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_is(names[i], name, len))
            return i + 1;
    return 0;
}

/* define_with - take one "NAME=EXPRESSION", which is a piece of @s->line->with. */
static int define_with(struct line_scan *s, char *word)
{
    struct trace_line *line = s->line;
    unsigned count = line->arg_count;
    char *equals = strchr(word, '=');
    size_t known;
    int err;

    if (!equals || equals == word || !equals[1])
        return refuse_word(s, "NAME=EXPRESSION is missing");
    *equals = '\0';
    if (strlen(word) >= TRACE_WORD_MAX)
        return refuse_word(s, "this name is too long");
    known = common_name(word, strlen(word));
    if (known && known <= COMMON_KEYS)
        return refuse_word(s, "this name is a key");
    err = need_arg(s, word, s->word);
    if (err)
        return err;
    if (line->arg_count == count)
        return refuse_word(s, "this name has an expression already");
    line->expression[count] = equals + 1;
    return 0;
}

/* parse_with - parse a list of NAME=EXPRESSION, separated by commas. */
static int parse_with(struct line_scan *s)
{
    struct trace_line *line = s->line;
    char *word = line->with + (line->with[0] ? strlen(line->with) + 1 : 0);
    int err;

    if (!takes_keyword(s, "with"))
        return 0;
    if (line->is_mark)
        return refuse_line(s, "a marker has fields of its own");
    for (;;) {
        err = take_until(s, " \t{,", word,
                         (size_t)(line->with + sizeof(line->with) - word));
        if (!err)
            err = define_with(s, word);
        if (err || *s->p != ',')
            return err;
        word += strlen(word) + 1;
        word += strlen(word) + 1;
        s->p++;
        scan_blanks(s);
    }
}

/* fetch_for_filter - let hits record each field that the filter compares. Each name outside
 * of quotes is a field, but not the function of NAME.function. Of a pattern, whose functions
 * have different parameters, and of a marker a common name is the field of all events.
 * @at: where the filter stands in the question
 */
static int fetch_for_filter(struct line_scan *s, const char *at)
{
    bool no_common = s->line->is_mark || s->line->is_pattern, is_common;
    char name[TRACE_WORD_MAX], quote = '\0';

    for (const char *p = s->line->filter; *p;) {
        size_t len = 0;

        if (quote || *p == '"' || *p == '\'') {
            quote = !quote ? *p : *p == quote ? '\0' : quote;
            p++;
            continue;
        }
        if (*p == '%' || *p == '$') {
            s->p = at + (p - s->line->filter);
            return refuse_line(s, "a filter takes names: `with NAME=%di if NAME == 1`");
        }
        while (is_word_char(p[len]))
            len++;
        if (!len) {
            p++;
            continue;
        }
        is_common = common_name(p, len) >= COMMON_FIELDS;
        if (!isdigit((unsigned char)*p) && !(no_common && is_common) &&
            len < sizeof(name) && strncmp(p, set, sizeof(set) - 1) != 0) {
            memcpy(name, p, len);
            name[len] = '\0';
            if (need_common(s, name, at + (p - s->line->filter), is_common))
                return -EINVAL;
        }
        p += len;
        if (str_begins(".function", p, strlen(p))) {
            p += strlen(".function");
            p += strspn(p, " \t!=");
            p += strcspn(p, " \t)");
        }
    }
    return 0;
}

static int parse_condition(struct line_scan *s)
{
    struct trace_line *line = s->line;
    const char *at;
    int err;

    if (!takes_keyword(s, "if"))
        return 0;
    at = s->p;
    line->filter_at = (size_t)(at - s->text);
    err = take_until(s, "{", line->filter, sizeof(line->filter));
    if (err)
        return err;
    if (!line->filter[0])
        return refuse_line(s, "a condition is missing");
    return line->has_blanks ? 0 : fetch_for_filter(s, at);
}

static const struct {
    const char *name;
    enum trace_action action;
    bool wants_arg;
} actions[] = {
    { "count", ACTION_COUNT, false }, { "print", ACTION_PRINT, false },
    { "hist", ACTION_HIST, true },    { "lhist", ACTION_LHIST, true },
    { "sum", ACTION_SUM, true },      { "min", ACTION_MIN, true },
    { "max", ACTION_MAX, true },      { "avg", ACTION_AVG, true },
    { "stack", ACTION_STACK, false },
};

/* action_named - return the number of the action; ARRAY_LEN(actions): there is none. */
static size_t action_named(const char *name, size_t len)
{
    size_t i = 0;

    while (i < ARRAY_LEN(actions) && !str_is(actions[i].name, name, len))
        i++;
    return i;
}

/* comma_ends_list - does an answer begin behind this comma, such as sum(ARG)? A name without
 * parentheses is an ARG.
 */
static bool comma_ends_list(const struct line_scan *s)
{
    const char *p = skip_blanks(s->p + 1);
    size_t len = strcspn(p, "( \t{},;");

    return p[len] == '(' && action_named(p, len) < ARRAY_LEN(actions);
}

static struct trace_answer *answer_now(const struct line_scan *s)
{
    return &s->line->answer[s->line->answer_count];
}

/* give_back_shown - a key that may have blanks ends where `top N` or `percent` begins. */
static void give_back_shown(struct line_scan *s, const char *start, char *word)
{
    static const char *const behind[] = { " top ", " percent" };

    for (size_t i = 0; s->line->has_blanks && i < ARRAY_LEN(behind); i++) {
        char *found = strstr(word, behind[i]);

        if (!found)
            continue;
        s->p = start + (found - word) + 1;
        *found = '\0'; /* of both the first one counts */
    }
}

static int parse_list(struct line_scan *s,
                      int (*each)(struct line_scan *s, const char *word))
{
    const char *ends = s->line->has_blanks ? "{},;" : " \t{},;";
    char word[TRACE_WORD_MAX];
    int err;

    for (;;) {
        const char *start = s->p;

        err = take_until(s, ends, word, sizeof(word));
        if (!err && !word[0])
            err = refuse_line(s, "a name is missing");
        if (!err)
            give_back_shown(s, start, word);
        if (!err)
            err = each(s, word);
        if (err || *s->p != ',' || comma_ends_list(s))
            return err;
        s->p++;
        scan_blanks(s);
    }
}

static const char no_keys[] = "print has no keys";

static int printed_arg(struct line_scan *s, const char *word)
{
    const char *by = s->line->has_blanks ? strstr(word, " by ") : NULL;

    if (by) {
        s->p = s->word + (by + 1 - word);
        return refuse_line(s, no_keys);
    }
    if (!strcmp(word, "*")) {
        s->line->all_args = true;
        return 0;
    }
    return need_arg(s, word, s->word);
}

static int line_key(struct line_scan *s, const char *word)
{
    struct trace_line *line = s->line;
    struct trace_answer *answer = answer_now(s);
    size_t known = common_name(word, strlen(word));

    if (answer->key_count == TRACE_KEYS_MAX)
        return refuse_word(s, "at most three keys");
    for (size_t i = 0; i < answer->key_count; i++)
        if (!strcmp(answer->key[i], word))
            return refuse_word(s, "this key is there already");
    if ((line->is_mark || line->hz) && !strcmp(word, "caller"))
        return refuse_word(s, line->hz ? "a sample knows no caller; stack does"
                                       : "a marker knows no caller; stack does");
    strlcpy(answer->key[answer->key_count++], word, TRACE_WORD_MAX);
    if (line->has_blanks)
        return 0;
    if (known && known <= COMMON_KEYS && (strcmp(word, "caller") != 0 || line->is_return))
        return 0;
    return need_arg(s, word, s->word);
}

/* take_bound - take the number behind the last comma of @word, and cut it off. */
static bool take_bound(char *word, uint64_t *out)
{
    char *comma = strrchr(word, ',');

    if (!comma)
        return false;
    *comma++ = '\0';
    comma = skip_blanks(comma);
    return !fetch_number(comma, cut_blanks(comma, strlen(comma)), out);
}

/* take_bounds - take MIN, MAX and STEP of lhist(ARG,MIN,MAX,STEP). */
static int take_bounds(struct line_scan *s, char *word)
{
    struct trace_answer *a = answer_now(s);

    if (!take_bound(word, &a->step) || !take_bound(word, &a->high) ||
        !take_bound(word, &a->low))
        return refuse_word(s, "it is lhist(ARG,MIN,MAX,STEP), numbers from 0");
    if (!a->step || a->low >= a->high || a->low % a->step || a->high % a->step)
        return refuse_word(s, "MIN is below MAX, and both are multiples of STEP");
    if ((a->high - a->low) / a->step > TRACE_LHIST_ROWS)
        return refuse_word(s, "at most 100 rows");
    word[cut_blanks(word, strlen(word))] = '\0';
    return 0;
}

/* take_value - take the "(ARG)" behind the action's name. */
static int take_value(struct line_scan *s, char *word)
{
    struct trace_answer *answer = answer_now(s);
    char *open = strchr(word, '('), *close = strrchr(word, ')');
    const char *at;

    if (!open || !close || close < open || close == open + 1)
        return refuse_word(s, "this action has an argument: hist(ARG)");
    s->p = s->word + (close + 1 - word); /* a `by` may follow without a blank */
    scan_blanks(s);
    if (!memcmp(open, "(comm)", 6))
        return refuse_word(s, "comm is a text, and no number");
    *open = *close = '\0';
    if (answer->action == ACTION_LHIST && take_bounds(s, open + 1))
        return -EINVAL;
    strlcpy(answer->value, open + 1, sizeof(answer->value));
    at = s->word + (open + 1 - word);
    answer->value_at = (size_t)(at - s->text);
    return s->line->has_blanks ? 0 : need_arg(s, answer->value, at);
}

static int parse_action(struct line_scan *s)
{
    struct trace_answer *answer = answer_now(s);
    char word[TRACE_WORD_MAX];
    size_t len, i;
    int err = take_word(s, word, sizeof(word));

    if (err)
        return err;
    len = strcspn(word, "(");
    i = action_named(word, len);
    if (i == ARRAY_LEN(actions))
        return refuse_word(
            s, "here comes one of: count print hist lhist sum min max avg stack");
    answer->action = actions[i].action;
    if (actions[i].wants_arg)
        return take_value(s, word);
    if (word[len])
        return refuse_word(s, "this action has no argument");
    if (answer->action == ACTION_PRINT && s->line->is_graph)
        return refuse_word(s, "a graph without { } prints its calls");
    if (answer->action == ACTION_PRINT && s->line->answer_count)
        return refuse_word(s, "print is the only answer of a question");
    if (answer->action == ACTION_PRINT && *s->p != '}' && *s->p != ';')
        return parse_list(s, printed_arg);
    return 0;
}

static int parse_by(struct line_scan *s)
{
    bool prints = answer_now(s)->action == ACTION_PRINT;

    if (prints && !strncmp(s->p, "by ", 3))
        return refuse_line(s, no_keys);
    if (!takes_keyword(s, "by"))
        return 0;
    return parse_list(s, line_key);
}

/* parse_shown - parse how much of the table is printed. */
static int parse_shown(struct line_scan *s)
{
    static const char percent[] = "percent";
    struct trace_answer *answer = answer_now(s);
    char word[TRACE_WORD_MAX];
    int err;

    if (answer->action == ACTION_PRINT || trace_answer_distributes(answer))
        return 0;
    if (takes_keyword(s, "top")) {
        err = take_word(s, word, sizeof(word));
        if (err)
            return err;
        if (parse_u64(word, 10, &answer->top) || !answer->top)
            return refuse_word(s, "top wants a number of rows");
    }
    if (!strncmp(s->p, percent, sizeof(percent) - 1) &&
        strchr(" \t;,}", s->p[sizeof(percent) - 1])) {
        s->p += sizeof(percent) - 1;
        scan_blanks(s);
        answer->in_percent = true;
    }
    return 0;
}

static const char *what_may_come(const struct trace_answer *answer)
{
    if (answer->action == ACTION_PRINT)
        return "here comes one of: , }";
    if (trace_answer_distributes(answer))
        return answer->key_count ? "here comes one of: , ; }"
                                 : "here comes one of: by ; }";
    if (answer->in_percent)
        return "here comes one of: ; }";
    if (answer->top)
        return "here comes one of: percent ; }";
    return answer->key_count ? "here comes one of: , top percent ; }"
                             : "here comes one of: by top percent ; }";
}

static int parse_answer(struct line_scan *s)
{
    struct trace_answer *answer = answer_now(s);
    int err;

    if (s->line->answer_count == TRACE_ANSWERS_MAX)
        return refuse_line(s, "at most four answers");
    err = parse_action(s);
    if (!err)
        err = parse_by(s);
    if (!err)
        err = parse_shown(s);
    if (err)
        return err;
    if (*s->p != '}' && *s->p != ';' && (*s->p != ',' || !comma_ends_list(s)))
        return refuse_line(s, what_may_come(answer));
    if (*s->p != '}' && answer->action == ACTION_PRINT)
        return refuse_line(s, "print is the only answer of a question");
    s->line->answer_count++;
    return 0;
}

/* parse_profiled - take "[by stack|func|thread]", which may stand for the answer. */
static int parse_profiled(struct line_scan *s)
{
    struct trace_answer *answer = answer_now(s);
    char word[16] = "func";
    int err = takes_keyword(s, "by") ? take_word(s, word, sizeof(word)) : 0;

    if (err)
        return err;
    answer->in_percent = true;
    s->line->answer_count++;
    if (!strcmp(word, "stack"))
        answer->action = ACTION_STACK;
    else if (!strcmp(word, "func") || !strcmp(word, "thread"))
        strlcpy(answer->key[answer->key_count++], *word == 'f' ? "func" : "comm",
                TRACE_WORD_MAX);
    else
        return refuse_word(s, "here comes one of: stack func thread");
    return *s->p ? refuse_line(s, "nothing is expected here") : 0;
}

/* what_may_begin - what may come where the answers do not begin. */
static const char *what_may_begin(const struct trace_line *line)
{
    if (line->filter[0])
        return "here comes: {";
    if (line->is_graph)
        return "here comes one of: with if {";
    if (line->with[0] && !line->hz)
        return "here comes one of: , if {";
    if (line->is_mark)
        return "here comes one of: if {";
    if (line->from.place[0])
        return "here comes one of: by with if {";
    return line->hz ? "here comes one of: by with if {"
                    : "here comes one of: , with if {";
}

static int parse_answers(struct line_scan *s)
{
    int err;

    do {
        s->p++;
        scan_blanks(s);
        err = parse_answer(s);
    } while (!err && *s->p != '}');
    return err;
}

static int parse_question(struct trace_line *line, const char *text)
{
    struct line_scan s = { .line = line, .text = text, .p = text };
    int err;

    scan_blanks(&s);
    err = parse_probed(&s);
    if (!err)
        err = parse_with(&s);
    if (!err)
        err = parse_condition(&s);
    if (!err && *s.p == '{')
        err = parse_answers(&s);
    else if (!err && line->hz && (!*s.p || !strncmp(s.p, "by ", 3)))
        err = parse_profiled(&s);
    else if (!err && line->is_graph && !*s.p)
        line->answer[line->answer_count++].action = ACTION_PRINT;
    else if (!err)
        err = refuse_line(&s, what_may_begin(line));
    if (err)
        return err;
    s.p += *s.p == '}';
    scan_blanks(&s);
    if (*s.p)
        return refuse_line(&s, "nothing is expected behind }");
    return 0;
}

int trace_line_parse(struct trace_line *line, const char *text)
{
    int err;

    memset(line, 0, sizeof(*line));
    err = parse_question(line, text);
    for (unsigned i = 0; !err && i < line->answer_count; i++) {
        struct trace_answer *answer = &line->answer[i];

        if (!answer->key_count && answer->action == ACTION_COUNT &&
            !trace_line_is_interval(line))
            strlcpy(answer->key[answer->key_count++], "func", TRACE_WORD_MAX);
    }
    return err;
}

int trace_line_split(struct trace_line *line, const char *text)
{
    memset(line, 0, sizeof(*line));
    line->has_blanks = true;
    return parse_question(line, text);
}

static void answer_parts(const struct trace_line *line, const struct trace_answer *answer,
                         struct seq *out)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        if (actions[i].action == answer->action)
            seq_printf(out, "action %s\n", actions[i].name);
    if (answer->value[0])
        seq_printf(out, "arg %s\n", answer->value);
    if (answer->step)
        seq_printf(out, "bounds %lu,%lu,%lu\n", answer->low, answer->high, answer->step);
    for (unsigned i = 0;
         answer->action == ACTION_PRINT && !line->is_graph && i < line->arg_count; i++)
        if (!line->expression[i])
            seq_printf(out, "arg %s\n", line->arg[i]);
    if (line->all_args)
        seq_puts(out, "arg *\n");
    for (unsigned i = 0; i < answer->key_count; i++)
        seq_printf(out, "by %s\n", answer->key[i]);
    if (answer->top)
        seq_printf(out, "top %zu\n", answer->top);
    if (answer->in_percent)
        seq_puts(out, "percent\n");
}

void trace_line_parts(const struct trace_line *line, struct seq *out)
{
    if (trace_line_is_interval(line))
        seq_printf(out, "from %s\n", line->from.place);
    if (line->hz)
        seq_printf(out, "kind profile\nplace %u\n", line->hz);
    else if (line->is_graph)
        seq_printf(out, "kind graph\nplace %.*s\n", (int)strcspn(line->place, ","),
                   line->place);
    else
        seq_printf(out, "place %s\n", line->place);
    if (!line->is_graph && (line->is_return || line->is_mark || line->is_pattern))
        seq_printf(out, "kind %s\n",
                   line->is_return ? "ret"
                   : line->is_mark ? "mark"
                                   : "pattern");
    for (unsigned i = line->hz || line->is_graph; i < line->arg_count; i++)
        if (line->expression[i])
            seq_printf(out, "with %s=%s\n", line->arg[i], line->expression[i]);
    if (line->filter[0])
        seq_printf(out, "if %s\n", line->filter);
    for (unsigned i = 0; i < line->answer_count; i++)
        answer_parts(line, &line->answer[i], out);
}

static const struct {
    const char *word, *before, *behind;
} forms[] = {
    { "count", "", "{ count by func }" },
    { "args", "", "{ print * }" },
    { "time", "ret ", "{ hist(ns) }" },
    { "callers", "", "{ count by caller }" },
    { "graph", "graph ", "" },
};

const char *trace_line_short_word(unsigned i)
{
    return i < ARRAY_LEN(forms) ? forms[i].word : NULL;
}

int trace_line_short(const char *word, const char *place, char *buf, size_t size)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (!strcmp(forms[i].word, word)) {
            snprintf(buf, size, "%s%s %s", forms[i].before, place, forms[i].behind);
            return 0;
        }
    return -EINVAL;
}

void trace_line_from(const struct trace_line *line, struct trace_line *out)
{
    strlcpy(out->place, line->from.place, sizeof(out->place));
    out->place_at[0] = line->from.place_at;
    out->is_return = line->from.is_return;
    if (common_of_match(line->from.match[0]))
        return;
    out->arg_at[0] = line->from.match_at;
    strlcpy(out->arg[out->arg_count++], line->from.match[0], TRACE_WORD_MAX);
}

void trace_line_match(const struct trace_line *line, bool at_end, char *buf)
{
    const char *match = line->from.match[at_end], *common = common_of_match(match);
    bool is_name = isalpha((unsigned char)*match) || *match == '_';

    if (common)
        strlcpy(buf, common, TRACE_WORD_MAX);
    else if (at_end || is_name)
        trace_line_field(line, match, buf, TRACE_WORD_MAX);
    else
        strlcpy(buf, "arg1", TRACE_WORD_MAX); /* the only one of trace_line_from() */
}
