/* pass.h - the passes of the oracle: a pass runs instructions with a probe of one kind,
 * and checks the outcome.
 */
#pragma once

#include "probes/core/life.h"
#include "probes/insn/insn.h"
#include "probes/program/program.h"
#include "tests/conformance/fixture.h"

/* One run of one instruction with a probe on it. */
struct attempt {
    const struct fixture *fixture;
    const struct insn *insn;
    const struct setup *setup;
    const struct outcome *unprobed, *probed;
    unsigned ignored;                     /* bit n: general register n is not compared */
    uint64_t hits;                        /* how many hits the probe has counted */
    const struct kprobe_program *program; /* of the probe, or NULL */
};

enum tier {
    TIER_BOOST,
    TIER_STEP_INT3,
    TIER_STEP_TF,
    TIER_EMULATE,
    TIER_PUN,
    TIER_REGION,
    TIERS,
};

struct pass {
    const char *name;
    enum step_engine engine;
    enum tier tier; /* of a hit by a trap whose instruction is not emulated; TIERS: the
                     * pass is not in the table of tiers */
    kprobe_pre_handler_t pre;
    kprobe_light_handler_t light;
    kprobe_post_handler_t post;
    const struct kprobe_program *program;
    bool scrambled; /* the program begins with other registers than those of the setup */
    bool alone;     /* not for programs that step themselves or get an interrupt */

    /* check the outcome; return NULL, or what is wrong */
    const char *(*check)(const struct attempt *a);
};

extern const struct pass passes[];
extern const size_t pass_count;

/* pass_begin - forget what the handlers have seen. @setup: that of the next run */
void pass_begin(const struct setup *setup);
