/* optimize_batch.c - stages 11 and 12: changes bytes of text that jumps nearby read.
 *
 * Some sites are to become jumps; others are to become int3s, or to get their original
 * bytes back. A jump nearby whose displacement reads bytes of these sites would then lead
 * somewhere else. So this reader gets another prefix or another pad, in the same batch:
 *
 *   1. collect the readers of the bytes that change, then the readers of those readers,
 *      until there are no more. Each round adds only lower addresses, at most 8 bytes
 *      away. Also collect the jumps directly behind, whose plans may have to change as
 *      well
 *   2. plan all of them together. A jump keeps its present plan where this is possible
 *   3. map the pads and fill them. After this nothing can fail; before, no text has
 *      changed
 *   4. write one batch of text_poke: the sites that lose their jumps, the sites that
 *      become jumps, and the readers, which go from one displacement to the other. While
 *      the batch is written, a jump that changes is an int3, and a hit there runs the
 *      copy. The int3 is there before the first byte changes that the old jump reads, and
 *      stays until the last byte has changed that the new jump reads. A jump that keeps
 *      its plan is in the batch as well if bytes that it reads are int3s meanwhile;
 *      afterwards it is as it was
 *   5. keep the pads that no jump leads to any more, until quiescence has passed
 *
 * A detour belongs to the probes at its site. So a jump that is planned again keeps its
 * detour, and a thread inside the detour does not notice. If there is no new plan for a
 * jump, its site becomes an int3, and keeps the reason.
 *
 * If there is no memory, nothing is changed here, and the caller makes breakpoints of
 * these jumps: unoptimize.c.
 */
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/near.h"
#include "probes/jump/optimize.h"
#include "probes/jump/optimize_plan.h"

#define ROOM_MIN 16 /* sites: room for jumps nearby */

/* The sites that take part: first those that become jumps, then present jumps. There may
 * not be enough room for all.
 */
struct members {
    struct site_list list;
    size_t room;
    bool is_full; /* a site is missing, for lack of room */
};

/* member_add - add @site if it is a jump; it is to stay a jump. */
static void member_add(struct members *m, struct site *site)
{
    if (!site || !jump_is_at(site, STAGE_JUMP))
        return;
    m->is_full = m->list.count == m->room;
    if (m->is_full)
        return;
    jump_move(site, STAGE_PLANNED);
    m->list.sites[m->list.count++] = site;
}

/* member_add_readers - add the jumps that read a byte of @site. Each of them also reads
 * its first byte.
 */
static void member_add_readers(struct members *m, const struct site *site)
{
    struct site *reader;

    unoptimize_for_each_before(reader, site->addr)
        if (unoptimize_reads(reader, site->addr))
            member_add(m, reader);
}

static void add_all_readers(struct members *m, struct site **sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        member_add_readers(m, sites[i]);
}

/* The sites themselves take part already, and so are not added again. */
static void add_near(struct members *m, struct site **sites, size_t count)
{
    struct site *site;

    for (size_t i = 0; i < count; i++)
        near_for_each(site, sites[i]->addr, sites[i]->addr + PUN_NEAR)
            member_add(m, site);
}

static void plan_sites(struct site **sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        jump_move(sites[i], STAGE_PLANNED);
}

/* take_down - plan an int3 for each of @sites. A site that is being disarmed has the
 * stage STAGE_TO_ORIGINAL already, and keeps it.
 */
static void take_down(struct site **sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!jump_is_changing(sites[i]))
            jump_move(sites[i], STAGE_TO_INT3);
}

/* stages_settle - end the batch for the sites that are still in it: sites that stay what
 * they were, and new breakpoints. Sites that are being disarmed keep their stage.
 */
static void stages_settle(struct site **sites, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct site *site = sites[i];

        if (!jump_is_changing(site) || jump_is_at(site, STAGE_TO_ORIGINAL))
            continue;
        if (site->state == SITE_OPTIMIZED)
            jump_move(site, STAGE_JUMP);
        else
            jump_wait(site);
    }
}

static enum probe_reason change_planned(struct site_list *list,
                                        const struct site_list *down,
                                        struct optimize_result *result)
{
    enum probe_reason reason = PROBE_NO_MEMORY;
    struct plan plan;

    if (!plan_make(&plan, list, down))
        reason = plan_all(&plan);
    if (!reason) {
        list->count = plan_len(&plan);
        plan_sites(plan.sites + plan.batch.count, plan.batch.evicted_count);
        result->evicted = plan.batch.evicted_count;
        result->made = plan_write(&plan);
        result->is_done = true;
    }
    plan_free(&plan);
    return reason;
}

/* members_collect - @m holds the sites that become jumps: add the jumps nearby. */
static void members_collect(struct members *m, const struct site_list *down)
{
    size_t up = m->list.count;

    add_all_readers(m, down->sites, down->count);
    for (size_t i = 0; i < m->list.count; i++) /* the list grows meanwhile */
        member_add_readers(m, m->list.sites[i]);
    if (!m->list.count)
        return;
    add_near(m, down->sites, down->count);
    add_near(m, m->list.sites, up);
    site_list_sort(&m->list);
}

/* members_make - allocate the list, and collect all sites that it has room for.
 * Return: 0; -ENOMEM.
 */
static int members_make(struct members *m, const struct site_list *up,
                        const struct site_list *down)
{
    m->is_full = false;
    m->list.count = up->count;
    m->list.sites =
        plat_alloc((m->room + plan_evicted_max(m->room)) * sizeof(m->list.sites[0]));
    if (!m->list.sites)
        return -ENOMEM;
    for (size_t i = 0; i < up->count; i++)
        m->list.sites[i] = up->sites[i];
    plan_sites(up->sites, up->count);
    take_down(down->sites, down->count);
    members_collect(m, down);
    return 0;
}

enum probe_reason optimize_change(const struct site_list *up,
                                  const struct site_list *down,
                                  struct optimize_result *result)
{
    struct members m = { .room = up->count + down->count + ROOM_MIN, .is_full = true };
    enum probe_reason reason = PROBE_OK;

    while (m.is_full) {
        if (members_make(&m, up, down))
            return PROBE_NO_MEMORY;
        if (!m.is_full && m.list.count)
            reason = change_planned(&m.list, down, result);
        stages_settle(m.list.sites, m.list.count);
        stages_settle(down->sites, down->count);
        plat_free(m.list.sites);
        m.room *= 2;
    }
    return reason;
}
