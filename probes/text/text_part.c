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

/* Probes of a text, as many as go or come at once: each time costs synchronisations, and a
 * walk over all sites.
 */
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

/* Probes that have no text. The site has the size of all others, since other rooms may look
 * behind each struct site.
 */
static struct jump_site waiting;             /* PLAT_PROBES */
static struct list parts = LIST_INIT(parts); /* PLAT_PROBES: text beside the image */

struct site *ext_waiting(void)
{
    return &waiting.site;
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

struct gathering {
    const struct text_part *text;
    struct portion *portion;
};

static void gather(struct site *site, void *arg)
{
    struct gathering *g = arg;

    if (site->addr < g->text->start || site->addr >= g->text->end)
        return;
    for (struct kprobe *p = site->probes; p && g->portion->count < g->portion->max;
         p = p->next)
        g->portion->ps[g->portion->count++] = p;
}

/* let_wait - in front of all others: there may be very many. No hit reads this list. */
static void let_wait(struct kprobe *p)
{
    __atomic_or_fetch(&p->flags, KPROBE_FLAG_GONE, __ATOMIC_RELAXED);
    p->site = ext_waiting();
    p->next = p->site->probes;
    p->site->probes = p;
}

void text_goes(struct text_part *t)
{
    struct portion some;
    struct gathering g = { t, &some };

    plat_lock(PLAT_PROBES);
    portion_get(&some);
    t->closed = true;
    do {
        portion_grow(&some);
        some.count = 0;
        registry_for_each(gather, &g);
        if (some.count && register_take_out(some.ps, some.count, some.room))
            plat_bug("a probe on text that goes is not registered", t->start);
        for (size_t i = some.count; i-- > 0;) /* they stay in their order */
            let_wait(some.ps[i]);
    } while (some.count == some.max);
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

/* wake - the next ones that mean @t, behind those of *@from, become unregistered probes. */
static size_t wake(const struct text_part *t, struct kprobe **from, struct portion *some)
{
    struct kprobe *next;

    for (some->count = 0; *from && some->count < some->max; *from = next) {
        struct kprobe *p = *from;

        next = p->next;
        if (!means(p, t))
            continue;
        aggr_remove(ext_waiting(), p);
        p->site = NULL;
        p->next = NULL;
        p->addr = 0;
        p->flags &= KPROBE_FLAG_DISABLED | KPROBE_FLAG_IRQS_OFF | KPROBE_FLAG_PENDING |
                    KPROBE_FLAG_BY_IMAGE;
        some->ps[some->count++] = p;
    }
    return some->count;
}

static void stay(struct kprobe *p, const struct probe_reject *why, void *arg UNUSED)
{
    plat_log("kprobe: %s+0x%x is not armed again: %s", p->symbol_name, p->offset,
             why->why);
    let_wait(p);
}

int text_comes(struct text_part *t)
{
    struct kprobe *from;
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
    from = ext_waiting()->probes;
    portion_get(&some);
    while (wake(t, &from, &some) != 0) {
        struct site_list list = { .sites = some.room };

        register_some(some.ps, some.count, &list, stay, NULL);
        portion_grow(&some);
    }
    plat_free(some.memory);
    boundary_forget();
    plat_unlock(PLAT_PROBES);
    return 0;
}
