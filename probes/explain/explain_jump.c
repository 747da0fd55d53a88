/* explain_jump.c - is there a jump at an address, and of which kind? Could there be one?
 * And if not, why?
 */
#include "probes/explain/explain.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/region/region.h"

/* rung_of_site - the rung that the planner has chosen. It is not stored; the written jump
 * shows it.
 */
static enum pun_rung rung_of_site(const struct site *site)
{
    if (site_is_call(site))
        return PUN_CALL;
    if (!jump_site(site)->pad_off)
        return PUN_DIRECT;
    if (jump_site(site)->jump_len == jump_site(site)->jump_span)
        return PUN_FAR;
    return jump_site(site)->jump_span > PUN_JUMP_LEN ? PUN_PADDED : PUN_PLAIN;
}

static void jump_refuse(struct explain_jump *j, enum probe_reason reason)
{
    j->state = JUMP_NONE;
    j->why = reason;
}

static void look_at_jump(struct explain_jump *j, const struct site *site)
{
    j->state = JUMP_IS_THERE;
    j->by_region = region_is_open(site);
    j->rung = j->by_region ? PUN_NONE : rung_of_site(site);
    j->pad = site_pad(site);
    j->is_evicted = !site->probes;
}

void explain_look_at_jump(struct explain_jump *j, const struct site *site)
{
    if (site->state == SITE_OPTIMIZED)
        look_at_jump(j, site);
    else if (!optimize_is_on() || optimize_get_method() == OPTIMIZE_OFF)
        j->state = JUMP_OFF;
    else if (site->state != SITE_ARMED)
        j->state = JUMP_UNARMED;
    else if (jump_is_at(site, STAGE_REFUSED))
        jump_refuse(j, (enum probe_reason)jump_site(site)->jump_why);
    else
        j->state = JUMP_SOON;
}

static void try_region(struct explain_jump *j, const struct site *site)
{
    struct probe_reject why = { 0 };
    struct region region;

    j->state = JUMP_POSSIBLE;
    j->by_region = true;
    if (region_plan(site->addr, &region, &why))
        jump_refuse(j, why.reason);
}

static void try_pun(struct explain_jump *j, struct site *site)
{
    struct pun pun;
    enum probe_reason reason = optimize_try(site, &pun);

    if (reason) {
        jump_refuse(j, reason);
        return;
    }
    j->state = JUMP_POSSIBLE;
    j->rung = pun.rung;
    j->pad = pun.pad;
}

void explain_try_jump(struct explain_jump *j, struct site *site)
{
    if (!optimize_is_on() || optimize_get_method() == OPTIMIZE_OFF)
        j->state = JUMP_OFF;
    else if (optimize_get_method() == OPTIMIZE_REGION)
        try_region(j, site);
    else
        try_pun(j, site);
}

const char *explain_rung(enum pun_rung rung)
{
    static const char *const sentences[PUN_RUNGS] = {
        [PUN_DIRECT] = "there is room for all of it, and it reaches its detour by itself",
        [PUN_CALL] = "it stays a call, to the detour, and pushes what it pushed",
        [PUN_PLAIN] = "shorter than a jump, so the bytes behind say where, to a pad",
        [PUN_PADDED] = "as plain, but without prefixes it would land where no pad can be",
        [PUN_FAR] = "there is room, but the jump in front reads it, so it goes to a pad",
    };

    return rung > PUN_NONE && rung < PUN_RUNGS ? sentences[rung] : "?";
}
