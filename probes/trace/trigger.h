/* trigger.h - what a hit does beside recording: a line of the file `trigger`, and back.
 *
 *     [!]traceon|traceoff|stacktrace|snapshot [:COUNT] [if FILTER]
 *     [!]enable_event|disable_event :GROUP:EVENT [:COUNT] [if FILTER]
 *     [!]enable_hist|disable_hist :GROUP:EVENT [:COUNT] [if FILTER]
 *     [!]set_wprobe :WPROBE:FIELD[+N|-N] [:COUNT] [if FILTER]
 *     [!]clear_wprobe :WPROBE [:FIELD[+N|-N]] [:COUNT] [if FILTER]
 *     [!]hist:SPEC [if FILTER]                                probes/trace/hist.h
 *
 * A '!' takes the trigger away. Pure; thread context, all but trigger_take().
 */
#pragma once

#include "probes/trace/def.h"

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

/* All in one piece of memory. */
struct trigger {
    enum trigger_kind kind;
    bool remove;   /* it is to be taken away */
    int64_t count; /* how often it may still act; TRIGGER_UNLIMITED. Atomic. */
    const char *group, *event; /* of the event that is switched; of a watch without its
                                * group; else NULL */
    const char *field;         /* of the record: what is to be watched; or NULL */
    int64_t adjust;            /* bytes from there */
    const char *spec;          /* of a histogram, behind "hist:"; else NULL */
    const char *filter;        /* behind "if"; NULL: each hit */
};

/* What the file shows where there is no trigger: as on Linux, so without those of watches. */
#define TRIGGER_NONE                                                                     \
    "# Available triggers:\n"                                                            \
    "# traceon traceoff snapshot stacktrace enable_event disable_event enable_hist "     \
    "disable_hist hist\n"

/* trigger_parse - @out: the caller's until trigger_free(). Whether the event exists, and what
 * the filter and the histogram mean, is the caller's to find out.
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int trigger_parse(const struct def_host *host, const char *text, struct trigger **out);
void trigger_free(const struct def_host *host, struct trigger *trigger);

/* trigger_print - its line, without a newline; not that of a histogram.
 * Return: the length of the whole text, without its NUL.
 */
size_t trigger_print(const struct trigger *trigger, char *buf, size_t size);

/* trigger_is_same - can there be only one of both at an event? Also: does the line @b, with
 * its '!', mean @a? Not of histograms.
 */
bool trigger_is_same(const struct trigger *a, const struct trigger *b);

/* trigger_take - may it act now? Counts down.
 * Context: any.  Locks: none: of several CPUs exactly as many may act as the count says.
 */
bool trigger_take(struct trigger *trigger);
