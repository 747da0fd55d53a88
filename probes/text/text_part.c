/* text_part.c - stage 1 and 13 for text that comes and goes.
 *
 * Names are looked up and probes are armed under PLAT_PROBES. So a registration either is
 * done before text_goes() has the lock, and its probe is taken off the text; or it comes
 * behind, and finds the text closed. It stays closed until its symbols are gone, which is
 * before anything else can be at these addresses.
 */
#include "probes/text/text_part.h"

#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/jump/jump_site.h"

#define PORTION 128
#define PORTION_MAX 4096

/* Memory that is always there: text cannot wait. */
static struct kprobe *small_ps[PORTION];     /* PLAT_PROBES */
static struct site *small_room[2 * PORTION]; /* PLAT_PROBES */

/* Probes of a text, as many as go or come at once: each time costs synchronisations. */
struct portion {
    struct kprobe **ps;
    struct site **room; /* for 2 * @max */
    size_t count, max;
    void *memory; /* NULL: what is always there */
};

static void portion_get(struct portion *p)
{
    *p = (struct portion){ .ps = small_ps, .room = small_room, .max = PORTION };
}

/* portion_grow - it was full: the next ones are larger, if there is memory. */
static void portion_grow(struct portion *p)
{
    if (p->count < p->max || p->memory)
        return;
    p->memory = plat_alloc(3 * PORTION_MAX * sizeof(void *));
    if (!p->memory)
        return;
    p->ps = p->memory;
    p->room = (struct site **)p->memory + PORTION_MAX;
    p->max = PORTION_MAX;
}

/* Probes that have no text: there may be very many, so each knows its neighbours. No hit
 * reads this list. The site has the size of all others, since other rooms may look behind
 * each struct site.
 */
static struct jump_site waiting;             /* PLAT_PROBES */
static struct kprobe *last;                  /* PLAT_PROBES: of those that wait */
static struct list parts = LIST_INIT(parts); /* PLAT_PROBES: text beside the image */

struct site *ext_waiting(void)
{
    return &waiting.site;
}

bool ext_waits(const struct kprobe *p)
{
    if (p->site != ext_waiting())
        return false;
    return p->prev ? p->prev->next == p : p->site->probes == p;
}

/* wait_behind - @prev waits, too; NULL: in front of all others. */
static void wait_behind(struct kprobe *prev, struct kprobe *p)
{
    struct kprobe **link = prev ? &prev->next : &waiting.site.probes;

    __atomic_or_fetch(&p->flags, KPROBE_FLAG_GONE, __ATOMIC_RELAXED);
    p->site = ext_waiting();
    p->prev = prev;
    p->next = *link;
    *link = p;
    if (p->next)
        p->next->prev = p;
    else
        last = p;
}

void ext_wait(struct kprobe *p)
{
    wait_behind(last, p);
}

void ext_wake(struct kprobe *p)
{
    struct kprobe **link = p->prev ? &p->prev->next : &waiting.site.probes;

    *link = p->next;
    if (p->next)
        p->next->prev = p->prev;
    else
        last = p->prev;
    p->next = p->prev = NULL;
}

bool ext_text_leaves(uintptr_t addr)
{
    const struct text_part *t;

    list_for_each(t, &parts, link) {
        if (addr >= t->start && addr < t->end)
            return t->closed;
    }
    return false;
}

/* ---- it goes ---- */

/* The probes on a text, in order of address: then a jump is taken out when those in front of
 * it, which may read its bytes, have gone. In any other order the jumps that stay would have
 * to be planned again around each that goes. Sites are no use for that: some of them go with
 * their neighbours.
 */
struct gathering {
    const struct text_part *text;
    struct site **sites;
    struct kprobe **ps;
    size_t site_count, count;
};

static bool is_probed_in(const struct site *site, const struct text_part *t)
{
    return site->addr >= t->start && site->addr < t->end && site->probes;
}

static void count_one(struct site *site, void *arg)
{
    struct gathering *g = arg;

    if (!is_probed_in(site, g->text))
        return;
    g->site_count++;
    for (const struct kprobe *p = site->probes; p; p = p->next)
        g->count++;
}

static void gather_site(struct site *site, void *arg)
{
    struct gathering *g = arg;

    if (is_probed_in(site, g->text))
        g->sites[g->site_count++] = site;
}

static void gather_probes(struct gathering *g)
{
    site_list_sort(&(struct site_list){ .sites = g->sites, .count = g->site_count });
    for (size_t i = 0; i < g->site_count; i++)
        for (struct kprobe *p = g->sites[i]->probes; p; p = p->next)
            g->ps[g->count++] = p;
}

static void gather_some(struct site *site, void *arg)
{
    struct gathering *g = arg;

    if (!is_probed_in(site, g->text))
        return;
    for (struct kprobe *p = site->probes; p && g->count < PORTION; p = p->next)
        g->ps[g->count++] = p;
}

/* gather - all of them; without memory some, in no order.
 * Return: what to free; NULL: there may be more.
 */
static void *gather(struct gathering *g, const struct text_part *t)
{
    void *memory;

    *g = (struct gathering){ .text = t };
    registry_for_each(count_one, g);
    memory = plat_alloc((g->count + g->site_count + 1) * sizeof(void *));
    g->ps = memory ? memory : small_ps;
    g->sites = (struct site **)g->ps + g->count;
    g->count = g->site_count = 0;
    registry_for_each(memory ? gather_site : gather_some, g);
    if (memory)
        gather_probes(g);
    return memory;
}

/* go - take out what was gathered. */
static void go(const struct gathering *g, struct portion *some)
{
    for (size_t at = 0; at < g->count; at += some->count) {
        portion_grow(some);
        some->count = g->count - at < some->max ? g->count - at : some->max;
        if (register_take_out(g->ps + at, some->count, some->room))
            plat_bug("a probe on text that goes is not registered", g->text->start);
        for (size_t i = 0; i < some->count; i++)
            ext_wait(g->ps[at + i]);
    }
}

void text_goes(struct text_part *t)
{
    struct gathering g;
    struct portion some;
    void *memory;

    plat_lock(PLAT_PROBES);
    portion_get(&some);
    t->closed = true;
    do {
        memory = gather(&g, t);
        go(&g, &some);
        plat_free(memory);
    } while (!memory && g.count);
    plat_free(some.memory);
    boundary_forget();
    plat_unlock(PLAT_PROBES);
}

void text_gone(struct text_part *t)
{
    plat_lock(PLAT_PROBES);
    list_remove(&t->link);
    blacklist_remove(t->start, t->end);
    plat_unlock(PLAT_PROBES);
}

/* ---- it comes ---- */

/* means - is the place of @p, which waits, in @t now? */
static bool means(const struct kprobe *p, const struct text_part *t)
{
    struct plat_symbol sym;

    return p->symbol_name && !plat_symbol_find(p->symbol_name, &sym) &&
           sym.start + p->offset >= t->start && sym.start + p->offset < t->end;
}

/* The place in the list of those that wait: what comes behind @prev is to be looked at. */
struct waking {
    struct kprobe *prev; /* or NULL */
};

/* wake - the next ones that mean @t become unregistered probes. */
static size_t wake(const struct text_part *t, struct waking *w, struct portion *some)
{
    struct kprobe *p = w->prev ? w->prev->next : ext_waiting()->probes, *next;

    for (some->count = 0; p && some->count < some->max; p = next) {
        next = p->next;
        if (!means(p, t)) {
            w->prev = p;
            continue;
        }
        ext_wake(p);
        p->site = NULL;
        p->addr = 0;
        p->flags &= KPROBE_FLAG_DISABLED | KPROBE_FLAG_IRQS_OFF | KPROBE_FLAG_PENDING |
                    KPROBE_FLAG_BY_IMAGE;
        some->ps[some->count++] = p;
    }
    return some->count;
}

static void stay(struct kprobe *p, const struct probe_reject *why, void *arg)
{
    struct waking *w = arg;

    plat_log("kprobe: %s+0x%x is not armed again: %s", p->symbol_name, p->offset,
             why->why);
    wait_behind(w->prev, p);
    w->prev = p;
}

int text_comes(struct text_part *t)
{
    struct waking w = { NULL };
    struct portion some;
    int err;

    plat_lock(PLAT_PROBES);
    err = blacklist_add(&t->nokprobe);
    if (err) {
        plat_unlock(PLAT_PROBES);
        return err;
    }
    t->closed = false;
    list_append(&parts, &t->link);
    portion_get(&some);
    while (wake(t, &w, &some) != 0) {
        struct site_list list = { .sites = some.room };

        register_some(some.ps, some.count, &list, stay, &w);
        portion_grow(&some);
    }
    plat_free(some.memory);
    boundary_forget();
    plat_unlock(PLAT_PROBES);
    return 0;
}
