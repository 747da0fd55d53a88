/* retired.c - stages 11 to 14: frees the pads and detours of jumps that are gone.
 *
 * After the last jump to a pad or a detour is gone, a CPU may still be inside. So both
 * are kept until quiescence. Then the optimizer frees all of them together, or the
 * function that frees a site does.
 */
#include "probes/jump/retired.h"

#include "probes/core/life.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/jump/pad.h"
#include "probes/region/region.h"
#include "probes/returns/return_point.h"

#define PADS_MAX 1024

struct retired_pads *retired_kept; /* PLAT_PROBES */

struct retired_pads *retired_pads_new(size_t max)
{
    struct retired_pads *pads = plat_alloc(sizeof(*pads) + max * sizeof(pads->pads[0]));

    if (pads)
        pads->count = 0;
    return pads;
}

void retired_keep(struct retired_pads *pads)
{
    if (!pads->count) {
        plat_free(pads);
        return;
    }
    pads->next = retired_kept;
    retired_kept = pads;
}

static void release_kept(void)
{
    while (retired_kept) {
        struct retired_pads *pads = retired_kept;

        retired_kept = pads->next;
        pad_free_all(pads->pads, pads->count);
        plat_free(pads);
    }
}

static void release_pads(struct site **sites, size_t count)
{
    static uintptr_t pads[PADS_MAX]; /* PLAT_PROBES */
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (jump_site(sites[i])->pad_off)
            pads[n++] = site_pad(sites[i]);
        site_set_pad(sites[i], 0);
        if (n == PADS_MAX || (n && i + 1 == count)) {
            pad_free_all(pads, n);
            n = 0;
        }
    }
}

/* is_spent - can @site not use its detour, or its copies, again? A detour leads to where
 * the program went on when the detour was made; a region changes this place.
 */
static bool is_spent(const struct site *site)
{
    if (region_has_copies(site))
        return true;
    return site_detour(site) &&
           (optimize_get_method() == OPTIMIZE_REGION || !detour_is_current(site));
}

bool retired_at(const struct site *site)
{
    return jump_site(site)->pad_off || is_spent(site);
}

static void release_detour(struct site *site)
{
    detour_release(site);
    region_release(site);
}

/* has_called - does the detour of @site call functions? They may not have returned. */
static bool has_called(const struct site *site)
{
    return site_detour(site) && jump_site(site)->kind == DETOUR_RETURN;
}

static void release_detours(struct site **sites, size_t count,
                            bool (*has_to_go)(const struct site *site))
{
    bool called = false;

    for (size_t i = 0; i < count && !called; i++)
        called = has_called(sites[i]) && has_to_go(sites[i]);
    if (called)
        return_points_leave();
    for (size_t i = 0; i < count; i++)
        if (has_to_go(sites[i]))
            release_detour(sites[i]);
}

void retired_release_spent(struct site **sites, size_t count)
{
    release_kept();
    release_pads(sites, count);
    release_detours(sites, count, is_spent);
}

static bool is_any_site(const struct site *site UNUSED)
{
    return true;
}

void retired_release(struct site **sites, size_t count)
{
    release_kept();
    release_pads(sites, count);
    release_detours(sites, count, is_any_site);
}
