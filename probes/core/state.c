/* state.c - the legal moves, as a table. */
#include "probes/core/state.h"

#include "probes/core/life.h"

#define TO(state) (uint8_t)(1u << (state))

static const uint8_t legal_next[SITE_STATES] = {
    [SITE_NEW] = TO(SITE_PREPARED) | TO(SITE_DEAD),
    [SITE_PREPARED] = TO(SITE_ARMED) | TO(SITE_DEAD),
    [SITE_ARMED] = TO(SITE_OPTIMIZED) | TO(SITE_DISARMED),
    [SITE_OPTIMIZED] = TO(SITE_ARMED) | TO(SITE_DISARMED),
    [SITE_DISARMED] = TO(SITE_ARMED) | TO(SITE_DEAD),
};

static const char *const names[SITE_STATES] = {
    [SITE_NEW] = "new",           [SITE_PREPARED] = "prepared",
    [SITE_ARMED] = "armed",       [SITE_OPTIMIZED] = "optimized",
    [SITE_DISARMED] = "disarmed", [SITE_DEAD] = "dead",
};

void site_move(struct site *site, enum site_state to)
{
    bool was_jump = site->state == SITE_OPTIMIZED;

    if (!(legal_next[site->state] & TO(to)))
        plat_bug("illegal state change of a probed address", site->addr);
    site->state = (uint8_t)to;
    if (was_jump || to == SITE_OPTIMIZED)
        aggr_mirror(site);
}

const char *site_state_name(enum site_state state)
{
    return state < SITE_STATES ? names[state] : "?";
}
