/* truth_window.h - a window: an interval of time whose ends are exact on all CPUs.
 * Within it the counters of the engine and those of the plugin (exec_count.c) count
 * the same executions.
 */
#pragma once

#include "probes/kprobe.h"

#include <stddef.h>
#include <stdint.h>

/* The counts of one probed address. The host reads an array of these from guest memory.
 */
struct truth_record {
    uint64_t addr; /* 0: no probe */
    uint64_t hits;
    uint64_t missed[MISS_CAUSES];
    uint64_t own; /* of a question: hits that were the tracer's own work */
};

/* If the probes are those of a question, the byte that says whether it pauses: it counts
 * while the window is open, and not before or after. Else NULL.
 */
extern uint8_t *truth_pause;

/* truth_open - open the window: from now on executions are counted. Meanwhile every other
 * CPU waits in code without probes.
 * @probes:  @count probes whose instructions are to be counted, registered or not
 * @past:    for each, the address of the jump that leads past it (probes/jump/link.h), or
 *           0
 * @records: for each, a record; truth_close() adds to it what was counted
 *
 * Context: thread.
 */
void truth_open(struct kprobe *const *probes, const uintptr_t *past,
                struct truth_record *records, size_t count);

/* truth_tell_links - tell the plugin the present links, while the window is open. No
 * probe may be hit meanwhile.
 * truth_forget_links - tell the plugin that there are no links. The text of the probes
 * need not exist any more.
 *
 * Context: thread.
 */
void truth_tell_links(struct kprobe *const *probes, const uintptr_t *past, size_t count);
void truth_forget_links(void);

/* truth_close - close the window that truth_open() has opened, and complete the records.
 */
void truth_close(struct kprobe *const *probes, struct truth_record *records,
                 size_t count);
