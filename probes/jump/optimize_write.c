/* optimize_write.c - stages 11 and 12: writes a plan into the text, in steps 3 to 5 of
 * optimize_batch.c.
 *
 * Owns what a site knows of its jump: jump_len, jump_span, the pad, and the bytes of the
 * padding behind the instruction that the jump covers.
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

/* poke_without_jump - fill @poke so that @site has no jump afterwards: its first byte is
 * @first, and its other bytes are the original ones.
 */
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

/* poke_jump - fill @poke so that @site becomes the jump of @pun. Padding that only the
 * present jump covers gets its own bytes back.
 */
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

/* How many entries of each list list_pokes() has not taken yet. The lists are sorted, and
 * it takes them from the end.
 */
struct cursor {
    size_t members, evicted, down;
};

static uintptr_t addr_before(struct site **sites, size_t count)
{
    return count ? sites[count - 1]->addr : 0;
}

/* list_pokes - list the changes of all sites of @plan, ascending. A site that gets no
 * jump gets an int3, and the plans of other jumps may read it. A jump that is kept is not
 * listed, unless it extends over bytes that are written.
 * Return: the first poke; the last one is at the end of the room.
 */
static struct text_poke *list_pokes(struct plan *plan)
{
    struct cursor left = { plan->batch.count, plan->batch.evicted_count,
                           plan->down_count };
    struct text_poke *poke = plan->pokes + plan->pokes_max;
    struct site **evicted = plan->sites + plan->batch.count;
    uintptr_t low = UINTPTR_MAX; /* the lowest address that is listed so far */

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

/* is_apart - does no poke in front of pokes[i] extend over it? */
static bool is_apart(const struct text_poke *pokes, size_t i)
{
    for (size_t j = i; j-- > 0 && pokes[i].addr - pokes[j].addr < INSN_MAX_LEN;)
        if (poke_end(&pokes[j]) > pokes[i].addr)
            return false;
    return true;
}

/* write_pokes - write the pokes in batches of BATCH_MAX, from the highest addresses to the
 * lowest. The engine's own code has the lowest addresses. While a batch has int3s there,
 * the engine traps at each of them as it runs, which slows down all that follows. So
 * these batches come last.
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

/* note_jump - store in @site what unoptimize.c and recover.c must know of the new jump.
 * Keep the bytes of padding that the jump covers behind the instruction. The bytes that
 * the present jump covers are known already. The present pad, if there is one, is
 * retired.
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

/* move_member - move @site to its new state. refuse_unplanned() refuses new breakpoints a
 * jump later.
 */
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

/* move_all - move all sites to their new states. @made: add the number of new jumps to it
 * Return: by how much the number of jumps has changed.
 */
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

/* refuse_unplanned - first let sites in front wait again that were refused a jump: they
 * may get one now that these bytes have changed. Then refuse a jump to the sites without
 * a plan.
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

static void cut_links(struct plan *plan)
{
    for (size_t i = 0; i < plan_len(plan); i++)
        if (is_jump(plan->sites[i]) && plan->puns[i].rung == PUN_NONE)
            link_cut(plan->sites[i]);
    for (size_t i = 0; i < plan->down_count; i++)
        link_cut(plan->down[i]);
}

static enum jump_stage stage_for(const struct pun *pun)
{
    if (pun->rung != PUN_NONE)
        return STAGE_TO_JUMP;
    return pun->is_evicted ? STAGE_TO_ORIGINAL : STAGE_TO_INT3;
}

/* make_links - make the links of the jumps to come. This is done before the jumps are
 * written: after that, the code that makes links may itself run through these jumps.
 */
static void make_links(struct plan *plan)
{
    for (size_t i = 0; i < plan_len(plan); i++)
        jump_move(plan->sites[i], stage_for(&plan->puns[i]));
    for (size_t i = 0; i < plan_len(plan); i++)
        link_make_around(plan->sites[i]);
}

/* The call of plat_sync_cores() has two reasons. All CPUs must see whole detours and pads
 * before a jump or a link leads there. And no CPU may use a link that was cut any more
 * when the jump that it led past is removed.
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
