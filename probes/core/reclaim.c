/* reclaim.c - stage 14: frees sites when no thread can be inside any more.
 *
 * Hits look sites up without locks. These five steps, in this order, make that safe:
 *   1. The caller disarms the sites: no CPU can trap at these addresses any more.
 *   2. Quiescence: the CPUs and threads that had trapped have left handlers and copies.
 *   3. The sites leave the registry. No hit looks for these addresses: that ended with 2.
 *   4. A synchronisation: hits of other addresses may have read these sites while they
 *      searched the registry; now all these searches have ended.
 *   5. The cells and the memory are freed.
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
    insn_slot_exit();
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
