/* state.c - moves a site from state to state. The legal moves are a table. */
#include "probes/core/state.h"

#include "probes/core/life.h"

#define TO(state) (uint8_t)(1u << (state))

static const struct {
    const char *name;
    uint8_t next;
} states[SITE_STATES] = {
    [SITE_NEW] = { "new", TO(SITE_PREPARED) | TO(SITE_DEAD) },
    [SITE_PREPARED] = { "prepared", TO(SITE_ARMED) | TO(SITE_DEAD) },
    [SITE_ARMED] = { "armed", TO(SITE_OPTIMIZED) | TO(SITE_DISARMED) },
    [SITE_OPTIMIZED] = { "optimized", TO(SITE_ARMED) | TO(SITE_DISARMED) },
    [SITE_DISARMED] = { "disarmed", TO(SITE_ARMED) | TO(SITE_DEAD) },
    [SITE_DEAD] = { "dead", 0 },
};

void site_move(struct site *site, enum site_state to)
{
    bool was_jump = site->state == SITE_OPTIMIZED;

    if (!(states[site->state].next & TO(to)))
        plat_bug("illegal state change of a probed address", site->addr);
    site->state = (uint8_t)to;
    if (was_jump || to == SITE_OPTIMIZED)
        aggr_mirror(site);
}

const char *site_state_name(enum site_state state)
{
    return state < SITE_STATES ? states[state].name : "?";
}
