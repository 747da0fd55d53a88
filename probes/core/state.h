/* state.h - declares the states of a site: where in its life it is. The state is one
 * field, and only site_move() changes it.
 */
#pragma once

#include <stdint.h>

enum site_state {
    SITE_NEW,       /* allocated; nothing was made yet */
    SITE_PREPARED,  /* the slot is filled, the way to run is chosen */
    SITE_ARMED,     /* its int3 is in the text */
    SITE_OPTIMIZED, /* a jump is in the text */
    SITE_DISARMED,  /* the text is original again; a CPU may still be in the slot */
    SITE_DEAD,      /* no CPU is in the slot; about to be freed */
    SITE_STATES,
};

struct site;

/* site_move - change the state of @site, and show in the flags of its probes whether the
 * site is a jump now. An illegal move is a bug of the engine.
 * Context: thread or held.  Locks: PLAT_PROBES held.
 */
void site_move(struct site *site, enum site_state to);

/* site_state_name - "armed". Context: any. */
const char *site_state_name(enum site_state state);
