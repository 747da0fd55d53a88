/* trace_line.h - the one-line language of the console's `trace`: parses a question, and
 * writes the lines for the files of the tracer that answer it.
 *
 *     PLACE,... [with NAME=EXPRESSION,...] [if FILTER] { ANSWER; ... }
 *     from PLACE to PLACE [by MATCH] [with ...] [if FILTER] { ANSWER; ... }
 *
 *     PLACE  = FUNCTION | ret FUNCTION | FUNCTION+OFF | FILE:LINE[#N]
 *            | a pattern with * ? [...] | mark NAME
 *            | profile [HZ], the places that NMIs interrupt
 *            | graph FUNCTION, the returns of all functions that it calls, and its own
 *     ANSWER = ACTION [by KEY,...] [top N] [percent], no `top` and `percent` behind [l]hist
 *     ACTION = count | print ARG,... | hist(ARG) | lhist(ARG,MIN,MAX,STEP) | sum(ARG)
 *            | min(ARG) | max(ARG) | avg(ARG) | stack
 *     MATCH  = thread | pid | cpu | ARG, of both places | ARG=ARG, one of each
 *     KEY    = func | cpu | caller | comm | pid | ARG
 *     ARG    = a parameter's name | retval | ns | an expression as in kprobe_events
 *            | a NAME that `with` defines | for a marker: the name of a field
 *
 * Context: thread.
 */
#pragma once

#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_LINE_MAX 4096
#define TRACE_ANSWERS_MAX 4
#define TRACE_KEYS_MAX 3
#define TRACE_LHIST_ROWS 100
#define TRACE_ARGS_MAX 16
#define TRACE_WORD_MAX 128
#define TRACE_PLACES_MAX 512
#define TRACE_SAMPLER "nmi_dispatch"
#define TRACE_SAMPLER_FRAMES 2 /* it, and its caller, stand on top of each stack */

enum trace_action {
    ACTION_COUNT,
    ACTION_PRINT,
    ACTION_HIST,
    ACTION_LHIST,
    ACTION_SUM,
    ACTION_MIN,
    ACTION_MAX,
    ACTION_AVG,
    ACTION_STACK,
};

/* An answer is a table that is made of the hits, or the hits themselves, printed. */
struct trace_answer {
    enum trace_action action;
    char value[TRACE_WORD_MAX]; /* the ARG of the action; "": the action has none */
    size_t value_at;            /* its offset in the text of the question */
    uint64_t low, high, step;   /* of lhist */
    char key[TRACE_KEYS_MAX][TRACE_WORD_MAX];
    unsigned key_count;
    size_t top;  /* print only so many rows; 0: all */
    size_t most; /* without `top`: print only so many, and say how many more; 0: all */
    bool in_percent; /* print also the share of each row */
};

struct trace_line {
    bool is_return;
    bool is_mark;    /* the place is a marker; it has an event, so no event is defined */
    bool is_pattern; /* a place of them is one */
    bool is_graph;   /* @place is the function, and a pattern for all others */
    unsigned hz;     /* samples in a second; 0: the question is not `profile` */
    char place[TRACE_PLACES_MAX];            /* with commas between them */
    uint16_t place_at[TRACE_PLACES_MAX / 2]; /* of each: its offset in the text */
    struct {
        char place[TRACE_PLACES_MAX]; /* "": the question asks for no time between two */
        uint16_t place_at;
        bool is_return;
        char match[2][TRACE_WORD_MAX]; /* equal at a start, and at its end */
        size_t match_at;         /* of the first; it is the second as well, or "=" */
    } from;                      /* with it, @place is the second one */
    char filter[TRACE_LINE_MAX]; /* "": there is none */
    size_t filter_at;
    struct trace_answer answer[TRACE_ANSWERS_MAX];
    unsigned answer_count;
    char arg[TRACE_ARGS_MAX][TRACE_WORD_MAX]; /* what a hit records, in this order */
    size_t arg_at[TRACE_ARGS_MAX];            /* where it is needed first, in the text */
    unsigned arg_count;
    bool arg_is_common[TRACE_ARGS_MAX]; /* recorded only if it is a parameter; else the
                                         * filter means the field of all events */
    bool arg_in_hex[TRACE_ARGS_MAX];    /* is @arg printed in base 16? The caller knows */
    const char *expression[TRACE_ARGS_MAX]; /* what `with` gives to @arg; NULL: nothing */
    char with[TRACE_LINE_MAX];              /* the text that @expression points into */
    bool all_args;                          /* `print *`: print each parameter */
    bool has_blanks;     /* an ARG may have blanks, and the filter may be any text */
    const char *problem; /* why trace_line_parse() has refused the text */
    size_t at;           /* the offset in the text of the word that is refused */
};

/* trace_line_parse - read @text into @line. The caller must not copy or move @line
 * afterwards, since it has pointers into itself.
 * Return: 0; -EINVAL with @line->problem.
 */
int trace_line_parse(struct trace_line *line, const char *text);
/* trace_line_split - do the same for a host, which replaces the parts that are C: an ARG
 * may have blanks, the filter may be any text, and @line->arg has only what is printed.
 */
int trace_line_split(struct trace_line *line, const char *text);
/* trace_line_place - copy place @i of @line, from 0, to @buf of TRACE_PLACES_MAX bytes.
 * Return: NULL: there is none.
 */
const char *trace_line_place(const struct trace_line *line, unsigned i, char *buf);
/* trace_line_parts - print the parts of such a line, each behind a word. */
void trace_line_parts(const struct trace_line *line, struct seq *out);

/* trace_line_field - write to @buf the name of the field that a hit records for an ARG. */
void trace_line_field(const struct trace_line *line, const char *arg, char *buf,
                      size_t size);

/* trace_line_short - write out a short command, such as `trace count vfs_read`, as a line
 * of the language above: `vfs_read { count by func }`.
 * @word: "count", "args", "time", "callers" or "graph"
 * @buf:  receives the line; a line longer than @size is cut off
 * Return: 0; -EINVAL @word is no short command.
 */
int trace_line_short(const char *word, const char *place, char *buf, size_t size);
/* trace_line_short_word - return the word of short command @i, from 0; NULL: the last is
 * in front of it.
 */
const char *trace_line_short_word(unsigned i);

struct trace_word {
    const char *text;
    size_t at;
    const char *problem; /* NULL: it is no parameter of the function */
};

/* trace_line_define - print to @out the line of kprobe_events that defines the event of
 * @line for one function.
 * @event:    GROUP/EVENT
 * @function: the function's address, to look up the names of its parameters
 * @bad:      receives the name after -ENOENT and -EINVAL, where it stands in the text, and
 *            after -EINVAL why it is refused
 * Return:    0; -ENOENT the line uses a name that is no parameter of the function; -EINVAL
 *            an action takes a text, or a table an array, for a number.
 */
int trace_line_define(const struct trace_line *line, const char *event, const char *place,
                      uintptr_t function, struct seq *out, struct trace_word *bad);

extern const char trace_no_number[]; /* why an ARG that is a text is refused */

/* trace_line_is_interval - does @line ask for the time between two places?
 * trace_line_from - make @out, which is zeroed, the line that defines the event of the first
 * one.
 * trace_line_match - write to @buf, of TRACE_WORD_MAX bytes, the field that is equal at a
 * start and at its end.
 */
static inline bool trace_line_is_interval(const struct trace_line *line)
{
    return line->from.place[0];
}
void trace_line_from(const struct trace_line *line, struct trace_line *out);
void trace_line_match(const struct trace_line *line, bool at_end, char *buf);

/* trace_answer_distributes - is the answer a distribution, whose rows have an order? */
static inline bool trace_answer_distributes(const struct trace_answer *answer)
{
    return answer->action == ACTION_HIST || answer->action == ACTION_LHIST;
}

/* trace_line_prints - is the answer of @line not a table, but the hits themselves? */
static inline bool trace_line_prints(const struct trace_line *line)
{
    return line->answer[0].action == ACTION_PRINT;
}

/* trace_line_trigger - print to @out the line for the event's file `trigger`, for answer @i,
 * which is a table. @paused: its histogram begins paused
 */
void trace_line_trigger(const struct trace_line *line, unsigned i, bool paused,
                        struct seq *out);
/* trace_line_hist - return the number of the histogram of answer @i. It is that of an
 * answer before if both count the same, as sum(ARG) and avg(ARG) do.
 */
unsigned trace_line_hist(const struct trace_line *line, unsigned i);
