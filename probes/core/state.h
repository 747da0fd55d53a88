/* state.h - where in its life a probed address is. One field, moved in one place. */
#pragma once

#include <stdint.h>

enum site_state {
    SITE_NEW,       /* allocated, nothing made yet */
    SITE_PREPARED,  /* slot filled, way to run chosen */
    SITE_ARMED,     /* its int3 is in the text */
    SITE_OPTIMIZED, /* a jump is */
    SITE_DISARMED,  /* the text is original again; a CPU may still be in the slot */
    SITE_DEAD,      /* no CPU is in the slot; about to be freed */
    SITE_STATES,
};

struct site;

/* site_move - change the state of @site, and what the flags of its probes show of it.
 * An illegal move is a bug of the engine.
 * Context: thread.  Locks: PLAT_PROBES held.
 */
void site_move(struct site *site, enum site_state to);

/* site_state_name - "armed". Context: any. */
const char *site_state_name(enum site_state state);
