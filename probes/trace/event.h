/* event.h - what can be recorded: events, by the number that each of their records has.
 *
 * A record has Linux's layout: a head that all have in common, one of the three structs
 * below, and behind it the arguments as probes/trace/fetch.h stores them.
 *
 * Numbers count up and come again only when all 16 bits of them were given. A record that
 * is older than the event of its number belongs to one that is gone, and is never shown as
 * one of the new event.
 */
#pragma once

#include "probes/trace/fetch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What each record begins with. */
struct record_head {
    uint16_t type; /* event.id */
    uint8_t flags; /* RECORD_ and so on */
    uint8_t preempt_count;
    int32_t pid;
};

#define RECORD_IRQS_OFF 0x01
#define RECORD_NEED_RESCHED 0x04
#define RECORD_HARDIRQ 0x08
#define RECORD_NMI 0x40

struct record_probe {
    struct record_head head;
    uint64_t ip;
};

struct record_return {
    struct record_head head;
    uint64_t func, ret_ip;
};

struct record_text {
    struct record_head head;
    uint64_t ip;
    char text[]; /* with a NUL */
};

struct record_stack {
    struct record_head head;
    int32_t size; /* of caller */
    uint32_t unused;
    uint64_t caller[]; /* the innermost first */
};

#define STACK_RECORD_MAX 32 /* places in it */

enum event_shape { EVENT_PROBE, EVENT_RETURN, EVENT_TEXT, EVENT_STACK };

struct event {
    uint16_t id;   /* given by event_add() */
    uint64_t born; /* then, in the ring's clock; older records are of others */
    const char *group, *name;
    enum event_shape shape;
    unsigned arg_count;
    const struct fetch_arg *args; /* of EVENT_PROBE and EVENT_RETURN */
    struct event *next;           /* [events] another whose number ends alike */
};

#define EVENT_ID_STACK 4   /* as on Linux: what the trigger stacktrace records */
#define EVENT_ID_PRINT 5   /* what is written to trace_marker */
#define EVENT_ID_FIRST 256 /* of those that come and go */
#define EVENT_ID_LAST 65535

/* The events of trace_marker and of stacks; always there. */
extern struct event event_print, event_stack;

/* event_head - bytes of a record of @event before its first argument. Context: any. */
size_t event_head(const struct event *event);

/* event_add - give @event a number, and make it known to event_of().
 * @now: the time, as records have it
 *
 * Locks:  held: the caller's, which keeps event_of() and the others out.
 * Return: 0; -ENOSPC all numbers are in use.
 */
int event_add(struct event *event, uint64_t now);
/* event_remove - forget it. Its number is given again after all others. Locks: the same. */
void event_remove(struct event *event);

/* event_of - the event of a record that was written at @time; NULL: it is gone, or @len is
 * too short for it. Locks: the same.
 */
const struct event *event_of(const struct record_head *head, size_t len, uint64_t time);
