/* event.h - the events that can be recorded, and the table that finds an event by its
 * number.
 *
 * A record has Linux's layout. It begins with one of the record structs below, each of
 * which begins with struct record_head. The arguments follow, as
 * probes/trace/language/fetch.h stores them.
 *
 * Numbers count up. A number is given to a new event only after the counter has gone
 * through all numbers up to EVENT_ID_LAST. A record that is older than the event with its
 * number belongs to a deleted event, and is never shown as a record of the new event.
 */
#pragma once

#include "probes/trace/language/fetch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first bytes of each record. */
struct record_head {
    uint16_t type; /* event.id */
    uint8_t flags; /* RECORD_IRQS_OFF ... */
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
    uint64_t caller[]; /* the innermost caller is the first */
};

#define STACK_RECORD_MAX 32 /* callers in a record_stack */

enum event_shape { EVENT_PROBE, EVENT_RETURN, EVENT_SYNTH, EVENT_TEXT, EVENT_STACK };

struct event {
    uint16_t id;   /* given by event_add() */
    uint64_t born; /* the time of event_add(), in the ring's clock: an older record with
                    * this number belongs to a deleted event */
    const char *group, *name;
    enum event_shape shape;
    unsigned arg_count;
    const struct fetch_arg *args; /* not of the last two shapes */
    struct event *next;           /* [events] the next event in the same bucket */
};

#define EVENT_ID_STACK 4   /* as on Linux: stacks, which the trigger stacktrace records */
#define EVENT_ID_PRINT 5   /* as on Linux: texts that are written to trace_marker */
#define EVENT_ID_FIRST 256 /* the first number that event_add() gives */
#define EVENT_ID_LAST 65535

/* The events of trace_marker and of stacks. They always exist. */
extern struct event event_print, event_stack;

/* event_head - return how many bytes of a record of @event stand before its first
 * argument. Context: any.
 */
size_t event_head(const struct event *event);

/* event_add - give @event a number, and enter it in the table that event_of() searches.
 * @now: the time, in the clock of the records
 *
 * Locks:  the caller's lock held. It also keeps out event_remove() and event_of().
 * Return: 0; -ENOSPC all numbers are in use.
 */
int event_add(struct event *event, uint64_t now);
/* event_remove - take @event out of the table. Its number is given to a new event only
 * after the counter has gone through all other numbers. Locks: the caller's lock held.
 */
void event_remove(struct event *event);
/* event_forget_births - the records from now on are in another clock, and the earlier ones
 * have gone. Locks: as above.
 */
void event_forget_births(void);

/* event_of - return the event of a record of @len bytes that was written at @time.
 * Locks:  the caller's lock held.
 * Return: the event; NULL: it was deleted, or @len is too short for a record of it.
 */
const struct event *event_of(const struct record_head *head, size_t len, uint64_t time);
