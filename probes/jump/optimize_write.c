/* optimize_write.c - stages 11 and 12: a plan is made true, steps 3 to 5 of optimize_batch.c.
 *
 * Owns what a site knows of its jump: jump_len, jump_span, its pad, and the padding behind
 * its instruction that the jump covers.
 */
#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/link.h"
#include "probes/jump/optimize.h"
#include "probes/jump/optimize_plan.h"
#include "probes/jump/pad.h"
#include "probes/jump/retired.h"

#define BATCH_MAX 2048

static bool is_jump(const struct site *site)
{
    return site->state == SITE_OPTIMIZED;
}

/* ---- 3 ---- */

static void fill_pads(struct plan *plan)
{
    size_t n = 0;

    for (size_t i = 0; i < plan_len(plan); i++)
        if (plan_needs_pad(&plan->puns[i]))
            plan->jumps[n++] = (struct pad_jump){
                .pad = plan->puns[i].pad,
                .target = (uintptr_t)site_detour(plan->sites[i]),
            };
    pad_fill(plan->jumps, n);
}

/* ---- 4: what is written ---- */

/* poke_without_jump - no jump is there afterwards, but @first. */
static void poke_without_jump(struct text_poke *poke, const struct site *site,
                              uint8_t first)
{
    *poke = (struct text_poke){ .addr = site->addr, .len = 1, .bytes = { first } };
    if (is_jump(site)) {
        poke->len = jump_site(site)->jump_len;
        poke->old_span = jump_site(site)->jump_span;
        poke->new_span = INSN_INT3_LEN;
    }
    for (size_t i = 1; i < INSN_MAX_LEN; i++)
        poke->bytes[i] = site->bytes[i];
}

/* poke_jump - Padding that the jump of now covers, and the new one does not, comes back. */
static void poke_jump(struct text_poke *poke, const struct site *site,
                      const struct pun *pun)
{
    poke_without_jump(poke, site, INSN_INT3);
    for (size_t i = 0; i < pun->jump_len; i++)
        poke->bytes[i] = pun->jump[i];
    if (pun->jump_len > poke->len)
        poke->len = pun->jump_len;
    poke->old_span = is_jump(site) ? jump_site(site)->jump_span : INSN_INT3_LEN;
    poke->new_span = pun->span;
}

static void poke_member(struct text_poke *poke, const struct site *site,
                        const struct pun *pun)
{
    if (pun->rung != PUN_NONE)
        poke_jump(poke, site, pun);
    else
        poke_without_jump(poke, site, pun->is_evicted ? site->bytes[0] : INSN_INT3);
}

/* Of the members and of the evicted ones, which are both sorted, from the end. */
struct cursor {
    size_t members, evicted, down; /* not yet taken */
};

static uintptr_t addr_before(struct site **sites, size_t count)
{
    return count ? sites[count - 1]->addr : 0;
}

/* list_pokes - of all, ascending. A site that gets no jump gets its int3, which other jumps
 * may have to read. A jump that is kept is left alone, unless it extends over bytes that
 * are written.
 * Return: the first; they go on until the end of the room.
 */
static struct text_poke *list_pokes(struct plan *plan)
{
    struct cursor left = { plan->batch.count, plan->batch.evicted_count,
                           plan->down_count };
    struct text_poke *poke = plan->pokes + plan->pokes_max;
    struct site **evicted = plan->sites + plan->batch.count;
    uintptr_t low = UINTPTR_MAX; /* of what is written so far */

    while (left.members || left.evicted || left.down) {
        uintptr_t member = addr_before(plan->sites, left.members);
        uintptr_t other = addr_before(evicted, left.evicted);
        uintptr_t down = addr_before(plan->down, left.down);
        const struct pun *pun = NULL;
        const struct site *site;

        if (down > member && down > other) {
            site = plan->down[--left.down];
        } else {
            size_t i =
                member > other ? --left.members : plan->batch.count + --left.evicted;

            site = plan->sites[i];
            pun = &plan->puns[i];
        }
        if (pun && pun->is_kept && site->addr + pun->span <= low)
            continue;
        low = site->addr;
        if (pun)
            poke_member(--poke, site, pun);
        else
            poke_without_jump(--poke, site,
                              jump_is_at(site, STAGE_TO_ORIGINAL) ? site->bytes[0]
                                                                  : INSN_INT3);
    }
    return poke;
}

/* ---- 4: in pieces ---- */

static uintptr_t poke_end(const struct text_poke *p)
{
    uint8_t span = p->old_span > p->new_span ? p->old_span : p->new_span;

    return p->addr + (span > p->len ? span : p->len);
}

/* is_apart - does nothing in front of pokes[i] extend over it? */
static bool is_apart(const struct text_poke *pokes, size_t i)
{
    for (size_t j = i; j-- > 0 && pokes[i].addr - pokes[j].addr < INSN_MAX_LEN;)
        if (poke_end(&pokes[j]) > pokes[i].addr)
            return false;
    return true;
}

/* Why not all in one batch: while the guards are in the engine's own code, the engine traps
 * again and again as it runs. So that code, which has the lowest addresses, is done in
 * small portions, and last.
 */
static void write_pokes(struct text_poke *pokes, size_t count)
{
    while (count) {
        size_t first = count < BATCH_MAX ? 0 : count - BATCH_MAX;

        while (first && !is_apart(pokes, first))
            first--;
        text_poke_batch(pokes + first, count - first);
        count = first;
    }
}

/* ---- what is known of it ---- */

/* note_jump - what unoptimize.c and recover.c must know of it. Padding that the jump covers
 * behind the instruction is remembered with its bytes; that of a jump which is there
 * already has been.
 */
static void note_jump(struct plan *plan, struct site *site, const struct pun *pun)
{
    size_t known = is_jump(site) && jump_site(site)->jump_len > site->len
                       ? jump_site(site)->jump_len
                       : site->len;

    if (pun->jump_len > known &&
        plat_text_read(site->bytes + known, site->addr + known, pun->jump_len - known))
        plat_bug("padding is not readable", site->addr);
    if (is_jump(site) && jump_site(site)->pad_off)
        plan->old->pads[plan->old->count++] = site_pad(site);
    jump_site(site)->jump_len = pun->jump_len;
    jump_site(site)->jump_span = pun->span;
    site_set_pad(site, pun->pad);
}

static void note_jumps(struct plan *plan)
{
    for (size_t i = 0; i < plan_len(plan); i++)
        if (plan->puns[i].rung != PUN_NONE && !plan->puns[i].is_kept)
            note_jump(plan, plan->sites[i], &plan->puns[i]);
}

static void become_jump(struct site *site)
{
    if (is_jump(site))
        return;
    if (!site_is_armed(site))
        site_move(site, SITE_ARMED);
    site_move(site, SITE_OPTIMIZED);
}

static void lose_jump(struct site *site, enum site_state to)
{
    if (site->state != to)
        site_move(site, to);
}

/* move_member - a breakpoint is refused a jump later, by refuse_unplanned(). */
static void move_member(struct site *site)
{
    if (jump_is_at(site, STAGE_TO_JUMP)) {
        become_jump(site);
        jump_move(site, STAGE_JUMP);
    } else if (jump_is_at(site, STAGE_TO_INT3)) {
        lose_jump(site, SITE_ARMED);
    } else {
        lose_jump(site, SITE_DISARMED);
        jump_move(site, STAGE_NONE);
    }
}

/* move_all - Return: how many more jumps there are. */
static long move_all(struct plan *plan, size_t *made)
{
    long more = 0;

    for (size_t i = 0; i < plan_len(plan); i++) {
        bool was_jump = is_jump(plan->sites[i]);

        move_member(plan->sites[i]);
        more += is_jump(plan->sites[i]) - was_jump;
        *made += is_jump(plan->sites[i]) && !was_jump;
    }
    for (size_t i = 0; i < plan->down_count; i++) {
        struct site *site = plan->down[i];

        more -= is_jump(site);
        lose_jump(site, jump_is_at(site, STAGE_TO_ORIGINAL) ? SITE_DISARMED : SITE_ARMED);
    }
    return more;
}

/* refuse_unplanned - those that have no plan; and a site that was refused one before may
 * have it now.
 */
static void refuse_unplanned(struct plan *plan)
{
    for (size_t i = 0; i < plan_len(plan); i++)
        if (!plan->puns[i].is_kept)
            unoptimize_ask_before(&plan->sites[i], 1);
    for (size_t i = 0; i < plan_len(plan); i++)
        if (plan->puns[i].rung == PUN_NONE && plan->sites[i]->probes)
            optimize_refuse(plan->sites[i], plan_reason(&plan->puns[i]));
}

/* cut_links - to those that will be no jumps; what is none leads nowhere yet. */
static void cut_links(struct plan *plan)
{
    for (size_t i = 0; i < plan_len(plan); i++)
        if (!is_jump(plan->sites[i]))
            link_forget(plan->sites[i]);
        else if (plan->puns[i].rung == PUN_NONE)
            link_cut(plan->sites[i]);
    for (size_t i = 0; i < plan->down_count; i++)
        if (is_jump(plan->down[i]))
            link_cut(plan->down[i]);
}

static enum jump_stage stage_for(const struct pun *pun)
{
    if (pun->rung != PUN_NONE)
        return STAGE_TO_JUMP;
    return pun->is_evicted ? STAGE_TO_ORIGINAL : STAGE_TO_INT3;
}

/* make_links - before it is written that these are jumps: behind that, all that this takes
 * may itself go by way of them.
 */
static void make_links(struct plan *plan)
{
    for (size_t i = 0; i < plan_len(plan); i++)
        jump_move(plan->sites[i], stage_for(&plan->puns[i]));
    for (size_t i = 0; i < plan_len(plan); i++)
        link_make_around(plan->sites[i]);
}

/* The first synchronisation is for the detours and pads: whole for everyone before a jump or
 * a link leads there; and for the links, which are gone before what they lead to may be.
 */
size_t plan_write(struct plan *plan)
{
    struct text_poke *pokes = list_pokes(plan);
    size_t made = 0;

    note_jumps(plan);
    plat_lock(PLAT_TEXT);
    fill_pads(plan);
    cut_links(plan);
    plat_sync_cores();
    make_links(plan);
    write_pokes(pokes, (size_t)(plan->pokes + plan->pokes_max - pokes));
    plat_unlock(PLAT_TEXT);
    unoptimize_expect(move_all(plan, &made));
    refuse_unplanned(plan);
    retired_keep(plan->old);
    plan->old = NULL;
    return made;
}
