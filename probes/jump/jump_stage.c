/* jump_stage.c - the table of the stages of a jump: the moves that are allowed from each
 * stage, and the states of the site that fit it.
 */
#include "probes/jump/jump_stage.h"

#include "probes/core/registry.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/near.h"

#define TO(stage) (uint8_t)(1u << (stage))
#define IN(state) (uint8_t)(1u << (state))

#define NO_JUMP (IN(SITE_PREPARED) | IN(SITE_ARMED) | IN(SITE_DISARMED))
#define ANY_TEXT (NO_JUMP | IN(SITE_OPTIMIZED))

/* If a plan is not carried out, a site in STAGE_PLANNED or STAGE_TO_INT3 goes back to the
 * stage that it came from. A neighbour that is evicted has no probe: it is planned
 * without having waited, and ends as a jump or with its original bytes. A site that gets
 * a jump by the region method goes from STAGE_WAITING to STAGE_JUMP, without a batch.
 */
static const struct {
    uint8_t next;   /* stages that may follow, as bits */
    uint8_t states; /* of the site, as bits */
} stages[JUMP_STAGES] = {
    [STAGE_NONE] = { TO(STAGE_WAITING) | TO(STAGE_REFUSED) | TO(STAGE_PLANNED) |
                         TO(STAGE_TO_ORIGINAL),
                     NO_JUMP },
    [STAGE_WAITING] = { TO(STAGE_REFUSED) | TO(STAGE_JUMP) | TO(STAGE_PLANNED) |
                            TO(STAGE_TO_INT3) | TO(STAGE_TO_ORIGINAL),
                        NO_JUMP },
    [STAGE_REFUSED] = { TO(STAGE_WAITING) | TO(STAGE_TO_INT3) | TO(STAGE_TO_ORIGINAL),
                        NO_JUMP },
    [STAGE_JUMP] = { TO(STAGE_NONE) | TO(STAGE_WAITING) | TO(STAGE_REFUSED) |
                         TO(STAGE_PLANNED) | TO(STAGE_TO_INT3) | TO(STAGE_TO_ORIGINAL),
                     IN(SITE_OPTIMIZED) },
    [STAGE_PLANNED] = { TO(STAGE_TO_JUMP) | TO(STAGE_TO_INT3) | TO(STAGE_TO_ORIGINAL) |
                            TO(STAGE_WAITING) | TO(STAGE_JUMP),
                        ANY_TEXT },
    [STAGE_TO_JUMP] = { TO(STAGE_JUMP), ANY_TEXT },
    [STAGE_TO_INT3] = { TO(STAGE_WAITING) | TO(STAGE_REFUSED) | TO(STAGE_JUMP),
                        ANY_TEXT },
    [STAGE_TO_ORIGINAL] = { TO(STAGE_NONE), ANY_TEXT },
};

void jump_move(struct site *site, enum jump_stage to)
{
    struct jump_site *jump = jump_site(site);

    if (!(stages[jump->stage].next & TO(to)) || !(stages[to].states & IN(site->state)))
        plat_bug("illegal change of a jump's stage", site->addr);
    jump->stage = to & 0xf;
    near_note(site->addr);
    if (jump_is_pending(site))
        registry_mark(site);
}

void jump_wait(struct site *site)
{
    enum jump_stage to = jump_site(site)->jump_why ? STAGE_REFUSED : STAGE_WAITING;

    if (!jump_is_at(site, to))
        jump_move(site, to);
}

bool jump_is_at(const struct site *site, enum jump_stage stage)
{
    return jump_site(site)->stage == stage;
}

bool jump_is_pending(const struct site *site)
{
    return jump_is_at(site, STAGE_WAITING) || jump_site(site)->jump_why || !site->probes;
}

bool jump_is_changing(const struct site *site)
{
    return jump_site(site)->stage >= STAGE_PLANNED;
}
