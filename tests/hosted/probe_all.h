/* probe_all.h - puts a probe on each instruction of the fixtures. */
#pragma once

#include "probes/core/life.h"
#include "probes/kprobe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How hits happen, and how the probed instruction is run, where there is a choice. The
 * first three are by traps. From ASK_JUMP_COUNT on hits are by jumps, and the probes have
 * no handler, a light handler, a pre-handler, or a pre-handler and a post-handler.
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

/* The probe of an instruction, and its counts. */
struct counter {
    struct kprobe kp;
    _Atomic uint32_t pre, post; /* calls of handlers; light ones count as pre-handlers */
};

extern struct counter *counters; /* probe_all_count() of them, in order of address */
size_t probe_all_count(void);

/* counters_init - make counters[], in the first call, and check that each instruction of
 * the fixtures accepts a probe.
 * counters_reset - set all counts to 0, and prepare the probes for @way. No probe is
 * registered.
 */
void counters_init(void);
void counters_reset(enum way_asked way);

/* probe_all - register all probes as one set. Return: how many of them are jumps.
 * probe_one - register probe @i alone. Return: is it a jump?
 * unprobe_all - unregister all probes, and check that the text is as it was before.
 */
size_t probe_all(enum way_asked way);
bool probe_one(size_t i);
void unprobe_all(void);

/* trapping - return how many of the executions in @counts are at breakpoints.
 * @counts: as of fixture_trace()
 */
uint64_t trapping(const uint32_t *counts);

/* check_counts - check that hits and calls of handlers of each probe are @times times the
 * number of executions in @counts.
 * @counts: as of fixture_trace()
 */
void check_counts(const uint32_t *counts, uint32_t times, enum way_asked way);
