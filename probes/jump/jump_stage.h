/* jump_stage.h - the stage of a jump: what the engine wants of the jump at a probed
 * address. One field holds the stage, and one function changes it.
 *
 * The state of the site (core/state.h) says what is in the text now. The stage says what
 * the engine wants there, or is writing there. jump_stage.c has the table of both.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum jump_stage {
    STAGE_NONE, /* no jump, and none is wanted: the site is not armed, or has no probe */
    STAGE_WAITING, /* a breakpoint, or about to be one; the optimizer will look at it */
    STAGE_REFUSED, /* a breakpoint, or about to be one, and gets no jump: see jump_why */
    STAGE_JUMP,    /* a jump */
    STAGE_PLANNED, /* in a batch whose plan is being made */
    STAGE_TO_JUMP, /* in a batch that is being written: the site becomes a jump */
    STAGE_TO_INT3, /* in a batch: the site becomes a breakpoint */
    STAGE_TO_ORIGINAL, /* the site is being disarmed: it gets its original bytes */
    JUMP_STAGES,
};

struct site;

/* jump_move - change the stage of @site. A move that the table does not have, or a stage
 * that does not fit the state of the site, is a bug of the engine.
 * jump_wait - set the stage of @site, which is a breakpoint or is about to become one: to
 * STAGE_REFUSED if jump_why has a reason, else to STAGE_WAITING.
 * Locks: PLAT_PROBES held.
 */
void jump_move(struct site *site, enum jump_stage to);
void jump_wait(struct site *site);

/* jump_is_at - is @site at @stage?
 * jump_is_changing - is @site in a batch?
 * jump_is_pending - must the optimizer look at @site? Yes, if the site waits for a jump,
 * has a reason against its jump, or carries no probe. Such a site is marked in the
 * registry. Most sites are jumps with probes; the optimizer need not look at these.
 * Locks: PLAT_PROBES held.
 */
bool jump_is_at(const struct site *site, enum jump_stage stage);
bool jump_is_pending(const struct site *site);
bool jump_is_changing(const struct site *site);
