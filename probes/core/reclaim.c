/* reclaim.c - stage 14: when no thread can be inside any more, a site can be given back.
 *
 * The order is what makes lookups without locks safe:
 *   1. disarmed (by the caller): no CPU can trap at these addresses any more
 *   2. quiescence: those that had trapped are through, handlers and copies included
 *   3. out of the registry, which no CPU asks for these addresses from 2 on
 *   4. a synchronisation: no hit of another address is still looking at them in passing
 *   5. cells and memory are free
 */
#include "probes/core/extend.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"

void reclaim_rest(void)
{
    if (registry_count())
        return;
    registry_exit();
    boundary_forget();
    ext_exit();
    plat_lock(PLAT_TEXT);
    insn_slot_exit();
    plat_unlock(PLAT_TEXT);
}

/* unreach - steps 3 and 4. */
static void unreach(struct site **sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        registry_remove(sites[i]);
    plat_sync_cores();
}

static void sites_unprepare(struct site **sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        kprobe_unprepare(sites[i]);
    reclaim_rest();
}

void reclaim_unreached(struct site **sites, size_t count)
{
    if (!count)
        return;
    unreach(sites, count);
    sites_unprepare(sites, count);
}

void kprobe_reclaim(struct site **sites, size_t count)
{
    plat_quiesce();
    if (!count)
        return;
    unreach(sites, count);
    ext_release(sites, count);
    sites_unprepare(sites, count);
}
