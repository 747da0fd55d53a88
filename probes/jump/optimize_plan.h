/* optimize_plan.h - a change of text that is planned before the first byte of it is written.
 * Private to optimize_batch.c, optimize_plan.c and optimize_write.c.
 */
#pragma once

#include "probes/core/life.h"
#include "probes/jump/pun.h"

struct retired_pads;
struct pad_jump;
struct text_poke;

/* All of it is allocated before anything changes. */
struct plan {
    struct pun_batch batch;
    struct pun_env env;
    bool is_undone;      /* something that is in the text now will not be */
    struct pun *puns;    /* of the members, in order; behind, the evicted */
    struct site **sites; /* of puns[] */
    struct site **down; /* ascending: int3 in the end, or the original if it is leaving */
    size_t down_count;
    struct text_poke *pokes; /* room for all, down[] included */
    size_t pokes_max;
    struct pad_jump *jumps; /* room for all of puns[], and so in the next two */
    uintptr_t *pads;
    struct retired_pads *old; /* of jumps that get others */
};

/* plan_make - room for a plan of the sites in @list, which are jumps or are to become some,
 * and of those in @down. Both are sorted; @list has room for plan_evicted_max() more.
 * plan_all - plans, pads and evicted neighbours: from here on nothing can fail.
 * plan_write - write the text and all that its jumps lead to, and move the sites to their
 * new states.
 * plan_free - at any time.
 * Locks:  PLAT_PROBES held.
 * Return: plan_make: 0; -ENOMEM. plan_all: why it failed, and nothing has changed; PROBE_OK.
 *         plan_write: jumps that were none before.
 */
int plan_make(struct plan *plan, const struct site_list *list,
              const struct site_list *down);
enum probe_reason plan_all(struct plan *plan);
size_t plan_write(struct plan *plan);
void plan_free(struct plan *plan);

/* plan_evicted_max - how many instructions may be evicted for @count members. A few members
 * may need some each; with many members few other instructions are left.
 */
static inline size_t plan_evicted_max(size_t count)
{
    return count < 512 ? 8 * count : 4096 + count / 32;
}

/* plan_len - members and evicted ones. */
static inline size_t plan_len(const struct plan *plan)
{
    return plan->batch.count + plan->batch.evicted_count;
}

/* plan_needs_pad - one that is not there yet? */
static inline bool plan_needs_pad(const struct pun *pun)
{
    return pun->rung != PUN_NONE && pun->pad && !pun->is_kept;
}

/* plan_reason - why @pun, which is none, is none. */
enum probe_reason plan_reason(const struct pun *pun);
