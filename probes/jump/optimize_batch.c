/* optimize_batch.c - stages 11 and 12: bytes of text change under jumps that read them.
 *
 * Some sites are to become jumps; others are to become int3s, or what they were without a
 * probe. A jump nearby whose displacement reads bytes of theirs would lead somewhere else
 * then. It gets another prefix or another pad, in the same batch:
 *
 *   1. collect the jumps that read a byte of those that change, and of these, until no more
 *      come; only lower addresses are added, at most 8 bytes away each time. With them the
 *      jumps just behind, which the planner may have to change for their sake
 *   2. plan all of them together, with the plans of now, which are kept where they can be
 *   3. pads are mapped and filled. From here on nothing can fail, and up to here nothing of
 *      the text has changed
 *   4. one batch of text_poke for all: those that go, those that come, and the jumps between
 *      them, from one displacement to the other. While it lasts a jump that changes is an
 *      int3, whose hit runs the copy: from before the first byte that it reads changes until
 *      behind the last one that it will read has. A jump that keeps its plan is in the batch
 *      as well if what it reads is guarded meanwhile, and comes back as it was.
 *   5. pads that no jump leads to any more are kept until there has been quiescence
 *
 * A detour belongs to the probes at its site, so a jump that is planned again keeps it: a
 * thread that is inside does not notice. A jump without another plan becomes an int3, and
 * knows why.
 *
 * Without memory nothing is done, and the caller falls back on breakpoints: unoptimize.c.
 */
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/jump/optimize_plan.h"

#define ROOM_MIN 56 /* for jumps nearby */

/* The sites that take part: those that come, then jumps. There may be no room for all. */
struct members {
    struct site_list list;
    size_t room;
    bool is_full; /* a member is missing */
};

/* member_add - a jump that stays one. */
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

/* member_add_readers - of the first byte of @site, and so of any. */
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

static void add_near(struct members *m, struct site **sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (uintptr_t a = sites[i]->addr + 1; a < sites[i]->addr + PUN_NEAR; a++)
            member_add(m, registry_find(a));
}

static void plan_sites(struct site **sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        jump_move(sites[i], STAGE_PLANNED);
}

/* Those that are being disarmed have a stage that says so. */
static void take_down(struct site **sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!jump_is_changing(sites[i]))
            jump_move(sites[i], STAGE_TO_INT3);
}

/* stages_settle - of sites that did not become what they were to be, and of breakpoints that
 * were made.
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

/* members_collect - behind those that come, which are in @m. */
static void members_collect(struct members *m, const struct site_list *down)
{
    size_t up = m->list.count;

    add_all_readers(m, down->sites, down->count);
    for (size_t i = 0; i < m->list.count; i++) /* it grows while it is walked */
        member_add_readers(m, m->list.sites[i]);
    if (!m->list.count)
        return;
    add_near(m, down->sites, down->count);
    add_near(m, m->list.sites, up);
    site_list_sort(&m->list);
}

/* members_make - if there is room for them. Return: 0; -ENOMEM. */
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
