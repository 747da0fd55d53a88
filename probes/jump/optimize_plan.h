/* optimize_plan.h - struct plan: a change of text that is planned completely before its
 * first byte is written. Private to optimize_batch.c, optimize_plan.c and
 * optimize_write.c.
 */
#pragma once

#include "probes/core/life.h"
#include "probes/jump/pun.h"

struct retired_pads;
struct pad_jump;
struct text_poke;

/* All memory of a plan is allocated before anything changes. */
struct plan {
    struct pun_batch batch;
    struct pun_env env;
    bool is_undone;      /* jumps or int3s that are in the text now will change */
    struct pun *puns;    /* of the members, in order; then of the evicted instructions */
    struct site **sites; /* the site of each of puns[] */
    struct site **down;  /* ascending: become int3s; the original if being disarmed */
    size_t down_count;
    struct text_poke *pokes; /* room for a poke of each site, down[] included */
    size_t pokes_max;
    struct pad_jump *jumps; /* room for as many as puns[]; pads and old have the same */
    uintptr_t *pads;
    struct retired_pads *old; /* pads of jumps that get other pads */
};

/* plan_make - allocate a plan for the sites in @list, which are jumps or are to become
 * jumps, and for those in @down. Both lists are sorted; @list has room for
 * plan_evicted_max() more.
 * plan_all - find all plans, reserve the pads, and make sites of evicted neighbours.
 * After this nothing can fail.
 * plan_write - write the text and all that its jumps lead to, and move the sites to their
 * new states.
 * plan_free - free the memory of the plan, at any time. Locks: PLAT_PROBES held.
 * Return: plan_make: 0; -ENOMEM. plan_all: PROBE_OK; else why it failed, and nothing has
 *         changed. plan_write: how many new jumps there are.
 */
int plan_make(struct plan *plan, const struct site_list *list,
              const struct site_list *down);
enum probe_reason plan_all(struct plan *plan);
size_t plan_write(struct plan *plan);
void plan_free(struct plan *plan);

/* plan_evicted_max - how many instructions may be evicted for @count members. If the
 * members are few, each of them may need several; if they are many, few other
 * instructions are left.
 */
static inline size_t plan_evicted_max(size_t count)
{
    return count < 512 ? 8 * count : 4096 + count / 32;
}

/* plan_len - how many members and evicted instructions there are. */
static inline size_t plan_len(const struct plan *plan)
{
    return plan->batch.count + plan->batch.evicted_count;
}

/* plan_needs_pad - does the jump of @pun need a pad that does not exist yet? */
static inline bool plan_needs_pad(const struct pun *pun)
{
    return pun->rung != PUN_NONE && pun->pad && !pun->is_kept;
}

/* plan_reason - the reason why @pun, which has no plan, has none. */
enum probe_reason plan_reason(const struct pun *pun);
