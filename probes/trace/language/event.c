/* event.c - keeps the table of events, which finds an event by its number. */
#include "probes/trace/language/event.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"

struct event event_print = {
    .id = EVENT_ID_PRINT, .group = "ftrace", .name = "print", .shape = EVENT_TEXT
};

struct event event_stack = {
    .id = EVENT_ID_STACK, .group = "ftrace", .name = "kernel_stack", .shape = EVENT_STACK
};

#define BUCKETS 256 /* printing looks the event of each record up, among thousands */

static struct event *events[BUCKETS]; /* the bucket of an event is its id % BUCKETS */
static uint32_t next_id = EVENT_ID_FIRST;

size_t event_head(const struct event *event)
{
    switch (event->shape) {
    case EVENT_PROBE:
        return sizeof(struct record_probe);
    case EVENT_RETURN:
        return sizeof(struct record_return);
    case EVENT_SYNTH:
        return sizeof(struct record_head);
    case EVENT_STACK:
        return sizeof(struct record_stack);
    case EVENT_TEXT:
        break;
    }
    return offsetof(struct record_text, text);
}

/* event_place - return the pointer in a bucket that points to the event of number @id. If
 * there is no such event, that pointer is the NULL at the end of the bucket.
 */
static struct event **event_place(uint32_t id)
{
    struct event **at = &events[id % BUCKETS];

    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

/* free_from - return the first number, from @id on, that no event has. */
static uint32_t free_from(uint32_t id)
{
    while (*event_place(id))
        id++;
    return id;
}

int event_add(struct event *event, uint64_t now)
{
    uint32_t id = free_from(next_id);
    struct event **at;

    if (id > EVENT_ID_LAST)
        id = free_from(EVENT_ID_FIRST);
    if (id > EVENT_ID_LAST)
        return -ENOSPC;
    event->id = (uint16_t)id;
    event->born = now;
    at = event_place(id);
    event->next = NULL;
    *at = event;
    next_id = id + 1;
    return 0;
}

void event_remove(struct event *event)
{
    *event_place(event->id) = event->next;
}

COLD void event_forget_births(void)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct event *event = events[i]; event; event = event->next)
            event->born = 0;
}

static const struct event *event_of_id(uint16_t id)
{
    if (id == EVENT_ID_PRINT)
        return &event_print;
    if (id == EVENT_ID_STACK)
        return &event_stack;
    return *event_place(id);
}

static size_t fixed_size(const struct event *event)
{
    const struct fetch_arg *last;

    if (!event->arg_count)
        return event_head(event);
    last = &event->args[event->arg_count - 1];
    return event_head(event) + last->offset + fetch_fixed_size(last);
}

const struct event *event_of(const struct record_head *head, size_t len, uint64_t time)
{
    const struct event *event;

    if (len < sizeof(*head))
        return NULL;
    event = event_of_id(head->type);
    if (!event || time < event->born || len < fixed_size(event))
        return NULL;
    return event;
}
