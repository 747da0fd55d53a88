/* probe_all.h - probes on every instruction of the fixtures that can carry one. */
#pragma once

#include "probes/kprobe.h"
#include "probes/life.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the displaced instruction is to be run, where there is a choice. */
enum way_asked { ASK_BOOST, ASK_STEP_INT3, ASK_STEP_TF, WAYS_ASKED };

/* One for each instruction. */
struct counter {
    struct kprobe kp;
    _Atomic uint32_t pre, post; /* handlers run */
};

extern struct counter *counters; /* probe_all_count() of them, in order of address */
size_t probe_all_count(void);

/* counters_init - all that cannot carry a probe are traps: it is checked.
 * counters_reset - nothing counted, nothing registered.
 */
void counters_init(void);
void counters_reset(enum way_asked way);

/* probe_all - as one set. unprobe_all - and the text is as it was. */
void probe_all(enum way_asked way);
void unprobe_all(void);

/* check_counts - hits and handlers of each are what @counts says, times @times.
 * @counts: by offset into the fixtures' text
 */
void check_counts(const uint32_t *counts, uint32_t times, enum way_asked way);
