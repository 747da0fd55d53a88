/* unoptimize.c - stage 12: makes breakpoints of jumps.
 *
 * A pun reads bytes of the instructions behind it as its displacement. As long as it is a
 * jump, these bytes must not change. Before one of them changes (because the site there
 * is armed, disarmed, or becomes a jump itself), the reader has to stop reading it.
 * Usually optimize_batch.c finds another place for the reader. This file has the way that
 * cannot fail: the reader becomes a breakpoint, which reads nothing, and the optimizer
 * finds a new place for it later.
 *
 * To remove a jump changes the bytes that it was written over, and a jump in front may
 * read these bytes. So the readers of readers have to go as well:
 *
 *   1. collect the jumps among the sites, and the readers of their bytes, until there are
 *      no more. Each round adds only lower addresses, at most 8 bytes away
 *   2. in one batch, write int3 with the original bytes behind it, or only original bytes
 *      if the site is being disarmed. text_poke sees from the spans that a reader must
 *      lose its first byte before the bytes that it reads change. The batches go upwards,
 *      so a reader is never in a later batch than the bytes that it reads. So room for
 *      one batch is enough for any number of jumps
 *   3. the sites keep the pads and detours of these jumps until no thread can be inside.
 *      Then the optimizer or reclaim.c frees them, after quiescence
 *
 * A site that was refused a jump which would read these bytes may get one with other
 * bytes.
 */
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/link.h"
#include "probes/jump/near.h"
#include "probes/jump/optimize.h"
#include "probes/region/region.h"

#define BATCH_MAX 2048
#define TOGETHER (BATCH_MAX / 4) /* sites whose readers are looked for together */

static size_t all_jumps; /* sites that are SITE_OPTIMIZED; PLAT_PROBES */

void unoptimize_expect(long more)
{
    all_jumps += (size_t)more;
}

size_t unoptimize_jumps(void)
{
    return all_jumps;
}

/* ---- 1 ---- */

bool unoptimize_reads(const struct site *site, uintptr_t addr)
{
    return site->state == SITE_OPTIMIZED &&
           site->addr + jump_site(site)->jump_span > addr;
}

struct site *unoptimize_next_before(uintptr_t addr, const struct site *last)
{
    return near_next(last ? last->addr + 1 : addr - UNOPTIMIZE_SPAN_MAX + 1, addr);
}

struct site *unoptimize_reader(uintptr_t addr)
{
    struct site *site;

    unoptimize_for_each_before(site, addr)
        if (unoptimize_reads(site, addr))
            break;
    return site;
}

/* portion_add - add @site to @list, which holds one batch at most. */
static void portion_add(struct site_list *list, struct site *site)
{
    if (list->count < BATCH_MAX)
        site_list_add(list, site);
}

/* portion_add_readers - add the readers of @site to @list. A jump that reads any byte of
 * the instruction reads its first byte as well, because no jump begins inside the
 * instruction.
 */
static void portion_add_readers(const struct site *site, struct site_list *list)
{
    struct site *reader;

    unoptimize_for_each_before(reader, site->addr)
        if (unoptimize_reads(reader, site->addr))
            portion_add(list, reader);
}

/* portion_collect - collect the jumps of step 1 in @list. Return: false: the list is
 * full, and some may be missing.
 */
static bool portion_collect(struct site **sites, size_t count, struct site_list *list)
{
    list->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (sites[i]->state == SITE_OPTIMIZED)
            portion_add(list, sites[i]);
        else
            portion_add_readers(sites[i], list);
    }
    for (size_t i = 0; i < list->count; i++) /* the list grows meanwhile */
        portion_add_readers(list->sites[i], list);
    site_list_close(list);
    site_list_sort(list);
    return list->count < BATCH_MAX;
}

/* ---- 2 ---- */

static void poke_original(struct text_poke *poke, const struct site *site)
{
    poke->addr = site->addr;
    poke->len = jump_site(site)->jump_len;
    poke->old_span = jump_site(site)->jump_span;
    poke->new_span = INSN_INT3_LEN;
    poke->bytes[0] = jump_is_at(site, STAGE_TO_ORIGINAL) ? site->bytes[0] : INSN_INT3;
    for (size_t i = 1; i < jump_site(site)->jump_len; i++)
        poke->bytes[i] = site->bytes[i];
}

static void portion_write(struct site **sites, size_t count)
{
    static struct text_poke pokes[BATCH_MAX]; /* PLAT_PROBES */

    plat_lock(PLAT_TEXT);
    for (size_t i = 0; i < count; i++) {
        link_cut(sites[i]);
        poke_original(&pokes[i], sites[i]);
    }
    text_poke_batch(pokes, count);
    plat_unlock(PLAT_TEXT);
}

static void move_back(struct site *site)
{
    bool is_leaving = jump_is_at(site, STAGE_TO_ORIGINAL);

    site_move(site, is_leaving ? SITE_DISARMED : SITE_ARMED);
    if (!is_leaving && site->probes)
        jump_wait(site);
    else if (!is_leaving)
        jump_move(site, STAGE_NONE);
    if (region_is_open(site))
        region_close(site);
}

/* ---- refused sites whose jump becomes possible ---- */

/* A site may have been refused a jump because of the bytes that the jump would have used
 * as its displacement. With other bytes there the jump may be possible.
 */
void unoptimize_ask_before(struct site **sites, size_t count)
{
    struct site *site;
    bool any = false;

    for (size_t i = 0; i < count && optimize_refused(); i++)
        unoptimize_for_each_before(site, sites[i]->addr)
            any |= optimize_ask_again(site);
    if (any)
        optimize_kick();
}

static void portion_undo(const struct site_list *list)
{
    if (!list->count)
        return;
    portion_write(list->sites, list->count);
    for (size_t i = 0; i < list->count; i++)
        move_back(list->sites[i]);
    unoptimize_ask_before(list->sites, list->count);
    all_jumps -= list->count;
}

/* unoptimize - make breakpoints of the jumps among @sites and of their readers, the jumps
 * whose displacements use bytes of these sites. If one batch cannot hold all of them, the
 * lowest site that was found is taken first, together with its readers. These are fewer,
 * because all of them lie below that site.
 */
static void unoptimize(struct site **sites, size_t count)
{
    static struct site *room[BATCH_MAX]; /* PLAT_PROBES */
    struct site_list list = { .sites = room };
    struct site *lowest;

    while (!portion_collect(sites, count, &list)) {
        do
            lowest = room[0];
        while (!portion_collect(&lowest, 1, &list));
        portion_undo(&list);
    }
    portion_undo(&list);
}

void unoptimize_around(struct site **sites, size_t count)
{
    unoptimize_ask_before(sites, count);
    if (!all_jumps)
        return;
    site_list_sort(&(struct site_list){ .sites = sites, .count = count });
    for (size_t done = 0, n; done < count; done += n) {
        n = count - done < TOGETHER ? count - done : TOGETHER;
        unoptimize(sites + done, n);
    }
    optimize_kick();
}

void unoptimize_region(uintptr_t addr)
{
    struct site *site;

    unoptimize_for_each_before(site, addr)
        if (unoptimize_reads(site, addr) && region_is_open(site))
            break;
    if (site)
        unoptimize_around(&site, 1);
}
