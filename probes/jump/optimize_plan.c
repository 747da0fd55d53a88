/* optimize_plan.c - stages 11 and 12: makes the plan of a batch for optimize_batch.c.
 *
 * The planner, pun.c, is pure; this file answers its questions about the text around. The
 * plans depend on each other: a jump may read bytes that another one writes. So either
 * all of them are used or, if there is no memory for the pads, none.
 */
#include "probes/jump/optimize_plan.h"
#include "kernel/base/err.h"
#include "probes/core/registry.h"
#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/jump/pad.h"
#include "probes/jump/platform_jump.h"
#include "probes/jump/retired.h"
#include "probes/region/region.h"
#include "probes/region/targets.h"

_Static_assert(UNOPTIMIZE_SPAN_MAX == PUN_JUMP_MAX, "a jump and its prefixes");

#define TRIES_MAX 8 /* a page for pads may be in use for something else: plan again */

/* ---- what the planner asks ---- */

/* undo_byte - set @byte, the byte at @addr, to its value after the batch has taken the
 * jump of @site, or its int3, out of the text.
 */
static void undo_byte(const struct site *site, uintptr_t addr, uint8_t *byte)
{
    size_t at = addr - site->addr;

    if (!jump_is_changing(site))
        return;
    if (at == 0)
        *byte = jump_is_at(site, STAGE_TO_ORIGINAL) ? site->bytes[0] : INSN_INT3;
    else if (site->state == SITE_OPTIMIZED && at < jump_site(site)->jump_len)
        *byte = site->bytes[at];
}

static bool byte_at(void *arg, uintptr_t addr, uint8_t *byte)
{
    const struct plan *plan = arg;
    const struct site *site;

    if (!plat_text_contains(addr, 1) || plat_text_read(byte, addr, 1))
        return false;
    if (!plan->is_undone)
        return true;
    unoptimize_for_each_before(site, addr)
        undo_byte(site, addr, byte);
    site = registry_find(addr);
    if (site)
        undo_byte(site, addr, byte);
    return true;
}

/* is_pinned - does a jump that is not in the batch read the byte at @addr? */
static bool is_pinned(uintptr_t addr)
{
    const struct site *site;

    unoptimize_for_each_before(site, addr)
        if (!jump_is_changing(site) && unoptimize_reads(site, addr))
            break;
    return site;
}

static bool is_free_pad(void *arg UNUSED, uintptr_t pad)
{
    return pad_is_free(pad);
}

static bool is_dead_padding(void *arg UNUSED, uintptr_t addr)
{
    return region_is_padding(addr) && !targets_inside(addr, addr + 1) && !is_pinned(addr);
}

static void pun_set(struct pun *pun, uintptr_t addr, const uint8_t *bytes, uint8_t len,
                    bool is_call)
{
    pun->addr = addr;
    pun->len = len;
    pun->is_call = is_call;
    for (size_t i = 0; i < len; i++)
        pun->bytes[i] = bytes[i];
}

/* plan_neighbour - may the instruction at @addr be evicted? It must have no probe, be allowed
 * to carry one, and have a copy that works in every cell. The last condition is needed
 * because the whole plan fails if a planned eviction fails.
 */
static bool plan_neighbour(void *arg UNUSED, uintptr_t addr, struct pun *out)
{
    struct probe_reject why;
    struct insn insn;

    if (registry_find(addr) || is_pinned(addr) || kprobe_check(addr, &insn, &why) ||
        !detour_can_reach(&insn))
        return false;
    pun_set(out, addr, insn.bytes, insn.len, insn.kind == INSN_CALL_REL);
    return true;
}

/* ---- 2 ---- */

void plan_free(struct plan *plan)
{
    plat_free(plan->puns);
    plat_free(plan->pokes);
    plat_free(plan->jumps);
    plat_free(plan->pads);
    plat_free(plan->old);
    plat_free(plan->batch.work);
}

static void env_make(struct plan *plan)
{
    struct plat_pad_range range;

    plat_pad_range(&range);
    plan->env = (struct pun_env){
        .pads_start = range.start,
        .pads_end = range.end,
        .hole_start = range.hole_start,
        .hole_end = range.hole_end,
        .arg = plan,
        .pad_is_free = is_free_pad,
        .byte_at = byte_at,
        .is_padding = is_dead_padding,
        .neighbour = plan_neighbour,
    };
}

int plan_make(struct plan *plan, const struct site_list *list,
              const struct site_list *down)
{
    size_t evicted_max = plan_evicted_max(list->count), all = list->count + evicted_max;
    size_t pokes_max = all + down->count;

    *plan = (struct plan){
        .sites = list->sites,
        .down = down->sites,
        .down_count = down->count,
        .puns = plat_alloc(all * sizeof(plan->puns[0])),
        .pokes = plat_alloc(pokes_max * sizeof(plan->pokes[0])),
        .pokes_max = pokes_max,
        .jumps = plat_alloc(all * sizeof(plan->jumps[0])),
        .pads = plat_alloc(all * sizeof(plan->pads[0])),
        .old = retired_pads_new(all),
        .batch.work = plat_alloc(pun_work_len(list->count, evicted_max)),
        .batch.env = &plan->env,
        .batch.count = list->count,
        .batch.evicted_max = evicted_max,
    };
    env_make(plan);
    plan->batch.puns = plan->puns;
    plan->batch.evicted = plan->puns + list->count;
    if (plan->puns && plan->pokes && plan->jumps && plan->pads && plan->old &&
        plan->batch.work)
        return 0;
    return -ENOMEM;
}

/* plan_of_now - describe the jump that @site is now. Which of the rungs it was does not
 * matter any more.
 */
static void plan_of_now(struct pun *pun, const struct site *site)
{
    pun->pad = site_pad(site);
    pun->rung = pun->is_call ? PUN_CALL : pun->pad ? PUN_PLAIN : PUN_DIRECT;
    pun->jump_len = jump_site(site)->jump_len;
    pun->span = jump_site(site)->jump_span;
    pun->prefixes = (uint8_t)(jump_site(site)->jump_span - INSN_JMP32_LEN);
    if (plat_text_read(pun->jump, site->addr, jump_site(site)->jump_len))
        plat_bug("a jump is not readable", site->addr);
}

static void puns_set(struct plan *plan)
{
    plan->is_undone = plan->down_count;
    for (size_t i = 0; i < plan->batch.count; i++) {
        const struct site *site = plan->sites[i];
        struct pun *pun = &plan->puns[i];

        *pun = (struct pun){ .detour = (uintptr_t)site_detour(site),
                             .is_evicted = !site->probes };
        pun_set(pun, site->addr, site->bytes, site->len, site_is_call(site));
        if (site->state != SITE_OPTIMIZED)
            continue;
        plan_of_now(pun, site);
        plan->is_undone = true;
    }
}

enum probe_reason plan_reason(const struct pun *pun)
{
    switch (pun->why) {
    case PUN_TAKEN:
        return PROBE_PADS_TAKEN;
    case PUN_UNKNOWN:
        return PROBE_NEXT_UNKNOWN;
    default:
        return PROBE_NO_LANDING;
    }
}

/* ---- evicted neighbours become sites without probes ---- */

static struct site *evict_site(const struct pun *pun)
{
    struct probe_reject why;
    struct insn insn;
    struct site *site;

    if (kprobe_check(pun->addr, &insn, &why))
        return NULL;
    site = kprobe_prepare(&insn, &why);
    if (!site)
        return NULL;
    if (detour_prepare(site, &why) || registry_insert(site)) {
        detour_release(site);
        kprobe_unprepare(site);
        return NULL;
    }
    return site;
}

static bool evict_all(struct plan *plan)
{
    size_t count = plan->batch.count;

    for (size_t i = 0; i < plan->batch.evicted_count; i++) {
        plan->sites[count + i] = evict_site(&plan->puns[count + i]);
        if (plan->sites[count + i])
            continue;
        reclaim_unreached(plan->sites + count, i);
        return false;
    }
    return true;
}

/* ---- 3 ---- */

static size_t list_pads(const struct plan *plan)
{
    size_t n = 0;

    for (size_t i = 0; i < plan_len(plan); i++)
        if (plan_needs_pad(&plan->puns[i]))
            plan->pads[n++] = plan->puns[i].pad;
    return n;
}

enum probe_reason plan_all(struct plan *plan)
{
    int err = -EBUSY;

    for (unsigned i = 0; err == -EBUSY && i < TRIES_MAX; i++) {
        puns_set(plan);
        pun_plan(&plan->batch);
        err = pad_reserve(plan->pads, list_pads(plan));
    }
    if (err)
        return err == -EBUSY ? PROBE_PADS_TAKEN : PROBE_NO_PAGE;
    if (evict_all(plan))
        return PROBE_OK;
    pad_free_all(plan->pads, list_pads(plan));
    return PROBE_NO_MEMORY;
}

enum probe_reason optimize_try(struct site *site, struct pun *out)
{
    static const struct site_list none;
    struct site_list list = { .sites = &site, .count = 1 };
    enum probe_reason reason = PROBE_NO_MEMORY;
    struct plan plan;

    if (!plan_make(&plan, &list, &none)) {
        puns_set(&plan);
        pun_plan(&plan.batch);
        *out = plan.puns[0];
        reason = out->rung == PUN_NONE ? plan_reason(out) : PROBE_OK;
    }
    plan_free(&plan);
    return reason;
}
