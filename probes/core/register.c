/* register.c - stage 1: registers and unregisters probes, one by one or as a set.
 *
 * A set is registered as a whole or not at all, and its probes share the
 * synchronisations. So every step that can refuse a probe is done, for all probes of the
 * set, before the first byte of text changes.
 */
#include "kernel/base/err.h"
#include "probes/core/extend.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"

/* ---- where ---- */

int register_resolve(const struct kprobe *p, uintptr_t *addr, struct probe_reject *why)
{
    struct plat_symbol sym;
    int err;

    if (!p->symbol_name == !p->addr)
        return probe_refuse(why, PROBE_MALFORMED, 0);
    if (!p->symbol_name) {
        *addr = p->addr + p->offset;
        return *addr ? 0 : probe_refuse(why, PROBE_NOT_TEXT, 0); /* the sum has wrapped */
    }
    err = plat_symbol_find(p->symbol_name, &sym);
    if (err)
        return probe_refuse(
            why, err == -EADDRNOTAVAIL ? PROBE_NOT_UNIQUE : PROBE_NO_SYMBOL, 0);
    if (p->offset && p->offset >= sym.size)
        return probe_refuse(why, PROBE_PAST_END, sym.start + p->offset);
    *addr = sym.start + p->offset;
    return 0;
}

/* site_of - return the site of @p; NULL: @p is not registered. The contents of @p may be
 * garbage, as long as they can be read: a pointer in @p is used only when @p turns out to
 * be registered.
 */
static ALWAYS_INLINE struct site *site_of(const struct kprobe *p)
{
    struct site *site = ext_waiting();

    if (site && p->site == site)
        return (p->prev ? p->prev->next : site->probes) == p ? site : NULL;
    site = registry_find(p->addr);
    if (!site || p->site != site)
        return NULL;
    return site->probes == p || aggr_find(site, p) ? site : NULL;
}

/* is_chosen - has choose_site() filled in @p? It notes that in @p->next, which has no
 * other use before @p is published.
 */
static bool is_chosen(const struct kprobe *p)
{
    return p->next == p;
}

static int check_request(const struct kprobe *p, uint32_t more, struct probe_reject *why)
{
    if (is_chosen(p) || site_of(p))
        return probe_refuse(why, PROBE_REGISTERED, p->addr);
    if (p->flags &
        ~(KPROBE_FLAG_DISABLED | KPROBE_FLAG_IRQS_OFF | KPROBE_FLAG_PENDING | more))
        return probe_refuse(why, PROBE_BAD_FLAGS, 0);
    if (p->pre_handler && p->light_handler)
        return probe_refuse(why, PROBE_TWO_HANDLERS, 0);
    return 0;
}

static bool in_handler(void)
{
    unsigned long flags = plat_irq_save();
    const struct probe_cpu *cpu = plat_this_cpu();
    bool inside = cpu && cpu->depth;

    plat_irq_restore(flags);
    return inside;
}

int register_check_caller(const char *verb, struct probe_reject *why)
{
    if (in_handler())
        return probe_refuse(why, PROBE_FROM_HANDLER, 0);
    if (plat_wait_check(verb))
        return probe_refuse(why, PROBE_BAD_CONTEXT, 0);
    return 0;
}

/* ---- in ---- */

/* site_for - return the site at @addr, or make one: stages 2 to 4. */
static struct site *site_for(uintptr_t addr, struct probe_reject *why)
{
    struct site *site = registry_find(addr);
    struct insn insn;

    if (site)
        return site;
    if (kprobe_check(addr, &insn, why))
        return NULL;
    site = kprobe_prepare(&insn, why);
    if (!site)
        return NULL;
    if (registry_insert(site)) {
        kprobe_unprepare(site);
        probe_refuse(why, PROBE_NO_MEMORY, addr);
        return NULL;
    }
    return site;
}

/* choose_later - accept @p although no symbol has its name: it will wait for text. */
static int choose_later(struct kprobe *p)
{
    p->addr = 0;
    p->site = ext_waiting();
    p->next = p;
    return 0;
}

/* choose_site - do every step for @p that can be refused. Hits do not see @p yet.
 * @more: as for register_some()
 */
static int choose_site(struct kprobe *p, uint32_t more, struct probe_reject *why)
{
    uintptr_t addr = 0;
    struct site *site;
    int err = check_request(p, more, why);

    if (!err)
        err = register_resolve(p, &addr, why);
    if (err == -ENOENT && p->flags & KPROBE_FLAG_PENDING && ext_waiting())
        return choose_later(p);
    if (err)
        return err;
    site = site_for(addr, why);
    if (!site)
        return why->err;
    p->addr = addr;
    p->site = site;
    p->next = p;
    err = ext_join(site, p, why);
    return err || !p->post_handler ? err : prepare_step(site, why);
}

/* publish_probes - let hits see the probes. */
static void publish_probes(struct kprobe **ps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ps[i]->site == ext_waiting()) {
            ext_wait(ps[i]);
            continue;
        }
        aggr_add(ps[i]->site, ps[i]);
        prepare_way(ps[i]->site);
    }
}

static bool site_is_new(const struct site *site)
{
    return !site->probes && site->state == SITE_PREPARED;
}

/* forget_probes - restore those of @ps that are chosen from @as_given, and free the sites
 * that were made for them. A probe that is not chosen may be registered, and in use. If a
 * probe is in @ps twice, its later element of @as_given shows it as already chosen; the
 * earlier element restores it.
 */
static void forget_probes(struct kprobe **ps, const struct kprobe *as_given, size_t count,
                          struct site_list *list)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_chosen(ps[i]))
            continue;
        ext_part(ps[i]);
        if (site_is_new(ps[i]->site))
            site_list_add(list, ps[i]->site);
        *ps[i] = as_given[i];
    }
    site_list_close(list);
    reclaim_unreached(list->sites, list->count);
    reclaim_rest();
    list->count = 0;
}

static int choose_sites(struct kprobe **ps, size_t count, struct kprobe *given,
                        struct site_list *list, struct probe_reject *why)
{
    for (size_t i = 0; i < count; i++) {
        int err;

        given[i] = *ps[i];
        err = choose_site(ps[i], 0, why);
        if (!err)
            continue;
        why->index = i;
        forget_probes(ps, given, i + 1, list);
        return err;
    }
    return 0;
}

static int register_locked(struct kprobe **ps, size_t count, struct site_list *list,
                           struct probe_reject *why)
{
    struct kprobe one, *given = count > 1 ? plat_alloc(count * sizeof(*given)) : &one;
    int err;

    if (!given)
        return probe_refuse(why, PROBE_NO_MEMORY, 0);
    err = choose_sites(ps, count, given, list, why);
    if (given != &one)
        plat_free(given);
    if (err)
        return err;
    publish_probes(ps, count);
    enable_arm(ps, count, list);
    return 0;
}

size_t register_some(struct kprobe **ps, size_t count, struct site_list *list,
                     uint32_t more, register_refused_t refused, void *arg)
{
    struct probe_reject why;
    size_t in = 0;

    for (size_t i = 0; i < count; i++) {
        struct kprobe *p = ps[i], as_given = *p;

        if (choose_site(p, more, &why)) {
            forget_probes(&p, &as_given, 1, list);
            refused(p, &why, arg);
            continue;
        }
        publish_probes(&p, 1);
        ps[i] = ps[in];
        ps[in++] = p;
    }
    enable_arm(ps, in, list);
    return in;
}

/* register_set - register all of @ps or none. With @refused: register the probes that are
 * accepted, and call @refused for each of the other ones.
 * Return: how many are registered; an errno.
 */
static long register_set(struct kprobe **ps, size_t count, struct probe_reject *why,
                         register_refused_t refused, void *arg)
{
    struct site_list list;
    int err = register_check_caller("register_kprobes", why);
    long in = (long)count;

    if (!err)
        err = site_list_make(&list, count, why);
    if (err)
        return err;
    plat_lock(PLAT_PROBES);
    if (refused)
        in = (long)register_some(ps, count, &list, 0, refused, arg);
    else
        err = register_locked(ps, count, &list, why);
    if (count > 1)
        boundary_forget();
    plat_unlock(PLAT_PROBES);
    site_list_free(&list);
    return err ? err : in;
}

int register_kprobes_why(struct kprobe **ps, size_t count, struct probe_reject *why)
{
    struct probe_reject unheard;
    long in = register_set(ps, count, why ? why : &unheard, NULL, NULL);

    return in < 0 ? (int)in : 0;
}

long register_kprobes_some(struct kprobe **ps, size_t count, register_refused_t refused,
                           void *arg)
{
    return register_set(ps, count, NULL, refused, arg);
}

/* ---- out ---- */

static bool is_alone_in_engine(const struct site *site)
{
    return site->in_engine && site_is_armed(site) && !site->probes->next;
}

int register_check_all(struct kprobe **ps, size_t count, struct site_list *engine)
{
    int err = 0;

    for (size_t i = 0; i < count && !err; i++) {
        struct site *site = site_of(ps[i]);

        if (!site)
            err = -EINVAL;
        else if (is_alone_in_engine(site))
            site_list_add(engine, site);
    }
    site_list_close(engine);
    return err;
}

/* take_out_probes - unlink the probes; collect the sites that no probe needs any more. */
static void take_out_probes(struct kprobe **ps, size_t count, struct site_list *dead)
{
    for (size_t i = 0; i < count; i++) {
        struct site *site = site_of(ps[i]);

        if (!site)
            continue; /* it stands in @ps a second time */
        if (site == ext_waiting())
            ext_wake(ps[i]);
        else
            aggr_remove(site, ps[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (ps[i]->site == ext_waiting())
            continue;
        if (!ps[i]->site->probes)
            site_list_add(dead, ps[i]->site);
        else
            prepare_way(ps[i]->site);
    }
    site_list_close(dead);
}

int register_take_out(struct kprobe **ps, size_t count, struct site **room)
{
    struct site_list list = { .sites = room }, dead = { .sites = room + count };
    int err = register_check_all(ps, count, &list);

    if (err)
        return err;
    kprobe_disarm(list.sites, list.count);
    take_out_probes(ps, count, &dead);
    enable_settle(ps, count, &list);
    kprobe_reclaim(dead.sites, dead.count);
    ext_settle();
    for (size_t i = 0; i < count; i++) {
        ext_part(ps[i]);
        ps[i]->site = NULL;
        ps[i]->flags &= ~KPROBE_FLAG_GONE;
    }
    return 0;
}

/* unregister_one_by_one - take the probes out when there is no memory for the lists. It
 * takes more time, but needs no memory.
 */
static int unregister_one_by_one(struct kprobe **ps, size_t count)
{
    struct site *room[2];

    for (size_t i = 0; i < count; i++)
        if (!site_of(ps[i]))
            return -EINVAL;
    for (size_t i = 0; i < count; i++)
        if (ps[i]->site) /* NULL if it stands in @ps a second time */
            register_take_out(&ps[i], 1, room);
    return 0;
}

int unregister_kprobes(struct kprobe **ps, size_t count)
{
    struct site **room = NULL;
    int err = register_check_caller(__func__, NULL);

    if (err)
        return err;
    if (count > 1)
        room = plat_alloc(2 * count * sizeof(room[0]));
    plat_lock(PLAT_PROBES);
    if (room)
        err = register_take_out(ps, count, room);
    else
        err = unregister_one_by_one(ps, count);
    for (size_t i = 0; i < count && !err; i++)
        ps[i]->kind = KPROBE_KIND_PROBE; /* the next time it may be a plain probe */
    plat_unlock(PLAT_PROBES);
    plat_free(room);
    return err;
}
