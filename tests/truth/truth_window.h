/* truth_window.h - an interval of time with sharp ends on all CPUs, in which the engine's
 * counters and those of the plugin (exec_count.c) count the same.
 */
#pragma once

#include "probes/kprobe.h"

#include <stddef.h>
#include <stdint.h>

/* One probed address. The host reads an array of these out of guest memory. */
struct truth_record {
    uint64_t addr; /* 0: no probe */
    uint64_t hits;
    uint64_t missed[MISS_CAUSES];
};

/* truth_open - from now on executions count. While it happens every other CPU stands in
 * code that carries no probe.
 * @probes:  whose instructions are to be counted, registered or not
 * @past:    as many addresses of jumps that lead past them (probes/jump/link.h); 0: none does
 * @records: as many; what is counted until truth_close() will be added to them
 *
 * Context: thread.
 */
void truth_open(struct kprobe *const *probes, const uintptr_t *past,
                struct truth_record *records, size_t count);

/* truth_tell_links - while it is open: others lead past the probes now, of which none is hit
 * meanwhile. truth_forget_links - none does; the probes need not have any text.
 *
 * Context: thread.
 */
void truth_tell_links(struct kprobe *const *probes, const uintptr_t *past, size_t count);
void truth_forget_links(void);

/* truth_close - the end of what truth_open() began. */
void truth_close(struct kprobe *const *probes, struct truth_record *records,
                 size_t count);
