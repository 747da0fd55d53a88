/* trace_define.c - writes the event definition and the histogram of a one-line question. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/params.h"
#include "probes/console/trace_line.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- the definition ---- */

static bool find_param(uintptr_t function, const char *name, struct param *out)
{
    for (unsigned i = 0; params_get(function, i, out); i++)
        if (str_is(name, out->name, out->name_len))
            return true;
    return false;
}

static void define_param(struct seq *out, const struct param *p)
{
    if (p->type_len == 6 && !memcmp(p->type, "string", 6))
        seq_printf(out, " %.*s=+0(%.*s):string", (int)p->name_len, p->name,
                   (int)p->name_len, p->name);
    else
        seq_printf(out, " %.*s=%.*s:%.*s", (int)p->name_len, p->name, (int)p->name_len,
                   p->name, (int)p->type_len, p->type);
}

/* An identifier is the name itself, and the field of an expression is called argN. */
void trace_line_field(const struct trace_line *line, const char *arg, char *buf,
                      size_t size)
{
    if (isalpha((unsigned char)*arg) || *arg == '_') {
        strlcpy(buf, arg, size);
        return;
    }
    for (unsigned i = 0; i < line->arg_count; i++)
        if (!strcmp(line->arg[i], arg))
            snprintf(buf, size, "arg%u", i + 1);
}

static int define_arg(const struct trace_line *line, const char *arg, uintptr_t function,
                      struct seq *out)
{
    char name[TRACE_WORD_MAX];
    struct param param;
    const char *type;
    size_t len = 3;

    if (!strcmp(arg, "retval") && line->is_return) {
        type = params_return(function, &len);
        if (type && !memcmp(type, "void", len))
            return -ENOENT;
        if (!type || !memcmp(type, "string", len)) {
            type = "x64";
            len = 3;
        }
        seq_printf(out, " retval=$retval:%.*s", (int)len, type);
    } else if (!strcmp(arg, "ns") && line->is_return) {
        seq_puts(out, " ns=$ns:u64");
    } else if (!strcmp(arg, "caller")) {
        seq_puts(out, " caller=$stack0:symbol");
    } else if (!isalpha((unsigned char)*arg) && *arg != '_') {
        trace_line_field(line, arg, name, sizeof(name));
        seq_printf(out, " %s=%s", name, arg);
    } else if (find_param(function, arg, &param)) {
        define_param(out, &param);
    } else if (!strcmp(arg, "comm")) {
        seq_puts(out, " comm=$comm:string");
    } else {
        return -ENOENT;
    }
    return 0;
}

/* line_has_arg - is this one of the names that stand in the question beside *? */
static bool line_has_arg(const struct trace_line *line, const char *name, size_t len)
{
    for (unsigned i = 0; i < line->arg_count; i++)
        if (str_is(line->arg[i], name, len))
            return true;
    return false;
}

/* defined_as - find the expression that @definition gives to an ARG. Return: its end, which
 * is that of its type; NULL: there is none.
 */
static const char *defined_as(const struct trace_line *line, const char *definition,
                              const char *arg)
{
    char name[TRACE_WORD_MAX] = "", field[TRACE_WORD_MAX + 2];
    const char *found;

    trace_line_field(line, arg, name, sizeof(name));
    snprintf(field, sizeof(field), " %s=", name);
    found = *name ? strstr(definition, field) : NULL;
    return found ? found + 1 + strcspn(found + 1, " ") : NULL;
}

const char trace_no_number[] = "it is a text, and no number";

/* not_a_number - find an ARG of an action that @definition makes a text, or an ARG of a
 * table that it makes an array.
 */
static bool not_a_number(const struct trace_line *line, const char *definition,
                         struct trace_word *out)
{
    static const char text[] = "string";
    const size_t len = sizeof(text) - 1;

    for (unsigned i = 0; i < line->answer_count; i++) {
        const struct trace_answer *answer = &line->answer[i];
        const char *end = defined_as(line, definition, answer->value);

        *out = (struct trace_word){ answer->value, answer->value_at, trace_no_number };
        if (end && !memcmp(end - len, text, len))
            return true;
    }
    for (unsigned i = 0; !trace_line_prints(line) && i < line->arg_count; i++) {
        const char *end = defined_as(line, definition, line->arg[i]);

        *out = (struct trace_word){ line->arg[i], line->arg_at[i],
                                    "it is an array, and no number" };
        if (end && end[-1] == ']')
            return true;
    }
    return false;
}

int trace_line_define(const struct trace_line *line, const char *event, const char *place,
                      uintptr_t function, struct seq *out, struct trace_word *bad)
{
    struct param param;

    seq_printf(out, "%c:%s %s", line->is_return ? 'r' : 'p', event, place);
    for (unsigned i = 0; i < line->arg_count; i++) {
        if (trace_line_is_interval(line) && !strcmp(line->arg[i], "ns"))
            continue; /* the time between the places, which is no field of one of them */
        if (line->arg_is_common[i] && !find_param(function, line->arg[i], &param))
            continue;
        if (line->expression[i]) {
            seq_printf(out, " %s=%s", line->arg[i], line->expression[i]);
        } else if (define_arg(line, line->arg[i], function, out)) {
            *bad = (struct trace_word){ line->arg[i], line->arg_at[i], NULL };
            return -ENOENT;
        }
    }
    for (unsigned i = 0; line->all_args && params_get(function, i, &param); i++)
        if (!line_has_arg(line, param.name, param.name_len))
            define_param(out, &param);
    if (line->all_args && line->is_return && !line_has_arg(line, "retval", 6))
        define_arg(line, "retval", function, out);
    return not_a_number(line, seq_str(out), bad) ? -EINVAL : 0;
}

/* ---- the histogram ---- */

/* arg_key - print the key of an ARG. A key is in base 16 if `print` shows it so. */
static void arg_key(const struct trace_line *line, const char *arg, struct seq *out)
{
    char name[TRACE_WORD_MAX];

    trace_line_field(line, arg, name, sizeof(name));
    seq_puts(out, name);
    for (unsigned i = 0; i < line->arg_count; i++)
        if (line->arg_in_hex[i] && !strcmp(line->arg[i], arg))
            seq_puts(out, ".hex");
}

static void key_field(const struct trace_line *line, const char *word, struct seq *out)
{

    if (!strcmp(word, "func") && line->hz)
        seq_puts(out, "sample.sym");
    else if (!strcmp(word, "func"))
        seq_puts(out, line->is_return ? "__probe_func.sym" : "__probe_ip.sym");
    else if (!strcmp(word, "cpu"))
        seq_puts(out, "common_cpu");
    else if (!strcmp(word, "caller"))
        seq_puts(out,
                 line->is_return ? "__probe_ret_ip.sym-offset" : "caller.sym-offset");
    else if (!strcmp(word, "comm"))
        seq_puts(out, "comm");
    else if (!strcmp(word, "pid"))
        seq_puts(out, "common_pid");
    else
        arg_key(line, word, out);
}

#define HIST_ENTRIES 8192 /* rows; a pattern can match thousands of functions */

static bool answer_sums(const struct trace_answer *answer)
{
    return answer->action >= ACTION_SUM && answer->action <= ACTION_AVG;
}

static void trigger_keys(const struct trace_line *line, const struct trace_answer *answer,
                         const char *value, struct seq *out)
{
    unsigned keys = 0;

    seq_puts(out, "hist:keys=");
    for (; keys < answer->key_count; keys++) {
        seq_puts(out, keys ? "," : "");
        key_field(line, answer->key[keys], out);
    }
    if (answer->action == ACTION_HIST)
        seq_printf(out, "%s%s.log2", keys ? "," : "", value);
    else if (answer->action == ACTION_LHIST)
        seq_printf(out, "%s%s.buckets=%lu", keys ? "," : "", value, answer->step);
    else if (answer->action == ACTION_STACK)
        seq_printf(out, "%sstacktrace", keys ? "," : "");
    else if (!keys)
        seq_puts(out, "common_type"); /* a key that is the same for all hits: one row */
}

void trace_line_trigger(const struct trace_line *line, unsigned i, bool paused,
                        struct seq *out)
{
    static const char *const modifiers[] = {
        [ACTION_MIN] = ".min", [ACTION_MAX] = ".max", [ACTION_SUM] = "", [ACTION_AVG] = ""
    };
    const struct trace_answer *answer = &line->answer[i];
    char value[TRACE_WORD_MAX] = "";

    if (answer->value[0])
        trace_line_field(line, answer->value, value, sizeof(value));
    trigger_keys(line, answer, value, out);
    if (answer_sums(answer))
        seq_printf(out, ":vals=%s%s:sort=%s.descending", value, modifiers[answer->action],
                   value);
    else if (trace_answer_distributes(answer))
        seq_printf(out, ":sort=%s", value);
    else
        seq_puts(out, ":sort=hitcount.descending");
    seq_printf(out, ":size=%u%s", HIST_ENTRIES, paused ? ":pause" : "");
    if (line->filter[0])
        seq_printf(out, " if %s", line->filter);
}

static bool same_hist(const struct trace_answer *a, const struct trace_answer *b)
{
    bool is_sum = (a->action == ACTION_SUM && b->action == ACTION_AVG) ||
                  (a->action == ACTION_AVG && b->action == ACTION_SUM);

    if ((a->action != b->action && !is_sum) || strcmp(a->value, b->value) != 0 ||
        a->step != b->step || a->key_count != b->key_count)
        return false;
    for (unsigned i = 0; i < a->key_count; i++)
        if (strcmp(a->key[i], b->key[i]) != 0)
            return false;
    return true;
}

unsigned trace_line_hist(const struct trace_line *line, unsigned i)
{
    unsigned before, count = 0;

    for (unsigned j = 0; j < i; j++) {
        if (same_hist(&line->answer[j], &line->answer[i]))
            return trace_line_hist(line, j);
        before = trace_line_hist(line, j) + 1;
        count = before > count ? before : count;
    }
    return count;
}
