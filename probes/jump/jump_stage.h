/* jump_stage.h - what becomes of the jump at a probed address. One field, moved in one place.
 *
 * The state of the site (core/state.h) says what is in the text now; the stage says what is
 * wanted there, or is being written. jump_stage.c has the table of both.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum jump_stage {
    STAGE_NONE,    /* no jump, and none is wanted: not armed, or without a probe */
    STAGE_WAITING, /* a breakpoint, or about to be one; the optimizer will look at it */
    STAGE_REFUSED, /* a breakpoint, or about to be one; jump_why: why it gets no jump */
    STAGE_JUMP,    /* a jump */
    STAGE_PLANNED, /* in a batch that is being planned */
    STAGE_TO_JUMP, /* in a batch that is being written: a jump in the end */
    STAGE_TO_INT3, /* a breakpoint in the end */
    STAGE_TO_ORIGINAL, /* is being disarmed */
    JUMP_STAGES,
};

struct site;

/* jump_move - change the stage of @site. A move that the table does not have, or a stage
 * that does not fit the state of the site, is a bug of the engine.
 * jump_wait - @site is a breakpoint, or is about to become one. Its stage becomes
 * STAGE_REFUSED if jump_why has a reason, else STAGE_WAITING.
 * jump_stage_name - "waiting". Context: any.
 * Locks: PLAT_PROBES held.
 */
void jump_move(struct site *site, enum jump_stage to);
void jump_wait(struct site *site);
const char *jump_stage_name(enum jump_stage stage);

/* jump_is_at - is @site at @stage?   jump_is_changing - is it in a batch?
 * jump_is_pending - has the optimizer to find @site: it waits, has a reason against its jump,
 * or carries no probe? Then it is marked in the registry. Most sites are jumps, which the
 * optimizer need not look at.
 * Locks: PLAT_PROBES held.
 */
bool jump_is_at(const struct site *site, enum jump_stage stage);
bool jump_is_pending(const struct site *site);
bool jump_is_changing(const struct site *site);
