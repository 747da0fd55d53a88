/* text_part.c - stages 1 and 13 for text that comes and goes: arms the probes that have
 * waited for the text, and takes the probes off again.
 *
 * Names are looked up and probes are armed under PLAT_PROBES. So there are two cases. A
 * registration may be complete before text_goes() has the lock: then text_goes() takes
 * the probe off the text. Or the registration comes later, and finds the text closed. The
 * text stays closed until its symbols are gone, and only after that other text can be at
 * these addresses.
 */
#include "probes/text/text_part.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/jump/jump_site.h"
#include "probes/program/program.h"
#include "probes/returns/kretprobe.h"
#include "probes/text/text_history.h"

/* The operations of programs whose constant is an address: of a function, table or byte. */
#define ADDRESSES                                                                        \
    (BIT(KPROBE_OP_CALL) | BIT(KPROBE_OP_RESERVE) | BIT(KPROBE_OP_COMMIT) |              \
     BIT(KPROBE_OP_BY) | BIT(KPROBE_OP_UNLESS))

#define PORTION 128
#define PORTION_MAX 4096

/* Static memory: text_goes() cannot fail, even if there is no other memory. */
static struct kprobe *small_ps[PORTION];     /* PLAT_PROBES */
static struct site *small_room[2 * PORTION]; /* PLAT_PROBES */

/* The probes that are taken off a text, or armed, together. Each portion costs
 * synchronisations, so large portions are better.
 */
struct portion {
    struct kprobe **ps;
    struct site **room; /* for 2 * @max */
    size_t count, max;
    void *memory; /* NULL: the portion uses the static memory */
};

static void portion_get(struct portion *p)
{
    *p = (struct portion){ .ps = small_ps, .room = small_room, .max = PORTION };
}

/* portion_grow - if the portion was full, make the next ones larger, if there is memory.
 */
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

/* The probes that wait for text are the list of this site. There may be very many, so the
 * list is doubly linked: a probe is taken off without a search. No hit reads this list.
 * The site is a whole struct jump_site, since other rooms may use the memory behind any
 * struct site.
 */
static struct jump_site waiting;             /* PLAT_PROBES */
static struct kprobe *last;                  /* PLAT_PROBES: the last probe that waits */
static struct list parts = LIST_INIT(parts); /* PLAT_PROBES: text beside the image */

struct site *ext_waiting(void)
{
    return &waiting.site;
}

/* wait_behind - let @p wait for text, in the list behind @prev; NULL: as the first probe.
 */
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

/* ---- probes that belong to the code of a text ---- */

static bool text_has(const struct text_part *t, uintptr_t addr)
{
    return addr - t->memory < t->memory_end - t->memory;
}

static bool text_has_program(const struct text_part *t,
                             const struct kprobe_program *program)
{
    const struct kprobe_op *op = program->ops, *end = op + program->count;

    if (text_has(t, (uintptr_t)program) || text_has(t, (uintptr_t)op))
        return true;
    for (; op < end; op++)
        if (BIT(op->code) & ADDRESSES && text_has(t, op->imm))
            return true;
    return false;
}

bool text_owns(const struct text_part *t, const struct kprobe *p)
{
    const struct kretprobe *rp = CONTAINER_OF(p, struct kretprobe, kp);
    const struct jprobe *jp = CONTAINER_OF(p, struct jprobe, kp);
    const uintptr_t uses[] = {
        (uintptr_t)p,
        (uintptr_t)p->symbol_name,
        (uintptr_t)p->pre_handler,
        (uintptr_t)p->light_handler,
        (uintptr_t)p->post_handler,
        (uintptr_t)p->fault_handler,
        p->kind == KPROBE_KIND_RETURN   ? (uintptr_t)rp->handler
        : p->kind == KPROBE_KIND_JPROBE ? (uintptr_t)jp->entry
                                        : 0,
        p->kind == KPROBE_KIND_RETURN ? (uintptr_t)rp->entry_handler : 0,
    };

    for (size_t i = 0; i < ARRAY_LEN(uses); i++)
        if (text_has(t, uses[i]))
            return true;
    return p->program && text_has_program(t, p->program);
}

NOINLINE void text_own_changes(const struct kprobe *p, long by)
{
    struct text_part *t;

    list_for_each(t, &parts, link)
        if (text_owns(t, p))
            t->own_count += (size_t)by;
}

/* ---- it goes ---- */

/* gather - put probes on @t into @some, from the address @at on, as many as there is room
 * for.
 *
 * Why in order of address: when a jump is taken out, the jumps in front of it, which may
 * read its bytes, have already gone. In any other order, the jumps that stay would have
 * to be planned again each time. Why each address is looked up: then a small text takes
 * no longer if there are very many probes elsewhere.
 * Return: the address to go on with.
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

/* text_part_may_wait - the function that unloads text was refused where it cannot wait. */
static void text_part_may_wait(const struct text_part *t, const char *verb)
{
    if (plat_wait_check(verb))
        plat_bug("text goes where nothing can wait", t->start);
}

void text_goes(struct text_part *t)
{
    struct portion some;

    text_part_may_wait(t, __func__);
    plat_lock(PLAT_PROBES);
    portion_get(&some);
    t->closed = true;
    for (uintptr_t at = t->start; at < t->end; portion_grow(&some)) {
        at = gather(t, at, &some);
        for (size_t i = 0; i < some.count; i++) /* it leaves its site, to wait */
            some.ps[i]->flags |= KPROBE_FLAG_GONE;
        if (some.count && register_take_out(some.ps, some.count, some.room))
            plat_bug("a probe on text that goes is not registered", t->start);
        for (size_t i = 0; i < some.count; i++)
            ext_wait(some.ps[i]);
    }
    plat_free(some.memory);
    plat_unlock(PLAT_PROBES);
}

void text_gone(struct text_part *t)
{
    static const struct nokprobe_marks none;

    text_part_may_wait(t, __func__);
    plat_lock(PLAT_PROBES);
    list_remove(&t->link);
    boundary_forget(); /* not in text_goes(): while there are symbols, a watch may decode */
    blacklist_replace(t->start, t->end, &none);
    plat_lock(PLAT_TEXT);
    text_history_forget(t->start, t->end);
    plat_unlock(PLAT_TEXT);
    plat_unlock(PLAT_PROBES);
}

/* ---- it comes ---- */

/* means - does the name of @p, which waits, lead into @t? */
static bool means(const struct kprobe *p, const struct text_part *t)
{
    struct plat_symbol sym;

    return p->symbol_name && !plat_symbol_find(p->symbol_name, &sym) &&
           sym.start + p->offset >= t->start && sym.start + p->offset < t->end;
}

/* How far text_comes() is in the list of the probes that wait: the probes behind @prev
 * are still to be looked at.
 */
struct waking {
    struct kprobe *prev; /* NULL: all of them */
};

/* wake - take the next probes that mean @t off the list, into @some; they become
 * unregistered probes. Return: how many.
 */
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
        p->flags &= KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED | KPROBE_FLAG_IRQS_OFF |
                    KPROBE_FLAG_PENDING;
        some->ps[some->count++] = p;
    }
    return some->count;
}

/* text_part_stay - let a probe that was refused wait again, and say so in the log. */
static void text_part_stay(struct kprobe *p, const struct probe_reject *why, void *arg)
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
    int err = register_check_caller(__func__, NULL);

    if (err)
        return err;
    plat_lock(PLAT_PROBES);
    /* Without memory, text_gone() has left the ranges of other text here. */
    err = blacklist_replace(t->start, t->end, &t->nokprobe);
    if (err) {
        plat_unlock(PLAT_PROBES);
        return err;
    }
    t->closed = false;
    list_append(&parts, &t->link);
    portion_get(&some);
    while (wake(t, &w, &some) != 0) {
        struct site_list list = { .sites = some.room };

        register_some(some.ps, some.count, &list, KPROBE_FLAG_TRIPPED, text_part_stay,
                      &w);
        portion_grow(&some);
    }
    plat_free(some.memory);
    boundary_forget();
    plat_unlock(PLAT_PROBES);
    return 0;
}
