/* pass.h - the ways in which the oracle probes an instruction, and what each must show. */
#pragma once

#include "probes/core/life.h"
#include "probes/insn/insn.h"
#include "tests/conformance/fixture.h"

/* One run of one instruction with a probe on it. */
struct attempt {
    const struct fixture *fixture;
    const struct insn *insn;
    const struct setup *setup;
    const struct outcome *unprobed, *probed;
    unsigned ignored; /* bit n: general register n is not compared */
    uint64_t hits;    /* that were counted */
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
    enum tier tier; /* by a trap, of what is not emulated; TIERS: the table has no column
                     * for it */
    kprobe_pre_handler_t pre;
    kprobe_light_handler_t light;
    kprobe_post_handler_t post;
    bool scrambled; /* the program comes with other registers than it should */
    bool alone;     /* not for what traps or is interrupted on its own account */

    /* NULL, or what is wrong. */
    const char *(*check)(const struct attempt *a);
};

extern const struct pass passes[];
extern const size_t pass_count;

/* pass_begin - forget what handlers saw; they are about to see @setup. */
void pass_begin(const struct setup *setup);
