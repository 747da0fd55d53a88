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

/* Memory that is always there: text cannot wait. */
static struct kprobe *portion[PORTION];        /* PLAT_PROBES */
static struct site *portion_room[2 * PORTION]; /* PLAT_PROBES */

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
    size_t count;
};

static void gather(struct site *site, void *arg)
{
    struct gathering *g = arg;

    if (site->addr < g->text->start || site->addr >= g->text->end)
        return;
    for (struct kprobe *p = site->probes; p && g->count < PORTION; p = p->next)
        portion[g->count++] = p;
}

static void let_wait(struct kprobe *p)
{
    __atomic_or_fetch(&p->flags, KPROBE_FLAG_GONE, __ATOMIC_RELAXED);
    p->site = ext_waiting();
    aggr_add(p->site, p);
}

void text_goes(struct text_part *t)
{
    struct gathering g;

    plat_lock(PLAT_PROBES);
    t->closed = true;
    do {
        g = (struct gathering){ .text = t };
        registry_for_each(gather, &g);
        if (g.count && register_take_out(portion, g.count, portion_room))
            plat_bug("a probe on text that goes is not registered", t->start);
        for (size_t i = 0; i < g.count; i++)
            let_wait(portion[i]);
    } while (g.count == PORTION);
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
static size_t wake(const struct text_part *t, struct kprobe **from)
{
    struct kprobe *next;
    size_t count = 0;

    for (; *from && count < PORTION; *from = next) {
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
        portion[count++] = p;
    }
    return count;
}

static void stay(struct kprobe *p, const struct probe_reject *why, void *arg UNUSED)
{
    plat_log("kprobe: %s+0x%x is not armed again: %s", p->symbol_name, p->offset,
             why->why);
    let_wait(p);
}

int text_comes(struct text_part *t)
{
    struct site_list list = { .sites = portion_room };
    struct kprobe *from;
    size_t count;
    int err;

    plat_lock(PLAT_PROBES);
    err = blacklist_add(t->nokprobe, t->nokprobe_count,
                        (struct blacklist_range){ t->protected_start, t->protected_end });
    if (err) {
        plat_unlock(PLAT_PROBES);
        return err;
    }
    t->closed = false;
    list_append(&parts, &t->link);
    from = ext_waiting()->probes;
    while ((count = wake(t, &from)) != 0) {
        list.count = 0;
        register_some(portion, count, &list, stay, NULL);
    }
    boundary_forget();
    plat_unlock(PLAT_PROBES);
    return 0;
}
