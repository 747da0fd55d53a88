/* explain.c - stages 2 and 3 for an address, without a probe: check the rules, make a site
 * as if for a probe, look at it, and free it. The answer is right because the same
 * functions run as for a registration.
 */
#include "probes/explain/explain.h"

#include "probes/core/registry.h"
#include "probes/insn/effects.h"
#include "probes/jump/counter.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/platform_jump.h"
#include "probes/region/region.h"

/* ---- the function around the address ---- */

struct byte_window {
    struct explanation *e;
    bool found;
};

/* The window holds the instructions around the address. Until the address is reached, a new
 * instruction takes the place of the oldest one; after that, the free places are filled.
 */
static void window_add(const struct insn *insn, void *arg)
{
    struct byte_window *w = arg;
    struct explanation *e = w->e;

    if (w->found && e->map_count == e->map_at + 1 + EXPLAIN_AROUND)
        return;
    if (!w->found && e->map_count == EXPLAIN_AROUND + 1) {
        for (size_t i = 1; i < e->map_count; i++)
            e->map[i - 1] = e->map[i];
        e->map_count--;
    }
    e->map[e->map_count++] = *insn;
    if (e->addr - insn->addr < insn->len) {
        w->found = true;
        e->map_at = e->map_count - 1;
    }
}

static void map_function(struct explanation *e)
{
    struct byte_window w = { .e = e };

    e->in_function = !plat_symbol_at(e->addr, &e->function);
    if (e->in_function)
        boundary_for_each(&e->function, window_add, &w);
    if (!w.found)
        e->map_at = e->map_count;
}

/* ---- the rules ---- */

struct verdict {
    struct explanation *e;
    void (*rule)(enum probe_reason rule, const struct probe_reject *why, void *arg);
    void *arg;
};

static void note_rule(enum probe_reason rule, const struct probe_reject *why, void *arg)
{
    struct verdict *v = arg;

    if (why->err && !v->e->why.err)
        v->e->why = *why;
    v->rule(rule, why, v->arg);
}

/* ---- how the instruction is run ---- */

static void add_copy(struct explanation *e, const char *what, const uint8_t *slot)
{
    struct explain_copy *copy = &e->copies[e->copy_count];

    if (!slot)
        return;
    copy->len = insn_slot_room(slot);
    if (plat_text_read(copy->code, (uintptr_t)slot, copy->len))
        return;
    copy->what = what;
    copy->addr = (uintptr_t)slot;
    e->copy_count++;
}

static void look_at_detour(struct explanation *e, const struct site *site)
{
    size_t off;

    if (insn_slot_owner((uintptr_t)site_detour(site), &off))
        add_copy(e, "detour", site_detour(site));
    e->detour = detour_kind_wanted(site);
    e->detour_specialized = site_detour(site) && jump_site(site)->specialized;
    e->detour_no_image = e->detour_specialized && e->detour == DETOUR_CALL &&
                         jump_site(site)->which == PLAT_SPECIALIZED_LIGHT;
    e->linked = jump_site(site)->linked;
}

static void look_at_site(struct explanation *e, const struct site *site)
{
    e->state = (enum site_state)site->state;
    e->way = (enum site_way)site->way;
    add_copy(e, "boost", region_boosted(site));
    add_copy(e, "step", site_step_slot(site));
    if (site->is_sti)
        add_copy(e, "pair", site_pair(site)->slot);
    if (e->map_at < e->map_count)
        e->flags_live = !detour_may_change_flags(&e->map[e->map_at], INSN_FLAGS_STATUS);
    for (const struct kprobe *p = site->probes; p; p = p->next) {
        e->probes++;
        e->disabled += (p->flags & KPROBE_FLAG_DISABLED) != 0;
        e->with_post += p->post_handler != NULL;
        e->hits += kprobe_hits(p);
        for (size_t cause = 0; cause < MISS_CAUSES; cause++)
            e->missed[cause] += READ_ONCE(p->missed[cause]);
    }
}

static int look_on(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

static int look_at_fault(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                         int trap UNUSED)
{
    return 0;
}

/* try_jump - find out which jump a probe with a handler would get at @site. Not every handler
 * needs an image, but most do; so this one has a fault handler.
 */
static void try_jump(struct explanation *e, struct site *site)
{
    struct kprobe p = { .pre_handler = look_on, .fault_handler = look_at_fault };
    struct probe_reject why;

    site->probes = &p;
    if (detour_prepare(site, &why)) {
        e->jump.why = why.reason;
    } else {
        look_at_detour(e, site);
        explain_try_jump(&e->jump, site);
    }
    detour_release(site);
    counter_put(p.counter);
    site->probes = NULL;
}

/* try_stage_3 - prepare a site, look at it, and free it. It can be freed at once: it is
 * never armed, so no CPU can be in its copies.
 */
static void try_stage_3(struct explanation *e, struct verdict *v)
{
    const struct insn *insn = &e->map[e->map_at];
    struct probe_reject why = { 0 };
    struct site *site = kprobe_prepare(insn, &why);

    if (!site) {
        note_rule(why.reason, &why, v);
        return;
    }
    look_at_site(e, site);
    try_jump(e, site);
    prepare_step(site, &e->post);
    kprobe_unprepare(site);
}

static void explain_locked(struct explanation *e, struct verdict *v)
{
    const struct site *site = registry_find(e->addr);

    map_function(e);
    explain_look_at_text(e);
    check_each_rule(e->addr, note_rule, v);
    e->is_probed = site;
    if (site) {
        look_at_site(e, site);
        look_at_detour(e, site);
        explain_look_at_jump(&e->jump, site);
    } else if (!e->why.err && e->map_at < e->map_count) {
        try_stage_3(e, v);
    }
    reclaim_rest();
}

void probe_explain(uintptr_t addr, struct explanation *out,
                   void (*rule)(enum probe_reason rule, const struct probe_reject *why,
                                void *arg),
                   void *arg)
{
    struct verdict v = { out, rule, arg };

    *out = (struct explanation){ .addr = addr };
    plat_lock(PLAT_PROBES);
    explain_locked(out, &v);
    plat_unlock(PLAT_PROBES);
}

const char *explain_way(enum site_way way)
{
    static const char *const sentences[WAYS] = {
        [WAY_BOOST] = "a copy does the same anywhere, and no handler waits for its end",
        [WAY_STEP] = "a post-handler waits for the end of the copy",
        [WAY_EMULATE] =
            "what it does depends on where it is, or changes what a trap needs",
        [WAY_JUMP] = "no trap is taken",
    };

    return way < WAYS ? sentences[way] : "?";
}

const char *explain_way_name(enum site_way way)
{
    switch (way) {
    case WAY_BOOST:
        return "boost";
    case WAY_EMULATE:
        return "emulate";
    case WAY_JUMP:
        return "jump";
    case WAY_STEP:
        return step_get_engine() == STEP_TF ? "step-tf" : "step-int3";
    default:
        return "?";
    }
}
