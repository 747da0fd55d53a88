/* trace_line.h - the one-line language of the console's `trace`: a question in, lines for the
 * files of the tracer out.
 *
 *     PLACE [with NAME=EXPRESSION,...] [if FILTER] { ACTION [by KEY,...] }
 *
 *     PLACE  = FUNCTION | ret FUNCTION | FUNCTION+OFF | FILE:LINE[#N]
 *            | a pattern with * ? [...] | mark NAME
 *     ACTION = count | print ARG,... | hist(ARG) | sum(ARG) | min(ARG) | max(ARG) | avg(ARG)
 *            | stack
 *     KEY    = func | cpu | caller | comm | ARG
 *     ARG    = a parameter's name | retval | ns | an expression as in kprobe_events
 *            | a NAME that is given one by `with`; of a marker, the name of a field
 *
 * Context: thread.
 */
#pragma once

#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_LINE_MAX 4096
#define TRACE_KEYS_MAX 3
#define TRACE_ARGS_MAX 16
#define TRACE_WORD_MAX 128

enum trace_action {
    ACTION_COUNT,
    ACTION_PRINT,
    ACTION_HIST,
    ACTION_SUM,
    ACTION_MIN,
    ACTION_MAX,
    ACTION_AVG,
    ACTION_STACK,
};

struct trace_line {
    bool is_return;
    bool is_mark; /* nothing is defined: its event is there */
    bool is_pattern;
    char place[TRACE_WORD_MAX];
    char filter[TRACE_LINE_MAX]; /* "" none */
    enum trace_action action;
    char value[TRACE_WORD_MAX]; /* the ARG of the action; "" none */
    char key[TRACE_KEYS_MAX][TRACE_WORD_MAX];
    unsigned key_count;
    char arg[TRACE_ARGS_MAX][TRACE_WORD_MAX]; /* what is to be fetched, in order */
    unsigned arg_count;
    const char *expression[TRACE_ARGS_MAX]; /* of @arg, by `with`; NULL: it has none */
    char with[TRACE_LINE_MAX];              /* where they stand */
    bool all_args;                          /* print *: each parameter */
    const char *problem; /* what is wrong, when trace_line_parse() has refused */
    size_t at;           /* and where in the text */
};

/* trace_line_parse - @line must not be moved then: it points into itself.
 * Return: 0; -EINVAL with @line->problem. */
int trace_line_parse(struct trace_line *line, const char *text);

/* trace_line_short - a short form: count, args, time or callers of @place, as a whole line.
 * Return: 0; -EINVAL @word is none.
 */
int trace_line_short(const char *word, const char *place, char *buf, size_t size);

/* trace_line_define - the line of kprobe_events for one function.
 * @event:    GROUP/EVENT
 * @function: its address, for the names of its parameters
 * Return:    0; -ENOENT a name that is no parameter of it, which is in @bad.
 */
int trace_line_define(const struct trace_line *line, const char *event, const char *place,
                      uintptr_t function, struct seq *out, const char **bad);

/* trace_line_trigger - the line of the event's file `trigger`; nothing for ACTION_PRINT. */
void trace_line_trigger(const struct trace_line *line, struct seq *out);
