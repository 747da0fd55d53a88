/* one_event.h - an event of the tracer with a histogram, and its hits, for scenarios. */
#pragma once

#include "probes/trace/live/live.h"
#include "tests/explore/machine.h"

#define ONE_HIST "hist:keys=a:size=128" /* its trigger */

extern struct live_event one_event;
extern bool one_event_refuses; /* to be armed */

/* one_event_start_as - make the event that @line defines, with the histogram attached. */
void one_event_start_as(const char *line);
/* one_event_start - the same, of a probe at an instruction. */
void one_event_start(void);

/* one_event_hit - a CPU comes to the probe of the event: what probes/trace/live/live_hit.c
 * does with a histogram. Return: whether one was attached.
 */
bool one_event_hit(void);
