/* enable.c - stage 5 without registering: switches the handlers of registered probes on
 * and off, and kprobes as a whole.
 *
 * A site is armed if a probe there is enabled, and kprobes are on as a whole. The switch for
 * all probes does not change the flags of probes.
 */
#include "probes/core/extend.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"

static bool all_off; /* PLAT_PROBES to write */

/* enable_wants_arming - must @site be armed, or stay so? */
static bool enable_wants_arming(const struct site *site)
{
    return !all_off && site != ext_waiting() && aggr_enabled(site);
}

/* ---- some ---- */

static void set_flag(struct kprobe *p, bool disabled)
{
    if (disabled)
        __atomic_or_fetch(&p->flags, KPROBE_FLAG_DISABLED, __ATOMIC_RELAXED);
    else
        __atomic_and_fetch(&p->flags, ~(KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED),
                           __ATOMIC_RELAXED);
}

void enable_arm(struct kprobe **ps, size_t count, struct site_list *list)
{
    list->count = 0;
    for (size_t i = 0; i < count; i++)
        if (enable_wants_arming(ps[i]->site))
            site_list_add(list, ps[i]->site);
    site_list_close(list);
    kprobe_arm(list->sites, list->count);
}

void enable_settle(struct kprobe **ps, size_t count, struct site_list *list)
{
    size_t enabled;

    list->count = 0;
    for (size_t i = 0; i < count; i++)
        if (site_is_armed(ps[i]->site))
            site_list_add(list, ps[i]->site);
    site_list_close(list);
    enabled = site_to_front(list->sites, list->count, aggr_enabled);
    kprobe_disarm(list->sites + enabled, list->count - enabled);
    ext_refresh(list->sites, enabled);
}

static int switch_locked(struct kprobe **ps, size_t count, bool disabled,
                         struct site_list *list)
{
    int err = register_check_all(ps, count, list);

    if (err)
        return err;
    if (disabled)
        kprobe_disarm(list->sites, list->count);
    for (size_t i = 0; i < count; i++)
        set_flag(ps[i], disabled);
    (disabled ? enable_settle : enable_arm)(ps, count, list);
    return 0;
}

static int switch_probes(struct kprobe **ps, size_t count, bool disabled)
{
    struct site_list list;
    int err =
        register_check_caller(disabled ? "disable_kprobes" : "enable_kprobes", NULL);

    if (!err)
        err = site_list_make(&list, count, NULL);
    if (err)
        return err;
    plat_lock(PLAT_PROBES);
    err = switch_locked(ps, count, disabled, &list);
    plat_unlock(PLAT_PROBES);
    site_list_free(&list);
    return err;
}

int enable_kprobes(struct kprobe **ps, size_t count)
{
    return switch_probes(ps, count, false);
}

int disable_kprobes(struct kprobe **ps, size_t count)
{
    return switch_probes(ps, count, true);
}

/* ---- all ---- */

static void collect_wanting(struct site *site, void *arg)
{
    if (enable_wants_arming(site))
        site_list_add(arg, site);
}

static void collect_engine(struct site *site, void *arg)
{
    if (site->in_engine && site_is_armed(site))
        site_list_add(arg, site);
}

static void collect_armed(struct site *site, void *arg)
{
    if (site_is_armed(site))
        site_list_add(arg, site);
}

/* change_all - call @change for all sites that @collect has added to @list. */
static void change_all(struct site_list *list,
                       void (*collect)(struct site *site, void *list),
                       void (*change)(struct site **sites, size_t count))
{
    list->count = 0;
    registry_for_each(collect, list);
    site_list_close(list);
    change(list->sites, list->count);
}

static int all_switch_locked(bool on)
{
    struct site_list list;
    int err;

    if (on == !all_off)
        return 0;
    err = site_list_make(&list, registry_count(), NULL);
    if (err)
        return err;
    all_off = !on;
    if (!on) /* first the engine's own code, or it would hit its own probes meanwhile */
        change_all(&list, collect_engine, kprobe_disarm);
    change_all(&list, on ? collect_wanting : collect_armed,
               on ? kprobe_arm : kprobe_disarm);
    site_list_free(&list);
    plat_log("kprobes globally %s", on ? "enabled" : "disabled");
    return 0;
}

int kprobes_switch(bool on)
{
    int err = register_check_caller(__func__, NULL);

    if (err)
        return err;
    plat_lock(PLAT_PROBES);
    err = all_switch_locked(on);
    plat_unlock(PLAT_PROBES);
    return err;
}

bool kprobes_are_on(void)
{
    return !READ_ONCE(all_off);
}
