/* optimize_region.c - stage 11 by the region method: one jump displaces several whole
 * instructions, of at least five bytes together. The engine waits for threads that may be
 * between these instructions.
 *
 * region_watch.c explains why the steps are in this order. They are taken for as many
 * sites at a time as can be watched:
 *
 *   1. the region of each site is planned, and its copies are made; a site that gets none
 *      keeps the reason
 *   2. one synchronisation, so that all CPUs see the copies
 *   3. each region is opened: from now on hits go on at its copies. Then its site gets a
 *      detour, which leads to the copies as well
 *   4. wait for threads whose ip lies where the jumps will be
 *   5. the text is written in one batch
 *
 * If a site gets no detour in step 3, for lack of memory, its region is closed again: its
 * text has not changed.
 */
#include "probes/core/life.h"
#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/region/region.h"

/* ---- 1 and 2 ---- */

/* prepare_regions - step 1. Return: how many of @sites have a region; they come first. */
static size_t prepare_regions(struct site **sites, size_t count)
{
    struct probe_reject why;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (region_prepare(sites[i], &why))
            optimize_refuse(sites[i], why.reason);
        else
            sites[kept++] = sites[i];
    return kept;
}

/* ---- 3 ---- */

static size_t open_regions(struct site **sites, size_t count)
{
    struct probe_reject why;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        region_open(sites[i]);
        if (!detour_prepare(sites[i], &why)) {
            sites[kept++] = sites[i];
            continue;
        }
        region_close(sites[i]);
        optimize_refuse(sites[i], why.reason);
    }
    return kept;
}

/* ---- 4 ---- */

static void wait_for_regions(struct site **sites, size_t count)
{
    static uintptr_t addrs[REGION_WATCH_MAX]; /* PLAT_PROBES */

    for (size_t i = 0; i < count; i++)
        addrs[i] = sites[i]->addr;
    region_watch(addrs, count);
    plat_quiesce();
    region_unwatch();
}

/* ---- 5 ---- */

/* jump_len - a direct call stays a call, with its prefixes, so that it pushes the same
 * return address.
 */
static uint8_t jump_len(const struct site *site)
{
    return site_is_call(site) ? site->len : REGION_JUMP_LEN;
}

/* note_region_jump - store in @site what unoptimize.c and recover.c must know of the
 * jump. The displaced bytes behind the instruction are kept like padding that a jump
 * covers.
 */
static void note_region_jump(struct site *site)
{
    for (size_t i = site->len; i < REGION_JUMP_LEN; i++)
        site->bytes[i] = jump_site(site)->region->bytes[i];
    jump_site(site)->jump_len = jump_len(site);
    jump_site(site)->jump_span = jump_len(site);
}

static int encode_call(uint8_t *bytes, const struct site *site)
{
    size_t prefixes = site->len - INSN_CALL32_LEN;

    for (size_t i = 0; i < prefixes; i++)
        bytes[i] = site->bytes[i];
    return insn_encode_call32(bytes + prefixes, site->addr + prefixes,
                              (uintptr_t)site_detour(site));
}

static void poke_region(struct text_poke *poke, const struct site *site)
{
    int err;

    *poke = (struct text_poke){
        .addr = site->addr,
        .len = jump_len(site),
        .old_span = INSN_INT3_LEN,
    };
    if (site_is_call(site))
        err = encode_call(poke->bytes, site);
    else
        err = insn_encode_jmp32(poke->bytes, site->addr, (uintptr_t)site_detour(site));
    if (err)
        plat_bug("a detour is out of reach", site->addr);
}

static void move_on(struct site *site)
{
    site_move(site, SITE_OPTIMIZED);
    jump_move(site, STAGE_JUMP);
}

static void write_regions(struct site **sites, size_t count)
{
    static struct text_poke pokes[REGION_WATCH_MAX]; /* PLAT_PROBES */

    for (size_t i = 0; i < count; i++) {
        poke_region(&pokes[i], sites[i]);
        note_region_jump(sites[i]);
    }
    plat_lock(PLAT_TEXT);
    plat_sync_cores(); /* all CPUs see whole detours before a jump leads there */
    text_poke_batch(pokes, count);
    plat_unlock(PLAT_TEXT);
    for (size_t i = 0; i < count; i++)
        move_on(sites[i]);
    unoptimize_expect((long)count);
}

/* ---- the pass ---- */

static size_t write_some(struct site **sites, size_t count)
{
    count = prepare_regions(sites, count);
    plat_sync_cores();
    count = open_regions(sites, count);
    if (!count)
        return 0;
    wait_for_regions(sites, count);
    write_regions(sites, count);
    return count;
}

size_t optimize_write_regions(struct site_list *list)
{
    size_t made = 0;

    site_list_sort(list);
    for (size_t done = 0, n; done < list->count; done += n) {
        n = list->count - done < REGION_WATCH_MAX ? list->count - done : REGION_WATCH_MAX;
        made += write_some(list->sites + done, n);
    }
    return made;
}
