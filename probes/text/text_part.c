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
#include "probes/returns/kretprobe.h"

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
    text_own_changes(p, 1);
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
    text_own_changes(p, -1);
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

/* ---- probes of its own ---- */

static bool is_in(uintptr_t start, uintptr_t end, uintptr_t addr)
{
    return addr >= start && addr < end;
}

static bool has_handler_in(uintptr_t start, uintptr_t end, const struct kprobe *p)
{
    const struct kretprobe *rp = CONTAINER_OF(p, struct kretprobe, kp);
    const struct jprobe *jp = CONTAINER_OF(p, struct jprobe, kp);

    if (is_in(start, end, (uintptr_t)p->pre_handler) ||
        is_in(start, end, (uintptr_t)p->light_handler) ||
        is_in(start, end, (uintptr_t)p->post_handler) ||
        is_in(start, end, (uintptr_t)p->fault_handler))
        return true;
    if (p->kind == KPROBE_KIND_RETURN)
        return is_in(start, end, (uintptr_t)rp->handler) ||
               is_in(start, end, (uintptr_t)rp->entry_handler);
    return p->kind == KPROBE_KIND_JPROBE && is_in(start, end, (uintptr_t)jp->entry);
}

bool text_owns(const struct text_part *t, const struct kprobe *p)
{
    return is_in(t->memory, t->memory_end, (uintptr_t)p) ||
           has_handler_in(t->start, t->end, p);
}

void text_own_changes(const struct kprobe *p, long by)
{
    struct text_part *t;

    list_for_each(t, &parts, link)
        if (text_owns(t, p))
            t->own_count += (size_t)by;
}

/* ---- it goes ---- */

/* gather - into @some, the probes on @t at @at and behind it, as many as there is room for.
 * In order of address a jump is taken out when those in front of it, which may read its
 * bytes, have gone. In any other order the jumps that stay would have to be planned again
 * around each that goes. Each address is looked up: a small text takes no longer where there
 * are very many probes elsewhere.
 * Return: where to go on.
 */
static uintptr_t gather(const struct text_part *t, uintptr_t at, struct portion *some)
{
    for (some->count = 0; at < t->end; at++) {
        const struct site *site = registry_find(at);

        for (struct kprobe *p = site ? site->probes : NULL; p; p = p->next) {
            if (some->count == some->max)
                return at;
            some->ps[some->count++] = p;
        }
    }
    return at;
}

void text_goes(struct text_part *t)
{
    struct portion some;

    plat_lock(PLAT_PROBES);
    portion_get(&some);
    t->closed = true;
    for (uintptr_t at = t->start; at < t->end; portion_grow(&some)) {
        at = gather(t, at, &some);
        if (some.count && register_take_out(some.ps, some.count, some.room))
            plat_bug("a probe on text that goes is not registered", t->start);
        for (size_t i = 0; i < some.count; i++)
            ext_wait(some.ps[i]);
    }
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
