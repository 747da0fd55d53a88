/* optimize.c - stage 11: makes jumps of breakpoints, in a thread of its own.
 *
 * A caller that registers a probe does not wait for the optimizer: from the moment when
 * the probe is armed it works by a trap, and some milliseconds later by a jump. There is
 * no queue of waiting sites. To wait is a stage of the site (jump_stage.h), whatever the
 * cause: the site was armed, a neighbour had to be moved, a reason against its jump has
 * gone. So no site can be queued twice or be forgotten. The move to that stage marks the
 * site in the registry. A pass walks over the marked sites, so it takes no longer if
 * there are very many jumps.
 *
 * The sites of a large set of probes are not armed first: breakpoints, above all in the
 * engine's own code, would cost more than the planning. These sites become jumps at once,
 * in the thread that registers the set.
 *
 * One pass, for all sites that wait:
 *
 *   1. neighbours that were evicted for a jump that is gone get their bytes back. A pass
 *      in the thread that registers probes leaves this to the optimizer: it would look at
 *      all evicted neighbours for each new probe between jumps
 *   2. a site that was refused a jump waits again if that jump would read a waiting site
 *   3. the remains of earlier jumps are freed, after one quiescence for all of them
 *   4. each site gets its detour; a site that gets none stays a breakpoint, and keeps the
 *      reason
 *   5. all of them become jumps in one batch; jumps around them that read their bytes get
 *      other places: optimize_batch.c
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
static enum optimize_method method = OPTIMIZE_PUN;
static size_t refused; /* sites with a reason against a jump */
static size_t evicted; /* evicted neighbours: sites without a probe */
static struct optimize_stats stats;

/* is_held - has a debugger stopped all other CPUs? Then the optimizer makes no jumps, moves
 * no jump to another place, and waits for no quiescence. Jumps whose bytes must change
 * become breakpoints.
 */
static bool is_held(void)
{
    return plat_context() == PLAT_HELD;
}

static bool may_jump(void)
{
    return on && method != OPTIMIZE_OFF && !is_held();
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

/* may_have_gone - may a change of bytes have removed @reason? It does not free memory, so
 * refusals for lack of memory stay.
 */
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

/* sweep_some - free all evicted sites that no jump reads; only one if there is no memory
 * for a list. Return: was any freed? Then others may have become free to go.
 */
static bool sweep_some(void)
{
    struct idle idle = { .max = evicted };

    if (site_list_make(&idle.list, idle.max, NULL)) {
        idle.max = 1;
        site_list_make(&idle.list, idle.max, NULL);
    }
    evicted = 0; /* collect_idle() counts again: some sites may have probes now */
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

/* list_all_waiting - list the waiting sites. A refused site may get a jump when the bytes
 * behind it change. So each refused site whose jump would use bytes of a listed site as
 * its displacement becomes a waiting site as well. The loop ends, because each turn but
 * the last leaves fewer refused sites.
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

static void optimize_refuse_all(const struct site_list *list, enum probe_reason reason)
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
        optimize_refuse_all(list, reason);
}

/* make_regions - make jumps of @list by the region method. First, no other jump may read
 * or cover the bytes that these jumps displace.
 */
static void make_regions(struct site_list *list)
{
    unoptimize_around(list->sites, list->count);
    stats.optimized += optimize_write_regions(list);
}

/* refuse_waiting - refuse all waiting sites: there is no memory for a list of them. */
static bool refuse_waiting(struct site *site, void *unused UNUSED)
{
    if (is_waiting(site))
        optimize_refuse(site, PROBE_NO_MEMORY);
    return true;
}

/* is_left - must the next pass look at @site? If the pass has made it a jump, it need
 * not, and the site loses its mark.
 */
static bool is_left(struct site *site, void *unused UNUSED)
{
    return jump_is_pending(site);
}

static void run_locked(void)
{
    struct site_list list = { 0 };

    if (may_jump() && list_all_waiting(&list)) {
        registry_for_each_marked(refuse_waiting, NULL);
        return;
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
    if (method != OPTIMIZE_REGION && !is_held()) /* a region needs the breakpoint first */
        run_locked();
}

void optimize_run(void)
{
    plat_lock(PLAT_PROBES);
    if (may_jump())
        optimize_sweep();
    run_locked();
    plat_unlock(PLAT_PROBES);
}

/* ---- switches ---- */

static void collect_jumps(struct site *site, void *arg)
{
    if (site->state == SITE_OPTIMIZED)
        site_list_add(arg, site);
}

/* undo_all - make every jump a breakpoint again. */
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

/* set_mode - set both switches to @on_now and @method_now, and let the text follow. */
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
    int err = register_check_caller(__func__, NULL);

    if (err)
        return err;
    plat_lock(PLAT_PROBES);
    err = set_mode(on_now, method);
    plat_unlock(PLAT_PROBES);
    return err;
}

int optimize_set_method(enum optimize_method method_now)
{
    int err = register_check_caller(__func__, NULL);

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
