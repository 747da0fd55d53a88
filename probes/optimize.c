/* optimize.c - stage 11: from the breakpoint to the jump, in a thread of its own.
 *
 * Nobody waits for it: a probe works from the moment it is armed, by a trap, and some
 * milliseconds later by a jump. What waits is not kept in a queue. A site that is armed and
 * has no reason against it waits, whatever brought it there (arming, a neighbour that had
 * to be moved, a reason that has gone), so nothing can be queued twice or be forgotten.
 *
 * A set of many is not armed first: what its breakpoints would cost, in the engine's own code
 * above all, is more than the planning. It comes as jumps, in the thread that registers it.
 *
 * One pass, for all that wait:
 *
 *   1. neighbours that were evicted for a jump that is gone get their bytes back
 *   2. jumps that read a byte of those that wait become breakpoints, and wait, too
 *   3. what a site had from an earlier jump is freed, after one quiescence for all
 *   4. each gets its detour; whoever gets none knows why, and stays a breakpoint
 *   5. plan all of them together, since each may read its successors' new bytes
 *   6. pads are mapped and filled. From here on nothing can fail
 *   7. the text is written in one batch
 *
 * Up to 6 nothing of the text has changed but by 1 and 2, which leave it right.
 */
#include "probes/optimize.h"

#include "kernel/base/err.h"
#include "probes/detour.h"
#include "probes/life.h"
#include "probes/registry.h"
#include "probes/text/pad.h"

/* Locks: all PLAT_PROBES; on and method are read without it. */
static bool on = true;
static enum optimize_method method = OPTIMIZE_PUN;
static size_t refused; /* sites with a reason against a jump */
static size_t evicted; /* sites without a probe */
static struct optimize_stats stats;

static bool may_jump(void)
{
    return on && method != OPTIMIZE_OFF;
}

static bool is_waiting(const struct site *site)
{
    return (site->state == SITE_ARMED || site->coming) && site->probes && !site->jump_why;
}

void optimize_refuse(struct site *site, enum probe_reason reason)
{
    if (!site->jump_why)
        refused++;
    site->jump_why = (uint8_t)reason;
}

bool optimize_ask_again(struct site *site)
{
    if (!site->jump_why)
        return false;
    site->jump_why = PROBE_OK;
    refused--;
    return true;
}

size_t optimize_refused(void)
{
    return refused;
}

static void clear_refusal(struct site *site, void *unused UNUSED)
{
    site->jump_why = PROBE_OK;
}

void optimize_kick(void)
{
    if (may_jump())
        plat_optimize_soon();
}

void optimize_retry(void)
{
    if (refused)
        registry_for_each(clear_refusal, NULL);
    refused = 0;
    optimize_kick();
}

/* ---- 1: evicted neighbours ---- */

struct idle {
    struct site_list list;
    size_t max;
};

static void collect_idle(struct site *site, void *arg)
{
    struct idle *idle = arg;

    if (site->probes)
        return;
    evicted++;
    if (idle->list.count < idle->max && !unoptimize_reader(site->addr))
        site_list_add(&idle->list, site);
}

/* sweep_some - all of them, or one when there is no memory. Return: may there be more? */
static bool sweep_some(void)
{
    struct idle idle = { .max = evicted };

    if (site_list_make(&idle.list, idle.max, NULL)) {
        idle.max = 1;
        site_list_make(&idle.list, idle.max, NULL);
    }
    evicted = 0; /* and counted anew: some may carry probes meanwhile */
    registry_for_each(collect_idle, &idle);
    site_list_close(&idle.list);
    evicted -= idle.list.count;
    if (idle.list.count) {
        kprobe_disarm(idle.list.sites, idle.list.count);
        kprobe_reclaim(idle.list.sites, idle.list.count);
    }
    site_list_free(&idle.list);
    return idle.list.count;
}

void optimize_sweep(void)
{
    while (evicted && sweep_some())
        ;
}

/* ---- 2: who waits ---- */

static void collect_waiting(struct site *site, void *arg)
{
    if (is_waiting(site))
        site_list_add(arg, site);
}

static void count_waiting(struct site *site, void *arg)
{
    *(size_t *)arg += is_waiting(site);
}

static int list_waiting(struct site_list *list)
{
    size_t count = 0;
    int err;

    registry_for_each(count_waiting, &count);
    err = site_list_make(list, count, NULL);
    if (err)
        return err;
    registry_for_each(collect_waiting, list);
    site_list_close(list);
    return 0;
}

/* list_with_readers - those that wait, and those that wait once the bytes of the first are
 * free to change. It ends: each turn but the last leaves fewer jumps, or fewer refused.
 */
static int list_with_readers(struct site_list *list)
{
    for (;;) {
        size_t before = unoptimize_jumps() + refused;
        int err = list_waiting(list);

        if (err)
            return err;
        unoptimize_around(list->sites, list->count);
        if (unoptimize_jumps() + refused == before)
            return 0;
        site_list_free(list);
    }
}

/* ---- 3: what is left of earlier jumps ---- */

#define PADS_MAX 1024

/* release_pads - Nobody can be on them. */
static void release_pads(struct site **sites, size_t count)
{
    static uintptr_t pads[PADS_MAX]; /* PLAT_PROBES */
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (sites[i]->pad_off)
            pads[n++] = site_pad(sites[i]);
        site_set_pad(sites[i], 0);
        if (n == PADS_MAX || (n && i + 1 == count)) {
            pad_free_all(pads, n);
            n = 0;
        }
    }
}

void optimize_release(struct site **sites, size_t count)
{
    release_pads(sites, count);
    for (size_t i = 0; i < count; i++) {
        detour_release(sites[i]);
        region_release(sites[i]);
    }
}

/* A detour leads to where its site was to go on when it was made: regions change that. */
static bool has_leftovers(const struct site *site)
{
    if (site->pad_off || region_has_copies(site))
        return true;
    return site->detour && (method == OPTIMIZE_REGION || !detour_is_current(site));
}

static void release_leftovers(const struct site_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (has_leftovers(list->sites[i])) {
            plat_quiesce();
            optimize_release(list->sites, list->count);
            return;
        }
}

/* ---- 4: detours ---- */

/* prepare_detours - those that get none drop out of @list. */
static void prepare_detours(struct site_list *list)
{
    struct probe_reject why;
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct site *site = list->sites[i];

        if (detour_prepare(site, &why))
            optimize_refuse(site, why.reason);
        else
            list->sites[kept++] = site;
    }
    list->count = kept;
}

/* ---- the pass ---- */

static void make_jumps(struct site_list *list)
{
    size_t neighbours = 0;

    release_leftovers(list);
    if (method == OPTIMIZE_REGION) {
        stats.optimized += optimize_write_regions(list);
    } else {
        prepare_detours(list);
        stats.optimized += optimize_write(list, &neighbours);
    }
    evicted += neighbours;
    stats.passes++;
}

/* refuse_waiting - without memory to list them. */
static void refuse_waiting(struct site *site, void *unused UNUSED)
{
    if (is_waiting(site))
        optimize_refuse(site, PROBE_NO_MEMORY);
}

static void run_locked(void)
{
    struct site_list list;

    if (!may_jump())
        return;
    optimize_sweep();
    if (list_with_readers(&list)) {
        registry_for_each(refuse_waiting, NULL);
        return;
    }
    if (list.count)
        make_jumps(&list);
    site_list_free(&list);
}

void optimize_coming(struct site **sites, size_t count)
{
    if (method == OPTIMIZE_REGION)
        return; /* a region is opened behind a breakpoint */
    for (size_t i = 0; i < count; i++)
        sites[i]->coming = !site_is_armed(sites[i]);
    run_locked();
    for (size_t i = 0; i < count; i++)
        sites[i]->coming = false;
}

void optimize_run(void)
{
    plat_lock(PLAT_PROBES);
    run_locked();
    plat_unlock(PLAT_PROBES);
}

/* ---- switches ---- */

static void collect_jumps(struct site *site, void *arg)
{
    if (site->state == SITE_OPTIMIZED)
        site_list_add(arg, site);
}

/* undo_all - every jump a breakpoint again. */
static int undo_all(void)
{
    struct site_list list;
    int err = site_list_make(&list, unoptimize_jumps(), NULL);

    if (err)
        return err;
    registry_for_each(collect_jumps, &list);
    site_list_close(&list);
    unoptimize_around(list.sites, list.count);
    site_list_free(&list);
    optimize_sweep();
    return 0;
}

/* change - the switches have to be as @on_now and @method_now say, and the text as well. */
static int change(bool on_now, enum optimize_method method_now)
{
    int err = 0;

    if (on_now != on || method_now != method)
        err = undo_all();
    if (err)
        return err;
    on = on_now;
    method = method_now;
    optimize_retry();
    run_locked();
    return 0;
}

int optimize_switch(bool on_now)
{
    int err = register_check_caller(NULL);

    if (err)
        return err;
    plat_lock(PLAT_PROBES);
    err = change(on_now, method);
    plat_unlock(PLAT_PROBES);
    return err;
}

int optimize_set_method(enum optimize_method method_now)
{
    int err = register_check_caller(NULL);

    if (err)
        return err;
    plat_lock(PLAT_PROBES);
    err = change(on, method_now);
    plat_unlock(PLAT_PROBES);
    return err;
}

bool optimize_is_on(void)
{
    return READ_ONCE(on);
}

enum optimize_method optimize_get_method(void)
{
    return READ_ONCE(method);
}

void optimize_stats_get(struct optimize_stats *out)
{
    *out = stats;
    out->evicted = evicted;
    out->refused = refused;
}
