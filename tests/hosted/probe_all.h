/* probe_all.h - probes on every instruction of the fixtures that can carry one. */
#pragma once

#include "probes/core/life.h"
#include "probes/kprobe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the displaced instruction is to be run, where there is a choice: by traps; from
 * ASK_JUMP_COUNT on by jumps, and the probes have no handlers, light ones, some before, some
 * also behind.
 */
enum way_asked {
    ASK_BOOST,
    ASK_STEP_INT3,
    ASK_STEP_TF,
    ASK_JUMP_COUNT,
    ASK_JUMP_LIGHT,
    ASK_JUMP_CALL,
    ASK_JUMP_POST,
    WAYS_ASKED,
};

static inline bool by_jumps(enum way_asked way)
{
    return way >= ASK_JUMP_COUNT;
}

/* One for each instruction. */
struct counter {
    struct kprobe kp;
    _Atomic uint32_t pre, post; /* handlers run; a light one is a pre-handler */
};

extern struct counter *counters; /* probe_all_count() of them, in order of address */
size_t probe_all_count(void);

/* counters_init - all that cannot carry a probe are traps: it is checked.
 * counters_reset - nothing counted, nothing registered.
 */
void counters_init(void);
void counters_reset(enum way_asked way);

/* probe_all - as one set. Return: how many are jumps.
 * probe_one - that of them alone. Return: is it a jump?
 * unprobe_all - and the text is as it was.
 */
size_t probe_all(enum way_asked way);
bool probe_one(size_t i);
void unprobe_all(void);

/* trapping - how many of the executions in @counts are of probes that are no jumps. */
uint64_t trapping(const uint32_t *counts);

/* check_counts - hits and handlers of each are what @counts says, times @times.
 * @counts: by offset into the fixtures' text
 */
void check_counts(const uint32_t *counts, uint32_t times, enum way_asked way);
