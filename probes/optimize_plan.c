/* optimize_plan.c - stage 11, steps 5 to 7: plans, pads, and the batch that writes them.
 *
 * pun.c is pure; what it has to know of the text around is answered here. Its plans hold
 * together: each may read bytes that another writes. So it is all of them or, when there is
 * no memory for the pads, none.
 */
#include "kernel/base/err.h"
#include "probes/detour.h"
#include "probes/insn/encode.h"
#include "probes/life.h"
#include "probes/optimize.h"
#include "probes/pun.h"
#include "probes/registry.h"
#include "probes/text/pad.h"
#include "probes/text/text_poke.h"

#include <stdlib.h>

#define BATCH_MAX 2048
#define TRIES_MAX 8 /* a page for pads may turn out to be taken: plan again */

/* What a batch needs, allocated before anything changes. */
struct plan {
    struct pun_batch batch;
    struct pun *puns;        /* of the sites in the list, in order; behind, the evicted */
    struct site **sites;     /* of puns[] */
    struct text_poke *pokes; /* room for all, and so in the next two */
    struct pad_jump *jumps;
    uintptr_t *pads;
};

/* ---- what the planner asks ---- */

static bool byte_at(void *arg UNUSED, uintptr_t addr, uint8_t *byte)
{
    return plat_text_contains(addr, 1) && !plat_text_read(byte, addr, 1);
}

static bool is_free_pad(void *arg UNUSED, uintptr_t pad)
{
    return pad_is_free(pad);
}

/* Between functions nothing is executed. */
static bool is_padding(void *arg UNUSED, uintptr_t addr)
{
    struct plat_symbol sym;

    return plat_text_contains(addr, 1) && plat_symbol_at(addr, &sym) &&
           !plat_is_entry(addr) && !unoptimize_reader(addr);
}

static void ask(struct pun *pun, uintptr_t addr, const uint8_t *bytes, uint8_t len,
                bool is_call)
{
    pun->addr = addr;
    pun->len = len;
    pun->is_call = is_call;
    for (size_t i = 0; i < len; i++)
        pun->bytes[i] = bytes[i];
}

/* neighbour - an instruction without a probe that could carry one. */
static bool neighbour(void *arg UNUSED, uintptr_t addr, struct pun *out)
{
    struct probe_reject why;
    struct insn insn;

    if (registry_find(addr) || unoptimize_reader(addr) || kprobe_check(addr, &insn, &why))
        return false;
    ask(out, addr, insn.bytes, insn.len, insn.kind == INSN_CALL_REL);
    return true;
}

/* ---- 5 ---- */

static void plan_free(struct plan *plan)
{
    plat_free(plan->puns);
    plat_free(plan->sites);
    plat_free(plan->pokes);
    plat_free(plan->jumps);
    plat_free(plan->pads);
    plat_free(plan->batch.work);
}

static bool plan_make(struct plan *plan, const struct pun_env *env, size_t count)
{
    size_t evicted_max = 64 + count / 8, all = count + evicted_max;

    *plan = (struct plan){
        .puns = plat_alloc(all * sizeof(plan->puns[0])),
        .sites = plat_alloc(all * sizeof(plan->sites[0])),
        .pokes = plat_alloc(all * sizeof(plan->pokes[0])),
        .jumps = plat_alloc(all * sizeof(plan->jumps[0])),
        .pads = plat_alloc(all * sizeof(plan->pads[0])),
        .batch.work = plat_alloc(pun_work_len(count, evicted_max)),
        .batch.env = env,
        .batch.count = count,
        .batch.evicted_max = evicted_max,
    };
    plan->batch.puns = plan->puns;
    plan->batch.evicted = plan->puns + count;
    return plan->puns && plan->sites && plan->pokes && plan->jumps && plan->pads &&
           plan->batch.work && !unoptimize_reserve(all);
}

static void ask_all(struct plan *plan)
{
    for (size_t i = 0; i < plan->batch.count; i++) {
        const struct site *site = plan->sites[i];
        struct pun *pun = &plan->puns[i];

        *pun = (struct pun){ .detour = (uintptr_t)site->detour };
        ask(pun, site->addr, site->bytes, site->len, site_is_call(site));
    }
}

static enum probe_reason reason_of(const struct pun *pun)
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

static struct site *evict(const struct pun *pun)
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
        plan->sites[count + i] = evict(&plan->puns[count + i]);
        if (plan->sites[count + i])
            continue;
        reclaim_unreached(plan->sites + count, i);
        return false;
    }
    return true;
}

/* ---- 6 ---- */

static size_t list_pads(const struct plan *plan, size_t all)
{
    size_t n = 0;

    for (size_t i = 0; i < all; i++)
        if (plan->puns[i].rung != PUN_NONE && plan->puns[i].pad)
            plan->pads[n++] = plan->puns[i].pad;
    return n;
}

static void fill_pads(struct plan *plan, size_t all)
{
    size_t n = 0;

    for (size_t i = 0; i < all; i++)
        if (plan->puns[i].rung != PUN_NONE && plan->puns[i].pad)
            plan->jumps[n++] = (struct pad_jump){
                .pad = plan->puns[i].pad,
                .target = (uintptr_t)plan->sites[i]->detour,
            };
    pad_fill(plan->jumps, n);
}

/* plan_all - plans, pads and evicted neighbours. Return: why there is none of it. */
static enum probe_reason plan_all(struct plan *plan)
{
    int err = -EBUSY;

    for (unsigned i = 0; err == -EBUSY && i < TRIES_MAX; i++) {
        ask_all(plan);
        pun_plan(&plan->batch);
        err = pad_reserve(plan->pads,
                          list_pads(plan, plan->batch.count + plan->batch.evicted_count));
    }
    if (err)
        return err == -EBUSY ? PROBE_PADS_TAKEN : PROBE_NO_PAGE;
    if (evict_all(plan))
        return PROBE_OK;
    pad_free_all(plan->pads,
                 list_pads(plan, plan->batch.count + plan->batch.evicted_count));
    return PROBE_NO_MEMORY;
}

/* ---- 7 ---- */

static void poke_from(struct text_poke *poke, const struct pun *pun)
{
    *poke = (struct text_poke){ .addr = pun->addr, .len = 1, .bytes = { INSN_INT3 } };
    if (pun->rung == PUN_NONE)
        return;
    poke->len = pun->jump_len;
    poke->old_span = INSN_INT3_LEN;
    poke->new_span = pun->span;
    for (size_t i = 0; i < pun->jump_len; i++)
        poke->bytes[i] = pun->jump[i];
}

/* note_jump - what unoptimize.c and recover.c must know of it. What the jump covers behind
 * the instruction, padding, is remembered with its bytes.
 */
static void note_jump(struct site *site, const struct pun *pun)
{
    if (pun->jump_len > site->len &&
        plat_text_read(site->bytes + site->len, site->addr + site->len,
                       pun->jump_len - site->len))
        plat_bug("padding is not readable", site->addr);
    site->jump_len = pun->jump_len;
    site->jump_span = pun->span;
    site_set_pad(site, pun->pad);
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = ((const struct text_poke *)a)->addr;
    uintptr_t y = ((const struct text_poke *)b)->addr;

    return (x > y) - (x < y);
}

/* list_pokes - what gets no jump gets its int3, which others may have to read. */
static size_t list_pokes(struct plan *plan, size_t all)
{
    size_t n = 0;

    for (size_t i = 0; i < all; i++) {
        poke_from(&plan->pokes[n++], &plan->puns[i]);
        if (plan->puns[i].rung != PUN_NONE)
            note_jump(plan->sites[i], &plan->puns[i]);
    }
    if (plan->batch.evicted_count)
        qsort(plan->pokes, n, sizeof(plan->pokes[0]), by_address);
    return n;
}

static void move_on(struct site *site, const struct pun *pun)
{
    if (!site_is_armed(site))
        site_move(site, SITE_ARMED);
    if (pun->rung == PUN_NONE) {
        optimize_refuse(site, reason_of(pun));
        return;
    }
    site_move(site, SITE_OPTIMIZED);
    for (struct kprobe *p = site->probes; p; p = p->next)
        __atomic_or_fetch(&p->flags, KPROBE_FLAG_OPTIMIZED, __ATOMIC_RELAXED);
}

/* Downwards, so that no jump is in an earlier batch than what it reads. Why not all in one:
 * while its guards are in, the engine traps its way through its own code, which lies in front
 * of all other; the less of it at a time, the better.
 */
static void write_pokes(struct text_poke *pokes, size_t count)
{
    while (count) {
        size_t n = count < BATCH_MAX ? count : BATCH_MAX;

        count -= n;
        text_poke_batch(pokes + count, n);
    }
}

/* The first synchronisation is for the detours and pads: whole for everyone before a jump
 * leads there.
 */
static size_t write_all(struct plan *plan)
{
    size_t all = plan->batch.count + plan->batch.evicted_count;
    size_t n = list_pokes(plan, all), jumps = 0;

    plat_lock(PLAT_TEXT);
    fill_pads(plan, all);
    plat_sync_cores();
    write_pokes(plan->pokes, n);
    plat_unlock(PLAT_TEXT);
    for (size_t i = 0; i < all; i++) {
        move_on(plan->sites[i], &plan->puns[i]);
        jumps += plan->puns[i].rung != PUN_NONE;
    }
    unoptimize_expect(jumps);
    return jumps;
}

static void refuse_all(const struct site_list *list, enum probe_reason reason)
{
    for (size_t i = 0; i < list->count; i++)
        optimize_refuse(list->sites[i], reason);
}

static struct pun_env env_now(void)
{
    struct plat_pad_range range;

    plat_pad_range(&range);
    return (struct pun_env){
        .pads_start = range.start,
        .pads_end = range.end,
        .hole_start = range.hole_start,
        .hole_end = range.hole_end,
        .pad_is_free = is_free_pad,
        .byte_at = byte_at,
        .is_padding = is_padding,
        .neighbour = neighbour,
    };
}

enum probe_reason optimize_try(struct site *site, struct pun *out)
{
    enum probe_reason reason = PROBE_NO_MEMORY;
    struct pun_env env = env_now();
    struct plan plan;

    if (plan_make(&plan, &env, 1)) {
        plan.sites[0] = site;
        ask_all(&plan);
        pun_plan(&plan.batch);
        *out = plan.puns[0];
        reason = out->rung == PUN_NONE ? reason_of(out) : PROBE_OK;
    }
    plan_free(&plan);
    return reason;
}

size_t optimize_write(struct site_list *list, size_t *neighbours)
{
    struct pun_env env = env_now();
    enum probe_reason reason;
    struct plan plan;
    size_t made = 0;

    if (!plan_make(&plan, &env, list->count)) {
        refuse_all(list, PROBE_NO_MEMORY);
        plan_free(&plan);
        return 0;
    }
    site_list_sort(list);
    for (size_t i = 0; i < list->count; i++)
        plan.sites[i] = list->sites[i];
    reason = plan_all(&plan);
    if (reason) {
        refuse_all(list, reason);
    } else {
        made = write_all(&plan);
        *neighbours = plan.batch.evicted_count;
    }
    plan_free(&plan);
    return made;
}
