/* trace_interval.h - writes the lines for the tracer's files that measure the time between
 * two places: a variable of the start, a synthetic event, and an action of the end. What the
 * question asks for is then asked of the synthetic event.
 *
 * Context: thread.
 */
#pragma once

#include "kernel/fs/seq.h"
#include "probes/console/trace_line.h"

#define TRACE_FROM "_from" /* behind the question's name: the event of the first place */
#define TRACE_TO "_to"     /* of the second one */

/* trace_interval_synth - print to @out the line of synthetic_events for the event @name.
 * @definition: the line of kprobe_events of the second place: the event has its fields
 * trace_interval_start, trace_interval_end - print the lines for the files `trigger`.
 * @clock:  of the times, which counts nanoseconds
 * @paused: the histograms begin paused
 */
void trace_interval_synth(const struct trace_line *line, const char *name,
                          const char *definition, struct seq *out);
void trace_interval_start(const struct trace_line *line, const char *clock, bool paused,
                          struct seq *out);
void trace_interval_end(const struct trace_line *line, const char *group,
                        const char *name, const char *definition, const char *clock,
                        bool paused, struct seq *out);
