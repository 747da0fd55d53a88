/* optimize.c - stage 11: from the breakpoint to the jump, in a thread of its own.
 *
 * Registering does not wait for it: a probe works from the moment it is armed, by a trap,
 * and some milliseconds later by a jump. Sites that wait are not kept in a queue: to wait is
 * a stage of the site (jump_stage.h), whatever brought it there (arming, a neighbour that had
 * to be moved, a reason that has gone), so nothing can be queued twice or be forgotten. The
 * move to that stage marks the site in the registry. A pass walks over the marked sites, so
 * it takes no longer where there are very many jumps.
 *
 * A set of many is not armed first: its breakpoints, above all those in the engine's own
 * code, would cost more than the planning. Its sites become jumps at once, in the thread
 * that registers the set.
 *
 * One pass, for all that wait:
 *
 *   1. neighbours that were evicted for a jump that is gone get their bytes back
 *   2. a site also waits if it was refused a jump that would read a waiting one
 *   3. what earlier jumps have left is freed, after one quiescence for all
 *   4. each gets its detour; a site that gets none knows why, and stays a breakpoint
 *   5. all of them become jumps in one batch, with other places for the jumps around them
 *      that read their bytes: optimize_batch.c
 */
#include "probes/jump/optimize.h"

#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/platform_jump.h"
#include "probes/jump/retired.h"

/* Locks: all PLAT_PROBES; on and method are read without it. */
static bool on = true;
static bool held; /* by a debugger: see optimize_hold() */
static enum optimize_method method = OPTIMIZE_PUN;
static size_t refused; /* sites with a reason against a jump */
static size_t evicted; /* sites without a probe */
static struct optimize_stats stats;

static bool may_jump(void)
{
    return on && !held && method != OPTIMIZE_OFF;
}

static bool is_waiting(const struct site *site)
{
    return jump_is_at(site, STAGE_WAITING);
}

void optimize_refuse(struct site *site, enum probe_reason reason)
{
    if (!jump_site(site)->jump_why)
        refused++;
    jump_site(site)->jump_why = (uint8_t)reason;
    jump_wait(site);
}

/* Other bytes make no memory. */
static bool may_have_gone(enum probe_reason reason)
{
    return reason != PROBE_OK && reason != PROBE_NO_MEMORY && reason != PROBE_NO_SLOT &&
           reason != PROBE_NO_PAGE;
}

static bool clear_refusal(struct site *site, void *unused UNUSED)
{
    jump_site(site)->jump_why = PROBE_OK;
    if (jump_is_at(site, STAGE_REFUSED))
        jump_wait(site);
    return jump_is_pending(site);
}

bool optimize_ask_again(struct site *site)
{
    if (!may_have_gone((enum probe_reason)jump_site(site)->jump_why))
        return false;
    clear_refusal(site, NULL);
    refused--;
    return true;
}

size_t optimize_refused(void)
{
    return refused;
}

void optimize_hold(bool hold)
{
    held = hold;
}

void optimize_kick(void)
{
    if (may_jump())
        plat_optimize_soon();
}

void optimize_retry(void)
{
    if (refused)
        registry_for_each_marked(clear_refusal, NULL);
    refused = 0;
    optimize_kick();
}

/* ---- 1: evicted neighbours ---- */

struct idle {
    struct site_list list;
    size_t max;
};

static bool collect_idle(struct site *site, void *arg)
{
    struct idle *idle = arg;

    if (site->probes)
        return jump_is_pending(site);
    evicted++;
    if (idle->list.count < idle->max && !unoptimize_reader(site->addr))
        site_list_add(&idle->list, site);
    return true;
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
    registry_for_each_marked(collect_idle, &idle);
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

/* ---- 2: sites that wait ---- */

static bool collect_waiting(struct site *site, void *arg)
{
    if (is_waiting(site))
        site_list_add(arg, site);
    return true;
}

static bool count_waiting(struct site *site, void *arg)
{
    *(size_t *)arg += is_waiting(site);
    return true;
}

static int list_waiting(struct site_list *list)
{
    size_t count = 0;
    int err;

    registry_for_each_marked(count_waiting, &count);
    err = site_list_make(list, count, NULL);
    if (err)
        return err;
    registry_for_each_marked(collect_waiting, list);
    site_list_close(list);
    return 0;
}

/* list_all_waiting - list the waiting sites. A refused site may have a better chance when
 * the bytes behind it change. So each refused site whose jump would use bytes of a listed
 * site as its displacement becomes a waiting one, too. The loop ends: each turn but the
 * last leaves fewer refused sites.
 */
static int list_all_waiting(struct site_list *list)
{
    for (;;) {
        size_t before = refused;
        int err = list_waiting(list);

        if (err)
            return err;
        unoptimize_ask_before(list->sites, list->count);
        if (refused == before)
            return 0;
        site_list_free(list);
    }
}

/* ---- 3: what is left of earlier jumps ---- */

/* retired_first - move the sites that still have something of an earlier jump to the
 * front of @list. Return: how many these are.
 */
static size_t retired_first(const struct site_list *list)
{
    size_t n = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct site *site = list->sites[i];

        if (!retired_at(site))
            continue;
        list->sites[i] = list->sites[n];
        list->sites[n++] = site;
    }
    return n;
}

static void release_retired(const struct site_list *list)
{
    size_t n = retired_first(list);

    if (!n && !retired_pending())
        return;
    plat_quiesce();
    retired_release_spent(list->sites, n);
}

/* ---- 4: detours ---- */

/* prepare_detours - make the detours of @list. A site that gets none leaves @list. */
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

static void refuse_all(const struct site_list *list, enum probe_reason reason)
{
    for (size_t i = 0; i < list->count; i++)
        optimize_refuse(list->sites[i], reason);
}

static enum probe_reason change_sites(const struct site_list *up,
                                      const struct site_list *down, bool *is_done)
{
    struct optimize_result result = { 0 };
    enum probe_reason reason = optimize_change(up, down, &result);

    stats.optimized += result.made;
    evicted += result.evicted;
    *is_done = result.is_done;
    if (retired_pending())
        optimize_kick();
    return reason;
}

static void make_jumps(struct site_list *list)
{
    static const struct site_list none;
    enum probe_reason reason = PROBE_OK;
    bool is_done;

    prepare_detours(list);
    site_list_sort(list);
    if (list->count)
        reason = change_sites(list, &none, &is_done);
    if (reason)
        refuse_all(list, reason);
}

/* make_regions - No other jump reads or covers what is displaced. */
static void make_regions(struct site_list *list)
{
    unoptimize_around(list->sites, list->count);
    stats.optimized += optimize_write_regions(list);
}

/* refuse_waiting - without memory to list them. */
static bool refuse_waiting(struct site *site, void *unused UNUSED)
{
    if (is_waiting(site))
        optimize_refuse(site, PROBE_NO_MEMORY);
    return true;
}

/* is_left - Return: false: the pass has made a jump of @site, and the next ones need not look
 * at it.
 */
static bool is_left(struct site *site, void *unused UNUSED)
{
    return jump_is_pending(site);
}

static void run_locked(void)
{
    struct site_list list = { 0 };

    if (may_jump()) {
        optimize_sweep();
        if (list_all_waiting(&list)) {
            registry_for_each_marked(refuse_waiting, NULL);
            return;
        }
    }
    release_retired(&list);
    if (list.count) {
        stats.passes++;
        if (method == OPTIMIZE_REGION)
            make_regions(&list);
        else
            make_jumps(&list);
        registry_for_each_marked(is_left, NULL);
    }
    site_list_free(&list);
}

bool optimize_around(struct site **sites, size_t count)
{
    static const struct site_list none;
    struct site_list down = { .sites = sites, .count = count };
    bool is_done;

    if (!count || !may_jump() || method != OPTIMIZE_PUN || !unoptimize_jumps())
        return false;
    unoptimize_ask_before(sites, count);
    site_list_sort(&down);
    change_sites(&none, &down, &is_done);
    return is_done;
}

void optimize_at_once(void)
{
    if (method != OPTIMIZE_REGION && !held) /* a region is opened behind a breakpoint */
        run_locked();
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

/* set_mode - the switches have to be as @on_now and @method_now say, and the text as well. */
static int set_mode(bool on_now, enum optimize_method method_now)
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
    err = set_mode(on_now, method);
    plat_unlock(PLAT_PROBES);
    return err;
}

int optimize_set_method(enum optimize_method method_now)
{
    int err = register_check_caller(NULL);

    if (err)
        return err;
    plat_lock(PLAT_PROBES);
    err = set_mode(on, method_now);
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
