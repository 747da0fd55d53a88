/* trigger.h - parses a line of the file `trigger` into a trigger, which is an action that
 * a hit does besides recording, and prints it as a line.
 *
 *     [!]traceon|traceoff|stacktrace|snapshot [:COUNT] [if FILTER]
 *     [!]enable_event|disable_event :GROUP:EVENT [:COUNT] [if FILTER]
 *     [!]enable_hist|disable_hist :GROUP:EVENT [:COUNT] [if FILTER]
 *     [!]set_wprobe :WPROBE:FIELD[+N|-N] [:COUNT] [if FILTER]
 *     [!]clear_wprobe :WPROBE [:FIELD[+N|-N]] [:COUNT] [if FILTER]
 *     [!]hist:SPEC [if FILTER]                                probes/trace/language/hist.h
 *
 * A '!' removes the trigger. Pure. All functions except trigger_take() run in thread
 * context.
 */
#pragma once

#include "probes/trace/language/def.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trigger_kind {
    TRIGGER_ON,
    TRIGGER_OFF,
    TRIGGER_SNAPSHOT,
    TRIGGER_STACK,
    TRIGGER_ENABLE_EVENT,
    TRIGGER_DISABLE_EVENT,
    TRIGGER_ENABLE_HIST,
    TRIGGER_DISABLE_HIST,
    TRIGGER_SET_WATCH,
    TRIGGER_CLEAR_WATCH,
    TRIGGER_HIST,
    TRIGGER_KINDS,
};

#define TRIGGER_UNLIMITED (-1)

/* A trigger is a single piece of memory, with its texts. */
struct trigger {
    enum trigger_kind kind;
    bool remove;   /* the line had a '!' */
    int64_t count; /* how many times it may act from now on; TRIGGER_UNLIMITED. Atomic. */
    const char *group, *event; /* the event to switch, or the watch, which has no group
                                * here; else NULL */
    const char *field;         /* the field that holds the address to watch; or NULL */
    int64_t adjust;            /* bytes to add to that address */
    const char *spec;          /* of a histogram: the text behind "hist:"; else NULL */
    const char *filter;        /* the text behind "if"; NULL: it acts at each hit */
};

/* The text of the file when there is no trigger. It is Linux's, so it does not name the
 * triggers of watches.
 */
#define TRIGGER_NONE                                                                     \
    "# Available triggers:\n"                                                            \
    "# traceon traceoff snapshot stacktrace enable_event disable_event enable_hist "     \
    "disable_hist hist\n"

/* trigger_parse - parse a line into a trigger. The caller has to check that the event
 * exists, and to parse the filter and the histogram.
 * @out: set to the trigger, the caller's until trigger_free()
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int trigger_parse(const struct def_host *host, const char *text, struct trigger **out);
void trigger_free(const struct def_host *host, struct trigger *trigger);

/* trigger_print - print the line of a trigger, without a newline. Not for histograms.
 * Return: the length of the whole text, without its NUL.
 */
size_t trigger_print(const struct trigger *trigger, char *buf, size_t size);

/* trigger_is_same - tell whether an event may have only one of @a and @b. If @b is a line
 * with a '!', this is also the test whether it removes @a. Not for histograms.
 */
bool trigger_is_same(const struct trigger *a, const struct trigger *b);

/* trigger_take - tell whether the trigger may act now, and count that down.
 * Context: any.  Locks: none. Hits on all CPUs together act as often as the count
 * says.
 */
bool trigger_take(struct trigger *trigger);
